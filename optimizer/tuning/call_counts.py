"""How many model calls a run made, and how many it would have made without reuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimizer.tuning.results import CallCounts, counted_money

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Evaluator
    from tracing.llm.access import ModelAccess


def call_counts(access: ModelAccess, evaluator: Evaluator) -> CallCounts:
    """The calls so far: those of evaluations, and those of proposers, judge and reruns, which nothing is reused for."""
    totals = access.meter.totals()
    made, cached = int(totals["calls_made"]), int(totals["calls_cached"])
    evaluation = evaluator.calls
    outside = made + cached - evaluation.sent - evaluation.cached
    return CallCounts(
        made=made,
        cached=cached,
        without_reuse=evaluation.without_reuse + outside,
        money=counted_money(totals["cost"]),
        empty=int(totals["empty"]),
    )
