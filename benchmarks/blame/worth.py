"""What a candidate is truly worth under the rules: computed, so that no search is judged by a sample of questions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, lru_cache

from benchmarks.blame.pipelines import Pipeline, PipelineStep
from benchmarks.blame.rules import Demand, Statement, chance, demands, rules
from benchmarks.blame.stories import Stories
from optimizer.proposers.template import take_apart
from tracing.systems.prompts import Candidate

_REFERENCE = range(-20, 0)
"""Seeds of the stories that questions are counted in; no search meets them."""


class Worth:
    """The share of questions that a system answers rightly, with the model of one seed, over all its wordings."""

    def __init__(self, pipeline: Pipeline, seed: int) -> None:
        self._pipeline, self._seed = pipeline, seed

    def of(self, candidate: Candidate) -> float:
        """The worth of a candidate, from 0 to 1."""
        demanded = {step: _demands(candidate[step.prompt]) for step in self._pipeline.steps}
        total = sum(count * self._right(statement, demanded) for statement, count in _questions().items())
        return total / _questions().total()

    def _right(self, statement: Statement, demanded: Mapping[PipelineStep, tuple[Demand, ...]]) -> float:
        def often(step: PipelineStep) -> float:
            return chance(self._seed, step.operation, demanded[step], statement)

        pipeline, first = self._pipeline, rules().model.found_first
        passed = math.prod(
            often(step) for step in pipeline.steps if step.work not in ("check", "ask", "begin", "revise")
        )
        passed *= math.prod(map(often, pipeline.work("begin" if statement.session == 1 else "revise")))
        if pipeline.work("check"):
            passed *= first + (1 - first) * math.prod(
                often(step) for step in pipeline.steps if step.work in ("check", "ask")
            )
        return passed


@cache
def _questions() -> Counter[Statement]:
    """What questions ask for, apart from the words."""
    counts: Counter[Statement] = Counter()
    for seed in _REFERENCE:
        for matter in Stories(seed).matters.values():
            last = matter.statements[-1]
            counts[replace(last, key="", value="", earlier=last.earlier and "")] += 1
    return counts


@lru_cache(maxsize=4096)
def _demands(text: str) -> tuple[Demand, ...]:
    return demands("\n".join(take_apart(text).instructions))
