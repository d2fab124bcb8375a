"""Rewrites of the local search: texts for one prompt, each with what it was fitted on."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

from optimizer.objectives.objective import KnowsRightOutputs
from optimizer.proposers.template import take_apart
from optimizer.proposers.turns import by_turns
from tracing.errors import ModelError

if TYPE_CHECKING:
    from optimizer.objectives.objective import Objective, RecordedInput
    from tracing.systems.prompts import PromptSpec

DEMONSTRATED = "whole demonstrations"
"""The source of rewrites with whole demonstrations."""

LONGEST_DEMONSTRATION = 1600
"""Longest demonstration in characters: about 400 tokens, which a small model reads at every call."""


@dataclass(frozen=True, slots=True)
class WholeDemonstration:
    """A recorded input, whole, with what a correct operation makes of it."""

    recorded: RecordedInput
    inputs: dict[str, str]
    reply: str

    @property
    def length(self) -> int:
        """In characters."""
        return sum(map(len, self.inputs.values())) + len(self.reply)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One text for a prompt.

    Attributes:
        text: the text.
        source: name of its proposer, or `DEMONSTRATED` for the present text with whole demonstrations.
        reason: what was changed, in one line.
        demonstrations: in the text, of recorded inputs.
    """

    text: str
    source: str
    reason: str
    demonstrations: tuple[WholeDemonstration, ...] = field(default=(), hash=False)

    @property
    def shows(self) -> frozenset[str]:
        """Ids of the conversations whose content the text shows; it is not scored on them."""
        return conversations_of(self.demonstrations)


def conversations_of(demonstrations: Iterable[WholeDemonstration]) -> frozenset[str]:
    """Ids of the conversations whose content they show."""
    return frozenset(demonstration.recorded.conversation.id for demonstration in demonstrations)


def whole_demonstrations(
    objective: Objective, spec: PromptSpec, inputs: Sequence[RecordedInput]
) -> list[WholeDemonstration]:
    """Demonstrations of an operation done right on recorded inputs, those with most at stake first."""
    if not isinstance(objective, KnowsRightOutputs):
        return []
    weighted: list[tuple[float, WholeDemonstration]] = []
    for recorded in inputs:
        try:
            weight, right = objective.weight(recorded), objective.right(recorded)
        except ModelError:
            continue
        if right is None:
            continue
        texts = spec.layout.filled(recorded.parts)
        demonstration = WholeDemonstration(recorded, texts, spec.reply(recorded.parts, right))
        if demonstration.length <= LONGEST_DEMONSTRATION and spec.contract.placeholders <= texts.keys():
            weighted.append((weight, demonstration))
    weighted.sort(key=lambda pair: (-pair[0], pair[1].length, pair[1].recorded.key))
    return [demonstration for _, demonstration in weighted]


def demonstration_sets(
    demonstrations: Sequence[WholeDemonstration], seed: int, *, most: int = 3, best: int = 6
) -> Iterator[tuple[WholeDemonstration, ...]]:
    """Sets of demonstrations to try: single ones, pairs and triples in turn, each of different conversations."""
    pool = list(demonstrations[: 2 * best])
    random.Random(seed).shuffle(pool)  # noqa: S311 (a draw, not a secret)
    pool = pool[:best]
    return by_turns(_apart(combinations(pool, size)) for size in range(1, most + 1))


def with_demonstrations(rewrite: Rewrite, demonstrations: tuple[WholeDemonstration, ...]) -> Rewrite | None:
    """A rewrite with these demonstrations before the data, in its own layout; None if the system adds the data."""
    parts = take_apart(rewrite.text)
    if not parts.data:
        return None
    text = parts.with_filled((demonstration.inputs, demonstration.reply) for demonstration in demonstrations).text
    names = ", ".join(sorted(demonstration.recorded.conversation.id for demonstration in demonstrations))
    reason = f"{len(demonstrations)} whole demonstration{'s' if len(demonstrations) > 1 else ''} ({names})"
    return Rewrite(text, DEMONSTRATED, f"{rewrite.reason}; {reason}" if rewrite.reason else reason, demonstrations)


def _apart(groups: Iterator[tuple[WholeDemonstration, ...]]) -> Iterator[tuple[WholeDemonstration, ...]]:
    return (group for group in groups if len(conversations_of(group)) == len(group))
