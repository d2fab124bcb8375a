"""One prompt's rewrites compared on recorded inputs, with the champion as the common reference, and the pool of them.

Inputs alternate between conversations, since those of one conversation are not independent. A rewrite that shows
content of a conversation is not scored on it.

What a text is credited with on a recorded input does not depend on the round. So an input that is recorded again, under
the same other prompts or because they made no difference to it, has the credits of every text that ever met it.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from optimizer.objectives.objective import Credit, RecordedInput
from optimizer.proposers.rewrites import EarlierText, Rewrite
from optimizer.proposers.turns import by_turns

Measure = Callable[[str, Sequence[RecordedInput]], Sequence[Credit | None]]
"""Measures a text on recorded inputs: credits in order, None where a call failed."""


INPUT_SPREAD = 0.35
"""Standard deviation of what a text gains on single inputs. A choice."""


@dataclass(frozen=True, slots=True)
class LocalScore:
    """A rewrite beside the champion on the inputs that both were measured on.

    Attributes:
        rewrite: the text.
        score: weighted mean credit, 0 to 1.
        gain: the same less the champion's, on the same inputs.
        inputs: number of inputs.
        by_conversation: conversation id → gain on its inputs.
        by_input: key of an input → gain on it.
        error: standard error of the gain, with the conversation as unit; 0 if nothing was measured, and 1 if all inputs
            are of one conversation.
        nearer: how much nearer its outputs come to the right ones than the champion's, on the same inputs.
    """

    rewrite: Rewrite
    score: float
    gain: float
    inputs: int
    by_conversation: Mapping[str, float]
    by_input: Mapping[str, float] = field(default_factory=dict)
    error: float = 0.0
    nearer: float = 0.0

    @property
    def noise(self) -> float:
        """The standard error to reckon with: that of few inputs, which chance can make 0, is half what is usual."""
        return math.sqrt((self.error**2 + usual_error(self.inputs) ** 2) / 2)


def usual_error(inputs: int) -> float:
    """The standard error of a gain on so many inputs, before they are measured."""
    return INPUT_SPREAD / math.sqrt(inputs)


def alternating(inputs: Sequence[RecordedInput], seed: int) -> list[RecordedInput]:
    """The inputs in random order, one of each conversation in turn."""
    drawn = random.Random(seed)  # noqa: S311 (a draw, not a secret)
    groups: dict[str, list[RecordedInput]] = defaultdict(list)
    for recorded in inputs:
        groups[recorded.conversation.id].append(recorded)
    queues = list(groups.values())
    for queue in queues:
        drawn.shuffle(queue)
    drawn.shuffle(queues)
    return list(by_turns(queues))


def spread(inputs: Sequence[RecordedInput], credits: Sequence[float | None]) -> list[RecordedInput]:
    """The inputs in an order in which any first few of them are spread evenly over the credits.

    A few that were all right, where most are wrong, would show of no text that it gains. Their places among the inputs
    in order of credit are van der Corput's sequence (1935), from the middle on.

    Args:
        inputs: in any order.
        credits: what was recorded for each of them is credited with; None where that is not known.
    """
    known = [-1.0 if credit is None else credit for credit in credits]
    order = sorted(range(len(inputs)), key=known.__getitem__)
    size = 1 << len(order).bit_length()
    digits = size.bit_length() - 1
    reversed_digits = (int(f"{number:0{digits}b}"[::-1], 2) for number in range(size))
    places = dict.fromkeys((at + size // 2) % size * len(order) // size for at in reversed_digits)
    return [inputs[order[place]] for place in places] if order else []


def compared(
    rewrite: Rewrite,
    champion: str,
    inputs: Sequence[RecordedInput],
    measure: Measure,
    weight: Callable[[RecordedInput], float],
) -> LocalScore:
    """A rewrite and the champion on the same inputs, except those whose content the rewrite shows.

    Raises:
        BudgetExceededError: a hard budget does not allow the calls.
    """
    usable = [recorded for recorded in inputs if recorded.conversation.id not in rewrite.shows]
    new, old = measure(rewrite.text, usable), measure(champion, usable)
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    by_input: dict[str, float] = {}
    nearer = 0.0
    for recorded, after, before in zip(usable, new, old, strict=True):
        if after is None or before is None:
            continue
        by_input[recorded.key] = after.value - before.value
        at_stake = weight(recorded)
        nearer += at_stake * (after.near - before.near)
        total = sums[recorded.conversation.id]
        total[0] += at_stake
        total[1] += at_stake * after.value
        total[2] += at_stake * before.value
    stake = sum(total[0] for total in sums.values())
    if not stake:
        return LocalScore(rewrite, 0.0, 0.0, 0, {})
    score = sum(total[1] for total in sums.values()) / stake
    gain = score - sum(total[2] for total in sums.values()) / stake
    apart = {name: (total[1] - total[2]) / total[0] for name, total in sums.items()}
    error = _error([(sums[name][0], difference - gain) for name, difference in apart.items()])
    return LocalScore(rewrite, score, gain, len(by_input), apart, by_input, error, nearer / stake)


def _error(groups: Sequence[tuple[float, float]]) -> float:
    """Standard error of a weighted mean, of groups with their weight and their distance to it."""
    count, total = len(groups), sum(weight for weight, _ in groups)
    if count < 2:
        return 1.0
    return math.sqrt(count / (count - 1) * sum((weight * off) ** 2 for weight, off in groups)) / total


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
            known_credits: the credits of a text as far as they are known.
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
