"""How long a run will still take, by how long its rounds took."""

from __future__ import annotations

from collections.abc import Callable

from optimizer.evaluation.scores import SplitName


class TimeLeft:
    """Expects further rounds to take what those so far took on average, and the test what the baselines took.

    Args:
        rounds: iterations of the run.
        clock: in seconds; the run begins now.
    """

    def __init__(self, rounds: int, clock: Callable[[], float]) -> None:
        self._rounds, self._clock = rounds, clock
        self._last = clock()
        self._baselines = self._searched = 0.0
        self._done = 0
        self._tested = False

    def scored(self, split: SplitName) -> None:
        """The seed prompts were scored on a split; that of the test comes after the last round."""
        self._baselines += self._since()
        self._tested = split == "test"

    def iteration(self, number: int) -> None:
        """A round ended; optimizers side by side make more of them than were asked for."""
        self._searched += self._since()
        self._done = number
        self._rounds = max(self._rounds, number)

    def seconds(self, allowed: float | None) -> float | None:
        """Seconds left, at most `allowed`, the rest of a time budget; None if there is none and no round has ended."""
        if self._done == 0 or self._tested:
            expected = 0.0 if self._tested else None
        else:
            round_s = self._searched / self._done
            running = self._clock() - self._last
            expected = max(0.0, (self._rounds - self._done) * round_s - running) + self._baselines
        return min((one for one in (expected, allowed) if one is not None), default=None)

    def _since(self) -> float:
        now = self._clock()
        took, self._last = now - self._last, now
        return took
