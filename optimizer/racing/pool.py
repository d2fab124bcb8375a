"""The pool of one prompt's texts over all rounds, and which of them new texts are made of.

What a text is credited with on a recorded input does not depend on the round. So an input that is recorded again, under
the same other prompts or because they made no difference to it, has the credits of every text that ever met it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from optimizer.proposers.earlier import EarlierText
from optimizer.racing.halving import LocalScore, Measure, compared

if TYPE_CHECKING:
    from optimizer.objectives.objective import RecordedInput

PARENTS = 2
"""Texts that a second generation is made of."""


class Pool:
    """Texts of one prompt, each with its score where it was last measured. Credits are kept by `LocalEvaluation`."""

    def __init__(self) -> None:
        self._scores: dict[str, LocalScore] = {}

    def add(self, scores: Iterable[LocalScore]) -> None:
        """Keep the texts that were measured on any input."""
        self._scores |= {scored.rewrite.text: scored for scored in scores if scored.inputs}

    def earlier(self) -> tuple[EarlierText, ...]:
        """The texts as an author of prompts is told of them."""
        return tuple(
            EarlierText(text, scored.score, scored.score - scored.gain) for text, scored in self._scores.items()
        )

    def beside(
        self,
        champion: str,
        inputs: Sequence[RecordedInput],
        known_credits: Measure,
        weight: Callable[[RecordedInput], float],
    ) -> list[LocalScore]:
        """The texts beside a champion on those inputs on which both are known.

        Args:
            champion: the text to compare with.
            inputs: recorded in any round.
            known: the credits of a text as far as they are known.
            weight: of an input.
        """
        rewrites = [scored.rewrite for text, scored in self._scores.items() if text != champion]
        scores = [compared(rewrite, champion, inputs, known_credits, weight) for rewrite in rewrites]
        return [scored for scored in scores if scored.inputs]


def parents_of(scored: Sequence[LocalScore]) -> list[LocalScore]:
    """At most `PARENTS` texts of the Pareto front, as in GEPA (Agrawal et al. 2025).

    On the front is a text that is better than the champion on some input, and that no other text matches on all of its
    inputs. First come those that are the best on most inputs.
    """
    best: dict[str, float] = {}
    for score in scored:
        for key, gain in score.by_input.items():
            best[key] = max(best.get(key, 0.0), gain)
    wins = [sum(gain == best[key] for key, gain in score.by_input.items()) for score in scored]
    front: list[LocalScore] = []
    # What matches a text on all of its inputs is the best at least as often, and comes before it.
    for at in sorted(range(len(scored)), key=lambda at: (-wins[at], -len(scored[at].by_input), -scored[at].gain)):
        gains = scored[at].by_input
        if any(gain > 0 for gain in gains.values()) and not any(_matches(other.by_input, gains) for other in front):
            front.append(scored[at])
    return front[:PARENTS]


def _matches(other: Mapping[str, float], gains: Mapping[str, float]) -> bool:
    """Whether others are at least as great on all of the same inputs."""
    return all(key in other and other[key] >= gain for key, gain in gains.items())
