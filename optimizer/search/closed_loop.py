"""The closed loop: attribute the champion's failures, rewrite the prompt they point to, keep what passes the gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from attribution.cases import Attribution
from attribution.signals import Signals
from optimizer.proposers.examples import Example, examples_of
from optimizer.proposers.rewrites import Rewrite, RewriteRequest
from optimizer.search.rounds import gated_rounds
from optimizer.search.selection import Choice, Edit, choose
from optimizer.tuning.results import BlameShare, blame_shares

if TYPE_CHECKING:
    from optimizer.tuning.stopped import Stopped
    from optimizer.tuning.tuning import Tuning
    from tracing.systems.prompts import PromptSpec


def closed_loop(tuning: Tuning) -> Stopped:
    """An `Optimizer` that rewrites, round by round, the prompt with the most loss that a rewrite could fix."""
    return gated_rounds(tuning, _ByBlame(tuning))


class _ByBlame:
    def __init__(self, tuning: Tuning) -> None:
        self._tuning = tuning
        self._attributions: list[Attribution] = []
        self._signals: Signals | None = None

    def look(self, n: int) -> bool:
        self._attributions, self._signals = self._tuning.attribute(n)
        return self._signals.failures > 0

    def blame(self) -> Mapping[str, BlameShare]:
        signals = self._signals.signals if self._signals is not None else ()
        return blame_shares(signals)

    def choose(self, prompts: Mapping[str, PromptSpec], history: Sequence[Edit], seed: int) -> Choice | None:
        signals = self._signals.signals if self._signals is not None else ()
        return choose(prompts, signals, history, selector=self._tuning.settings.selector, seed=seed)

    def examples(self, spec: PromptSpec) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
        return examples_of(spec, self._tuning.outcomes("train"), self._attributions)

    def propose(self, n: int, request: RewriteRequest, most: int) -> list[Rewrite]:
        return self._tuning.sources.propose(n, request, most)
