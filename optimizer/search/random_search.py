"""Random search: the control of the closed loop. Prompts and rewrites are drawn; gate and verdict are the same."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from optimizer.proposers.examples import Example
from optimizer.proposers.rewrites import Rewrite, RewriteRequest
from optimizer.search.rounds import gated_rounds
from optimizer.search.selection import Choice, Edit
from optimizer.tuning.results import BlameShare
from optimizer.tuning.unattributed import unattributed_examples

if TYPE_CHECKING:
    from optimizer.tuning.stopped import Stopped
    from optimizer.tuning.tuning import Tuning
    from tracing.systems.prompts import PromptSpec


def random_search(tuning: Tuning) -> Stopped:
    """An `Optimizer` without attribution: each round draws a prompt, and rewrites from those all sources offer."""
    return gated_rounds(tuning, _ByChance(tuning))


class _ByChance:
    def __init__(self, tuning: Tuning) -> None:
        self._tuning = tuning

    def look(self, n: int) -> bool:
        return any(not case.passed for outcome in self._tuning.outcomes("train") for case in outcome.cases)

    def blame(self) -> Mapping[str, BlameShare]:
        return {}

    def choose(self, prompts: Mapping[str, PromptSpec], history: Sequence[Edit], seed: int) -> Choice | None:
        if not prompts:
            return None
        drawn = random.Random(seed).choice(sorted(prompts))  # noqa: S311 (a draw, not a secret)
        return Choice(drawn, None, 0.0, "drawn at random")

    def examples(self, spec: PromptSpec) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
        return unattributed_examples(spec, self._tuning.operations, self._tuning.outcomes("train"))

    def propose(self, n: int, request: RewriteRequest, most: int) -> list[Rewrite]:
        return self._tuning.sources.draw(request, most)
