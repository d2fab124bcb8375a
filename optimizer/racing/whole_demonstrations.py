"""Whole demonstrations: recorded inputs, with what a correct operation makes of them, put into a text."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from optimizer.objectives.objective import KnowsRightOutputs, Objective, RecordedInput
from optimizer.proposers.examples import Example
from optimizer.proposers.rewrites import Demonstration, Rewrite, conversations_of
from optimizer.proposers.template import take_apart
from optimizer.proposers.turns import by_turns
from tracing.errors import ModelError
from tracing.systems.layouts import Parts
from tracing.systems.prompts import PromptSpec

DEMONSTRATED = "whole demonstrations"
"""The source of rewrites with whole demonstrations."""

LONGEST_DEMONSTRATION = 1600
"""Longest demonstration in characters: about 400 tokens, which a small model reads at every call."""


def whole_demonstrations(
    objective: Objective, spec: PromptSpec, inputs: Sequence[RecordedInput]
) -> list[Demonstration]:
    """Demonstrations of an operation done right on recorded inputs, those with most at stake first."""
    weighted: list[tuple[float, int, str, Demonstration]] = []
    for recorded in inputs:
        try:
            weight = objective.weight(recorded)
        except ModelError:
            continue
        reply = right_reply(objective, spec, recorded)
        if reply is None:
            continue
        texts = spec.layout.filled(recorded.parts)
        demonstration = Demonstration(tuple(texts.items()), reply, recorded.conversation.id)
        if demonstration.length <= LONGEST_DEMONSTRATION and spec.contract.placeholders <= texts.keys():
            weighted.append((-weight, demonstration.length, recorded.key, demonstration))
    return [demonstration for *_, demonstration in sorted(weighted, key=lambda entry: entry[:3])]


def right_reply(objective: Objective, spec: PromptSpec, recorded: RecordedInput) -> str | None:
    """What a correct operation replies to a recorded input; None if that is not known."""
    if not isinstance(objective, KnowsRightOutputs):
        return None
    try:
        right = objective.right(recorded)
    except ModelError:
        return None
    return None if right is None else spec.reply(recorded.parts, right)


def with_right_replies(
    examples: Iterable[Example], objective: Objective, inputs: Sequence[RecordedInput]
) -> tuple[Example, ...]:
    """Failed executions with what a correct operation would have replied, where they are among the recorded inputs."""
    known = {(recorded.conversation.id, _read(recorded.parts)): recorded for recorded in inputs}

    def shown(example: Example) -> Example:
        recorded = known.get((example.case.conversation, _read(example.parts)))
        return example if recorded is None else replace(example, right=right_reply(objective, example.prompt, recorded))

    return tuple(map(shown, examples))


def _read(parts: Parts) -> tuple[tuple[str, str, str], ...]:
    return tuple((name, item.name, item.text) for name, items in sorted(parts.items()) for item in items)


def demonstration_sets(
    demonstrations: Sequence[Demonstration], seed: int, *, most: int = 3, best: int = 6
) -> Iterator[tuple[Demonstration, ...]]:
    """Sets of demonstrations to try: single ones, pairs and triples in turn, each of different conversations."""
    pool = list(demonstrations[: 2 * best])
    random.Random(seed).shuffle(pool)  # noqa: S311 (a draw, not a secret)
    pool = pool[:best]
    return by_turns(_apart(combinations(pool, size)) for size in range(1, most + 1))


def with_demonstrations(rewrite: Rewrite, demonstrations: tuple[Demonstration, ...]) -> Rewrite | None:
    """A rewrite with these demonstrations before the data, in its own layout; None if the system adds the data."""
    parts = take_apart(rewrite.text)
    if not parts.data:
        return None
    text = parts.with_filled((demonstration.values, demonstration.reply) for demonstration in demonstrations).text
    names = ", ".join(sorted(demonstration.conversation for demonstration in demonstrations))
    reason = f"{len(demonstrations)} whole demonstration{'s' if len(demonstrations) > 1 else ''} ({names})"
    if rewrite.reason:
        reason = f"{rewrite.reason}; {reason}"
    return Rewrite(rewrite.prompt, text, DEMONSTRATED, reason, demonstrations)


def _apart(groups: Iterator[tuple[Demonstration, ...]]) -> Iterator[tuple[Demonstration, ...]]:
    return (group for group in groups if len(conversations_of(group)) == len(group))
