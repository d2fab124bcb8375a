"""Names and values of a run's metrics in MLflow, whose UI makes a section of what stands before the `/`.

Sections are sorted by name, and metrics within them: `answers`, with the test first and the curve of the validation
last, comes before `blame`, `measures`, `objectives`, `settings`, and `spending`, what it cost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256

from attribution.signals import Signal
from optimizer.evaluation.scores import Score, SplitName
from optimizer.gating.verdict import Verdict
from optimizer.tuning.results import LoopResult
from optimizer.tuning.round import RoundRecord

LONGEST_KEY = 100
"""Longest name of an operation in that of a curve; MLflow takes 250 characters in all."""

VALIDATION = "answers/validation_score"
"""The champion's validation score by round: the curve of the run's progress."""

COSTS = ("calls_made", "calls_cached", "tokens")


def side_scores(split: SplitName, score: Score) -> dict[str, float]:
    """A split's scores in the run of a side, `baseline` or `champion`."""
    others = {f"measures/{split}_{name}": getattr(score, name) for name in ("em", "f1", "contains")}
    return {f"answers/{split}_score": score.score, **others}


def parent_score(split: SplitName, side: str, score: Score) -> dict[str, float]:
    """A split's score under a side's prompts, in the parent run."""
    return {f"answers/{split}_{side}": score.score}


def side_cost(result: LoopResult, side: str) -> dict[str, float]:
    """What a test question costs with a side's prompts."""
    tokens = result.tokens_per_question.get(side)
    return {} if tokens is None else {"spending/tokens_per_question": tokens}


def shares(signals: Sequence[Signal]) -> dict[str, float]:
    """Each operation's share of the loss."""
    return {blame_key(signal.operation): signal.share for signal in signals}


def round_values(record: RoundRecord) -> dict[str, float]:
    """A round's metrics without score, cost and blame, which is in the round's own run and in a chart."""
    values: dict[str, float] = {}
    for name, alignment in record.alignment.items():
        if alignment.correlation is not None:
            values[f"objectives/{name}_alignment"] = alignment.correlation
        if alignment.ci is not None:
            values |= {f"objectives/{name}_alignment_{end}": at for end, at in _ends(alignment.ci)}
    changed = {name: change.after for name, change in record.changed.items()}
    return values | {f"settings/{name}": float(value) for name, value in changed.items() if not isinstance(value, str)}


def spent_so_far(records: Sequence[RoundRecord]) -> Iterator[tuple[int, dict[str, float]]]:
    """After each round, its number and what it and those before it cost."""
    spent = dict.fromkeys(COSTS, 0)
    for record in records:
        spent = {name: spent[name] + getattr(record, name) for name in COSTS}
        yield record.n, {f"spending/{name}_so_far": float(value) for name, value in spent.items()}


def verdict_values(verdict: Verdict) -> dict[str, float]:
    """The figures of the verdict; they are no curves, so that nothing is drawn from baseline to champion."""
    values = {"difference": verdict.delta}
    if verdict.delta_ci is not None:
        values |= {f"difference_{end}": at for end, at in _ends(verdict.delta_ci)}
    values |= {"p_value": verdict.p_value, "power": verdict.power}
    if verdict.bound is not None:
        values["difference_at_least"] = verdict.bound
    if verdict.noise is not None:
        values["noise"] = verdict.noise.noise
    for whose, alone in (("prompts", verdict.prompts_alone), ("settings", verdict.settings_alone)):
        if alone is not None:
            values |= {f"{whose}_alone_difference": alone.delta, f"{whose}_alone_p_value": alone.p_value}
    return {f"answers/test_{name}": value for name, value in values.items()}


def run_costs(result: LoopResult) -> dict[str, float]:
    """What the whole run has cost, and each of several optimizers."""
    calls = result.calls
    parts = result.search.by_optimizer if result.search is not None else {}
    named = {re.sub(r"[^\w.-]", "-", name): cost for name, cost in parts.items()}
    return {
        **({"spending/run_money": calls.money} if calls.money is not None else {}),
        **{f"spending/{side}_tokens_per_question": tokens for side, tokens in result.tokens_per_question.items()},
        "spending/run_calls_made": calls.made,
        "spending/run_calls_cached": calls.cached,
        "spending/run_calls_without_reuse": calls.without_reuse,
        "spending/run_calls_estimated": calls.estimated,
        "spending/run_unusable_replies": calls.unusable_replies.total,
        **{
            f"spending/unusable_replies_{reason.replace(' ', '_')}": float(count)
            for reason, count in calls.unusable_replies.by_reason.items()
        },
        **{f"spending/search_calls_{name}": float(cost.calls) for name, cost in named.items()},
        **{f"spending/search_tokens_{name}": float(cost.tokens) for name, cost in named.items()},
    }


def blame_key(operation: str) -> str:
    """Name of the curve of an operation's share of the loss: MLflow does not take every character, nor a long name."""
    safe_name = re.sub(r"[^\w.\- :]", "-", operation)
    if safe_name == operation and operation.strip(". ") and len(operation) <= LONGEST_KEY:
        return f"blame/{operation}"
    return f"blame/{safe_name[:LONGEST_KEY]}-{sha256(operation.encode('utf-8', 'replace')).hexdigest()[:8]}"


def before_a_step(last: Mapping[str, float], values: Mapping[str, float]) -> dict[str, float]:
    """The last values of those that have changed since.

    Repeated at the new step, just before the new values, they keep a curve level between two steps: a champion's
    score holds until another replaces it, and a line from one to the next would show a climb that was none.
    """
    return {name: last[name] for name, value in values.items() if name in last and last[name] != value}


def _ends(interval: tuple[float, float]) -> zip[tuple[str, float]]:
    return zip(("low", "high"), interval, strict=True)
