"""Screening: rewrites race on a few train conversations before any is validated."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from optimizer.tuning.results import RewriteRecord

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Outcome
    from optimizer.proposers.examples import Example

SCREENED = 2
"""Conversations per race. Reflection measures its rewrites on the same ones, so their screening costs nothing."""

Measure = Callable[[RewriteRecord, "Outcome"], "Outcome"]
"""Evaluates a rewrite on the conversation of one of the champion's outcomes."""


def drawn(train: Sequence[Outcome], failed: Sequence[Example], *, seed: int) -> tuple[Outcome, ...]:
    """Outcomes of the champion on conversations drawn at random by `seed` from those where a prompt failed.

    The worst ones would mislead: their scores rise under any other prompt (regression to the mean).
    If the prompt failed on too few conversations, others are added.
    """
    failures = {example.case.conversation for example in failed}
    order = list(train)
    random.Random(seed).shuffle(order)  # noqa: S311 (a draw, not a secret)
    order.sort(key=lambda outcome: outcome.conversation.id not in failures)
    return tuple(order[:SCREENED])


def race(rewrites: Mapping[str, RewriteRecord], batch: Sequence[Outcome], measure: Measure) -> dict[str, RewriteRecord]:
    """Run rewrites on the conversations of `batch` one by one, dropping those that fall behind the champion.

    Returns:
        The rewrites in order, with the mean gain over the conversations they ran on as `screening`; it stays None if
        one could not be scored.
    """
    gains: dict[str, list[float]] = {text: [] for text in rewrites}
    racing = list(rewrites)
    for reference in batch:
        for text in tuple(racing):
            outcome = measure(rewrites[text], reference)
            if outcome.tainted is not None:
                gains[text].clear()
            else:
                gains[text].append(outcome.score - reference.score)
            if not gains[text] or _mean(gains[text]) < 0:
                racing.remove(text)
    return {
        text: replace(rewrite, screening=_mean(gains[text])) if gains[text] else rewrite
        for text, rewrite in rewrites.items()
    }


def _mean(gains: Sequence[float]) -> float:
    # Rounding must not make a zero gain look like a real one.
    return round(sum(gains) / len(gains), 9)
