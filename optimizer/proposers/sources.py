"""Where rewrites come from: all proposers in turn, contract-checked, so that no source crowds out the others."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from optimizer.proposers.demonstrations import DEMONSTRATIONS
from optimizer.proposers.rewrites import Authored, Proposer, Rewrite, RewriteRequest, admit, offers_of
from optimizer.proposers.turns import by_turns


class RewriteSources:
    """The proposers of a run.

    Args:
        proposers: in the order of the configuration.
        hand: rewrites that people wrote; they come before all others.
        own_author: whether the author is another model than the system's.
        progress: told what an author writes, which takes minutes with a slow one, as a phase, steps done and their
            number.

    Attributes:
        own_author: the same.
        demonstrates: whether demonstrations are among the proposers.
    """

    def __init__(
        self,
        proposers: Sequence[Proposer],
        hand: Sequence[Rewrite] = (),
        *,
        own_author: bool,
        progress: Callable[[str, int, int], None],
    ) -> None:
        self._hand, self.own_author, self._progress = hand, own_author, progress
        self.demonstrates = any(proposer.name == DEMONSTRATIONS for proposer in proposers)
        self._rules = [proposer for proposer in proposers if not isinstance(proposer, Authored)]
        self._authored = [proposer for proposer in proposers if isinstance(proposer, Authored)]

    def propose(self, n: int, request: RewriteRequest, count: int, *, besides: Collection[str] = ()) -> list[Rewrite]:
        """At most `count` rewrites for round `n`: each source's best first, then each one's second best, and so on.

        All rewrites by hand that were not tried come before them, even if they exceed `count`. Proposers named in
        `besides` are not asked. A `RunError` names a proposer that fails.
        """
        chosen = self._rewrites_by_hand(request)
        count = max(count, len(chosen))
        offers: list[list[Rewrite]] = []
        for proposer in self._in_order(n):
            if proposer.name in besides:
                continue
            if len(chosen.keys() | {offer[0].text for offer in offers if offer}) >= count:
                # Only these sources' first offers will be tried; paying for more would be waste.
                break
            offers.append(self._offers(proposer, request))
        for offer in by_turns(offers):
            chosen.setdefault(offer.text, offer)
        return list(chosen.values())[:count]

    def draw(self, request: RewriteRequest, count: int) -> list[Rewrite]:
        """As `propose`, but drawn from all that every source offers, by the request's seed."""
        chosen = self._rewrites_by_hand(request)
        count = max(count, len(chosen))
        every = [offer for proposer in (*self._rules, *self._authored) for offer in self._offers(proposer, request)]
        random.Random(request.seed).shuffle(every)  # noqa: S311 (a draw, not a secret)
        for offer in every:
            chosen.setdefault(offer.text, offer)
        return list(chosen.values())[:count]

    def _rewrites_by_hand(self, request: RewriteRequest) -> dict[str, Rewrite]:
        written = [rewrite for rewrite in self._hand if rewrite.prompt == request.prompt.name]
        return {rewrite.text: rewrite for rewrite in admit(written, request.prompt, request.tried)[0]}

    def _offers(self, proposer: Proposer, request: RewriteRequest) -> list[Rewrite]:
        if not isinstance(proposer, Authored):
            return offers_of(proposer, request)
        # The system's own model rarely writes two texts that are worth a race.
        authored = request if self.own_author else replace(request, count=1)
        phase = f"{proposer.name}: rewriting {request.prompt.name}"
        self._progress(phase, 0, authored.count)
        offered = offers_of(proposer, authored)
        self._progress(phase, authored.count, authored.count)
        return offered

    def _in_order(self, n: int) -> list[Proposer]:
        """Each source gets its turn to be first, even if few rewrites are tried.

        A separate author model is assumed to write better prompts than the rules, so its texts come first; the
        task model reflecting on itself comes last.
        """
        turn = (n - 1) % max(len(self._rules), 1)
        rules = [*self._rules[turn:], *self._rules[:turn]]
        return [*self._authored, *rules] if self.own_author else [*rules, *self._authored]
