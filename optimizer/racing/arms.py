"""Arms of the local search: texts for one prompt, each with what it was fitted on."""

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
"""The source of arms with whole demonstrations."""

LONGEST_SHOWN = 1600
"""Longest demonstration in characters: about 400 tokens, which a small model reads at every call."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A recorded input, whole, with what a correct operation makes of it."""

    given: RecordedInput
    inputs: dict[str, str]
    reply: str

    @property
    def length(self) -> int:
        """In characters."""
        return sum(map(len, self.inputs.values())) + len(self.reply)


@dataclass(frozen=True, slots=True)
class Arm:
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
    demonstrations: tuple[Shown, ...] = field(default=(), hash=False)

    @property
    def shows(self) -> frozenset[str]:
        """Ids of the conversations whose content the text shows; it is not scored on them."""
        return shown_by(self.demonstrations)


def shown_by(demonstrations: Iterable[Shown]) -> frozenset[str]:
    """Ids of the conversations whose content they show."""
    return frozenset(each.given.conversation.id for each in demonstrations)


def shown_whole(objective: Objective, spec: PromptSpec, inputs: Sequence[RecordedInput]) -> list[Shown]:
    """Demonstrations of an operation done right on recorded inputs, those with most at stake first."""
    if not isinstance(objective, KnowsRightOutputs):
        return []
    found: list[tuple[float, Shown]] = []
    for given in inputs:
        try:
            weight, right = objective.weight(given), objective.right(given)
        except ModelError:
            continue
        if right is None:
            continue
        texts = spec.layout.filled(given.parts)
        made = Shown(given, texts, spec.reply(given.parts, right))
        if made.length <= LONGEST_SHOWN and spec.contract.placeholders <= texts.keys():
            found.append((weight, made))
    found.sort(key=lambda each: (-each[0], each[1].length, each[1].given.key))
    return [made for _, made in found]


def sets_of(shown: Sequence[Shown], seed: int, *, most: int = 3, best: int = 6) -> Iterator[tuple[Shown, ...]]:
    """Sets of demonstrations to try: single ones, pairs and triples in turn, each of different conversations."""
    pool = list(shown[: 2 * best])
    random.Random(seed).shuffle(pool)  # noqa: S311 (a draw, not a secret)
    pool = pool[:best]
    return by_turns(_apart(combinations(pool, size)) for size in range(1, most + 1))


def with_shown(arm: Arm, shown: tuple[Shown, ...]) -> Arm | None:
    """An arm with these demonstrations before the data, in its own layout; None if the system adds the data."""
    parts = take_apart(arm.text)
    if not parts.data:
        return None
    text = parts.with_filled((each.inputs, each.reply) for each in shown).text
    names = ", ".join(sorted(each.given.conversation.id for each in shown))
    reason = f"{len(shown)} whole demonstration{'s' if len(shown) > 1 else ''} ({names})"
    return Arm(text, DEMONSTRATED, f"{arm.reason}; {reason}" if arm.reason else reason, shown)


def _apart(groups: Iterator[tuple[Shown, ...]]) -> Iterator[tuple[Shown, ...]]:
    return (group for group in groups if len({each.given.conversation.id for each in group}) == len(group))
