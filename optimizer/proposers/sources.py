"""Where proposals come from: all proposers in turn, contract-checked, so that no source crowds out the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from optimizer.proposers.bank import BankProposer
from optimizer.proposers.demonstrations import DemonstrationProposer
from optimizer.proposers.proposals import Proposal, ProposalRequest, Proposer, admit
from optimizer.proposers.reflection import ReflectionProposer
from optimizer.proposers.structure import StructureProposer

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Evaluator
    from tracing.llm.access import ModelAccess
    from tracing.systems.conversations import Conversation


class ProposalSources:
    """The proposers of a run.

    Args:
        evaluator: measures what reflection writes.
        access: its proposer model writes.
        train: the only conversations that demonstrations may come from.
        hand: rewrites that people wrote; they go before all others.
    """

    def __init__(
        self, evaluator: Evaluator, access: ModelAccess, train: Sequence[Conversation], hand: Sequence[Proposal] = ()
    ) -> None:
        self._hand = hand
        self._rules: tuple[Proposer, ...] = (
            BankProposer(),
            DemonstrationProposer([conversation.id for conversation in train]),
            StructureProposer(),
        )
        self._reflection = ReflectionProposer(evaluator, access.proposer)
        self._strong_author = access.proposer is not access.task

    def propose(self, n: int, request: ProposalRequest, wanted: int) -> list[Proposal]:
        """At most `wanted` proposals for round `n`: each source's best first, then each one's second best, and so on.

        All rewrites by hand that were not tried come before them, also where they are more.

        Raises:
            BudgetExceededError: a hard budget does not allow the next model call.
        """
        written = [each for each in self._hand if each.prompt == request.prompt.name]
        chosen = {each.text: each for each in admit(written, request.prompt, request.tried)[0]}
        wanted = max(wanted, len(chosen))
        offers: list[list[Proposal]] = []
        for proposer in self._in_order(n):
            if len(chosen.keys() | {offer[0].text for offer in offers if offer}) >= wanted:
                # Everything that is tried will be the first offers of these: others would be paid for in vain.
                break
            # Reflection measures what it offers, and of a weak author's rewrites hardly two are worth that.
            single = proposer is self._reflection and not self._strong_author
            asked = replace(request, count=1) if single else request
            admitted, _ = admit(proposer.propose(asked), request.prompt, request.tried)
            offers.append(admitted)
        for rank in range(max(map(len, offers), default=0)):
            for offer in offers:
                if rank < len(offer):
                    chosen.setdefault(offer[rank].text, offer[rank])
        return list(chosen.values())[:wanted]

    def _in_order(self, n: int) -> list[Proposer]:
        """Each source gets its turn to be first, also where few proposals are tried.

        A proposer model of its own is taken to write better prompts than the rules do, so its reflection leads; the
        task model reflecting on itself comes last.
        """
        turn = (n - 1) % len(self._rules)
        rules = [*self._rules[turn:], *self._rules[:turn]]
        return [self._reflection, *rules] if self._strong_author else [*rules, self._reflection]
