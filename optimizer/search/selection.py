"""Which prompt to edit next: where the most fixable loss is expected, unless edits of that prompt keep failing."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from attribution.signals import Signal
from optimizer.tuning.results import Selector
from tracing.systems.prompts import PromptSpec

TRUST = 0.75
"""Share of attributions that name the right stage (information survival, on a labelled set)."""

PATIENCE = 0.5
"""What one failed edit leaves of a prompt's expected gain."""

LEAST_SHARE = 0.1
"""Share of the expected gain under which a prompt is not rewritten in a round."""


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


def shares_of(
    selector: Selector, gains: Mapping[str, float], n: int, seed: int, *, least: float = LEAST_SHARE
) -> dict[str, float]:
    """The prompts that round `n` rewrites, and the share of its rewrites that each gets, the greatest first.

    - `blame`: by expected gain; prompts with less than `least` of it, a share, are left out.
    - `round-robin`: one prompt, in turn.
    - `random`: one prompt, drawn by `seed`.
    - `uniform`: all prompts, with equal shares.
    - `all`: all prompts, each as if it were the only one.

    Args:
        gains: prompt name → expected gain of an edit.
    """
    names, total = list(gains), sum(gains.values())
    if not names:
        return {}
    if selector == "round-robin":
        return {names[(n - 1) % len(names)]: 1.0}
    if selector == "random":
        return {random.Random(seed).choice(names): 1.0}  # noqa: S311 (a draw, not a secret)
    if selector == "all":
        return dict.fromkeys(names, 1.0)
    if selector == "uniform" or not total:
        return dict.fromkeys(names, 1 / len(names))
    ranked = sorted(names, key=lambda name: (-gains[name], name))
    return {name: gains[name] / total for name in ranked if gains[name] >= least * total}


def choose(
    prompts: Mapping[str, PromptSpec],
    signals: Sequence[Signal],
    history: Sequence[Edit] = (),
    *,
    selector: Selector = "blame",
    seed: int = 0,
) -> Choice | None:
    """Choose the one prompt to edit; None if there is no prompt.

    It is the prompt with the greatest share by `shares_of`, where `history` has one edit for each earlier round. Ties
    are broken by `seed`, so the choice is a function of the arguments.
    """
    if not prompts:
        return None
    fixable = {name: [s for s in signals if s.prompt == name and s.fixable] for name in prompts}
    loss = {name: sum(signal.loss for signal in own) for name, own in fixable.items()}
    expected = expected_gains(prompts, signals, history)
    shares = shares_of(selector, expected, len(history) + 1, seed)
    order = sorted(shares)
    random.Random(seed).shuffle(order)  # noqa: S311 (a tie-break, not a secret)
    name = max(order, key=lambda prompt: shares[prompt])
    signal = max(fixable[name], key=lambda signal: signal.loss, default=None)
    failures = _failures(name, history)
    reason = f"fixable loss {loss[name]:.3f} of {sum(loss.values()):.3f}"
    if failures:
        reason += f", discounted for {failures} failed edit{'s' if failures > 1 else ''}"
    return Choice(name, signal, expected[name], reason)


def expected_gains(
    prompts: Collection[str],
    signals: Sequence[Signal],
    history: Sequence[Edit] = (),
    lost: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Prompt name → expected gain of an edit, as a share of all questions.

    A prompt's loss is that of its operations, and its part of what operations without a prompt lose in their stage; it
    is at most what the prompt lost on its recorded inputs, where that was measured. Expected gain = (`TRUST` x the
    prompt's fixable loss + an equal part of the rest of all fixable loss) x `PATIENCE` ** (edits of it that failed
    since its last accepted one). The equal part keeps a prompt in play that is wrongly never blamed; the discount gives
    others a turn when edits of a blamed prompt keep failing.

    Args:
        prompts: their names.
        signals: whose fault the wrong answers are.
        history: one edit for each earlier round.
        lost: prompt name → how much it lost on its recorded inputs for each question; above 0.
    """
    lost = lost or {}
    blamed = {
        name: sum(signal.loss + signal.beside for signal in signals if signal.prompt == name and signal.fixable)
        for name in prompts
    }
    own = {name: TRUST * min(loss, lost.get(name, loss)) for name, loss in blamed.items()}
    rest = (sum(blamed.values()) - sum(own.values())) / max(len(own), 1)
    return {name: (own[name] + rest) * PATIENCE ** _failures(name, history) for name in prompts}


def _failures(prompt: str, history: Sequence[Edit]) -> int:
    """Edits of a prompt that failed since its last accepted one."""
    latest_first = (edit for edit in reversed(history) if edit.prompt == prompt)
    return sum(1 for _ in takewhile(lambda edit: not edit.accepted, latest_first))
