"""How long a run will still take, by how long its rounds took."""

from __future__ import annotations

from collections.abc import Callable

from optimizer.evaluation.scores import SplitName


class TimeLeft:
    """Expects further rounds to take what those so far took on average, and the test what the baselines took.

    The test scores the seed first, and then a champion other than the seed, which is expected to take as long.

    Args:
        rounds: iterations of the run; None if that is open: then nothing is expected before the test.
        clock: in seconds; the run begins now.
    """

    def __init__(self, rounds: int | None, clock: Callable[[], float]) -> None:
        self._rounds, self._clock = rounds, clock
        self._last = clock()
        self._baselines = self._searched = 0.0
        self._done = 0
        self._accepted = False
        self._test: float | None = None
        self._tested = False

    def scored(self, split: SplitName) -> None:
        """The seed prompts were scored on a split; that of the test comes after the last round."""
        took = self._since()
        self._baselines += took
        if split == "test":
            self._test = took if self._accepted else 0.0

    def tested(self) -> None:
        """The test ended; how long it takes to save the run is not known."""
        self._tested = True

    def iteration(self, number: int, *, accepted: bool) -> None:
        """A round ended; optimizers side by side make more of them than were asked for."""
        self._searched += self._since()
        self._accepted |= accepted
        self._done = number
        if self._rounds is not None:
            self._rounds = max(self._rounds, number)

    def seconds(self, allowed: float | None) -> float | None:
        """Seconds left, at most `allowed`, the rest of a time budget; None if they are not known."""
        if self._tested:
            return None
        running = self._clock() - self._last
        expected: float | None = None
        if self._test is not None:
            expected = max(0.0, self._test - running)
        elif self._done > 0 and self._rounds is not None:
            round_s = self._searched / self._done
            expected = max(0.0, (self._rounds - self._done) * round_s - running) + self._baselines
        return min((limit for limit in (expected, allowed) if limit is not None), default=None)

    def _since(self) -> float:
        now = self._clock()
        took, self._last = now - self._last, now
        return took
