"""Proposals for a prompt: what a proposer is given, what it hands back, and the contract gate every proposal passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from optimizer.proposers.examples import Example, examples_of

if TYPE_CHECKING:
    from attribution.signals import Signal
    from tracing.systems.conversations import Conversation
    from tracing.systems.prompts import Candidate, PromptSpec
    from tracing.systems.protocol import Stage

__all__ = ["Example", "Proposal", "ProposalRequest", "Proposer", "Source", "admit", "examples_of", "is_new"]

Source = Literal["reflection", "demonstration", "bank", "structure", "hand"]


@dataclass(frozen=True, slots=True)
class ProposalRequest:
    """What a proposer works from.

    Attributes:
        prompt: the prompt to rewrite; `text` is its current text.
        stage: what its operation does with information.
        candidate: the champion's texts of all prompts.
        signal: the signal of its operation; None where nothing blames it.
        failed: executions blamed for a wrong answer (train conversations only).
        passed: executions behind right answers (train conversations only).
        minibatch: the train conversations that rewrites may be measured on.
        count: most proposals wanted.
        seed: of every random choice.
        tried: texts that were tried already.
    """

    prompt: PromptSpec
    stage: Stage
    text: str
    candidate: Candidate
    signal: Signal | None
    failed: tuple[Example, ...]
    passed: tuple[Example, ...]
    minibatch: tuple[Conversation, ...]
    count: int
    seed: int
    tried: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Proposal:
    """A new text for a prompt, where it comes from, and why in one line."""

    prompt: str
    text: str
    source: Source
    reason: str


class Proposer(Protocol):
    """A source of proposals. The same request gives the same proposals; only a spent budget raises."""

    name: str

    def propose(self, request: ProposalRequest) -> list[Proposal]:
        """At most `request.count` texts that are new, best first.

        Raises:
            BudgetExceededError: a hard budget does not allow the next model call.
        """
        ...


def admit(
    proposals: Sequence[Proposal], spec: PromptSpec, tried: frozenset[str] = frozenset()
) -> tuple[list[Proposal], list[tuple[Proposal, list[str]]]]:
    """The contract gate, before anything is spent on a proposal: reject, never repair.

    Returns:
        The admitted proposals in order, and the rejected ones with everything that is wrong with each: a broken
        contract, another prompt's name, or a text that was tried or proposed already.
    """
    admitted: list[Proposal] = []
    rejected: list[tuple[Proposal, list[str]]] = []
    seen = set(tried)
    for proposal in proposals:
        problems = spec.contract.violations(proposal.text)
        if proposal.prompt != spec.name:
            problems.append(f"it is for the prompt {proposal.prompt!r}, not {spec.name!r}")
        if proposal.text in seen:
            problems.append("the text was tried or proposed already")
        if problems:
            rejected.append((proposal, problems))
        else:
            admitted.append(proposal)
            seen.add(proposal.text)
    return admitted, rejected


def is_new(text: str, request: ProposalRequest) -> bool:
    """Whether a text is worth proposing: within the contract, not the current one, and not tried."""
    return text != request.text and text not in request.tried and not request.prompt.contract.violations(text)
