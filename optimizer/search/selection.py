"""Which prompt to edit next: where the most fixable loss is expected, unless edits of that prompt keep failing."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attribution.signals import Signal
    from tracing.systems.prompts import PromptSpec

TRUST = 0.75
"""Share of attributions that name the right stage (information survival, on a labelled set)."""

PATIENCE = 0.5
"""What one failed edit leaves of a prompt's expected gain."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One round's edit of a prompt: accepted by the gate, or not."""

    prompt: str
    accepted: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """The prompt to edit.

    Attributes:
        prompt: its name.
        signal: the signal with the greatest loss among those of its operation; None if nothing blames it.
        expected: expected fixable loss (share of all questions), discounted by failed edits.
        reason: the choice in one line.
    """

    prompt: str
    signal: Signal | None
    expected: float
    reason: str


def choose(
    prompts: Mapping[str, PromptSpec], signals: Sequence[Signal], history: Sequence[Edit] = (), *, seed: int = 0
) -> Choice | None:
    """Choose the prompt with the greatest expected gain of an edit; None if there is no prompt.

    Ties are broken by `seed`, so the choice is a function of the arguments.
    """
    if not prompts:
        return None
    fixable = {name: [s for s in signals if s.prompt == name and s.fixable] for name in prompts}
    loss = {name: sum(signal.loss for signal in own) for name, own in fixable.items()}
    expected = expected_gains(prompts, signals, history)
    order = sorted(prompts)
    random.Random(seed).shuffle(order)  # noqa: S311 (a tie-break, not a secret)
    name = max(order, key=lambda each: expected[each])
    signal = max(fixable[name], key=lambda each: each.loss, default=None)
    failures = _failures(name, history)
    reason = f"fixable loss {loss[name]:.3f} of {sum(loss.values()):.3f}"
    if failures:
        reason += f", discounted for {failures} failed edit{'s' if failures > 1 else ''}"
    return Choice(name, signal, expected[name], reason)


def expected_gains(
    prompts: Collection[str], signals: Sequence[Signal], history: Sequence[Edit] = ()
) -> dict[str, float]:
    """Prompt name → expected gain of an edit, as a share of all questions.

    Expected gain = (`TRUST` x the prompt's fixable loss + (1 - `TRUST`) x an equal part of all fixable loss)
    x `PATIENCE` ** (edits of it that failed since its last accepted one). The equal part keeps a prompt in play that is
    wrongly never blamed; the discount gives others a turn when edits of a blamed prompt keep failing.
    """
    loss = {name: sum(each.loss for each in signals if each.prompt == name and each.fixable) for name in prompts}
    doubt = (1 - TRUST) * sum(loss.values()) / max(len(loss), 1)
    return {name: (TRUST * loss[name] + doubt) * PATIENCE ** _failures(name, history) for name in prompts}


def _failures(prompt: str, history: Sequence[Edit]) -> int:
    count = 0
    for edit in reversed([edit for edit in history if edit.prompt == prompt]):
        if edit.accepted:
            break
        count += 1
    return count
