"""From attributed cases to one signal an operation: how much of the loss is its, how sure, can a prompt mend it."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from attribution.cases import BEYOND_THE_SYSTEM, Attribution, Blame
from tracing.systems.protocol import OperationSpec

REPRESENTATIVES = 5
RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Signal:
    """What the failures say of one operation.

    Attributes:
        operation: its name.
        prompt: name of the prompt that steers it, or None.
        share: its part of the loss, 0 to 1; a case counts by its confidence, divided among its blames.
        share_ci: 95 % bootstrap interval of the share over conversations; (0, 1) where one conversation says all.
        failures: cases in which it is among the decisive operations.
        loss: share × failure rate: the score that would be gained at most if it made no more errors.
        error_types: how often which error type.
        cases: question ids of the most confident cases, at most five, from different conversations where possible.
        fixable: whether a prompt can mend it.
    """

    operation: str
    prompt: str | None
    share: float
    share_ci: tuple[float, float]
    failures: int
    loss: float
    error_types: Mapping[str, int]
    cases: tuple[str, ...]
    fixable: bool


@dataclass(frozen=True, slots=True)
class Signals:
    """All operations' signals, the greatest share first, and what they leave out.

    Attributes:
        signals: one for each operation, those without a failure included.
        failures: wrong answers seen.
        abstained: those of them that could not be attributed.
        beyond: those of them that the annotation or the judge explains.
        total: cases judged, right or wrong.
    """

    signals: tuple[Signal, ...]
    failures: int
    abstained: int
    beyond: int
    total: int


def aggregate(
    attributions: Sequence[Attribution], operations: Sequence[OperationSpec], *, total_cases: int, seed: int
) -> Signals:
    """Aggregate the attributions of wrong answers; those of passed cases are left out.

    Args:
        attributions: one for each wrong answer.
        operations: the system's operations.
        total_cases: number of cases judged, to turn shares into losses of score.
        seed: of the bootstrap.
    """
    failed = [attribution for attribution in attributions if not attribution.case.passed]
    names = [spec.name for spec in operations]
    blamed = [(attribution, _within(attribution)) for attribution in failed]
    abstained = sum(attribution.abstained is not None for attribution in failed)
    beyond = sum(bool(attribution.decisive) and not blames for attribution, blames in blamed)
    weights = _weights(blamed)
    shares = _shares(weights.values(), names)
    intervals = _intervals(list(weights.values()), names, seed)
    lossy = len(failed) - abstained - beyond
    signals = [
        Signal(
            operation=spec.name,
            prompt=spec.prompt,
            share=shares[spec.name],
            share_ci=intervals[spec.name],
            failures=sum(any(blame.operation == spec.name for blame in blames) for _, blames in blamed),
            loss=shares[spec.name] * lossy / total_cases if total_cases else 0.0,
            error_types=dict(
                Counter(
                    str(blame.error_type) for _, blames in blamed for blame in blames if blame.operation == spec.name
                )
            ),
            cases=_representatives(spec.name, blamed),
            fixable=spec.prompt is not None,
        )
        for spec in operations
    ]
    signals.sort(key=lambda signal: -signal.share)
    return Signals(tuple(signals), len(failed), abstained, beyond, total_cases)


_Blamed = tuple[Attribution, tuple[Blame, ...]]
_Unit = dict[str, float]


def _within(attribution: Attribution) -> tuple[Blame, ...]:
    return tuple(blame for blame in attribution.decisive if blame.error_type not in BEYOND_THE_SYSTEM)


def _weights(blamed: Sequence[_Blamed]) -> dict[str, _Unit]:
    """By conversation, how much loss each operation is blamed for: at most 1 a case."""
    weights: dict[str, _Unit] = defaultdict(lambda: defaultdict(float))
    for attribution, blames in blamed:
        sure = sum(blame.confidence for blame in blames)
        for blame in blames:
            weights[attribution.case.conversation][blame.operation] += blame.confidence / max(1.0, sure)
    return weights


def _shares(units: Iterable[_Unit], names: Sequence[str]) -> dict[str, float]:
    summed: _Unit = defaultdict(float)
    for unit in units:
        for name, weight in unit.items():
            summed[name] += weight
    whole = sum(summed[name] for name in names)
    return {name: summed[name] / whole if whole else 0.0 for name in names}


def _intervals(units: Sequence[_Unit], names: Sequence[str], seed: int) -> dict[str, tuple[float, float]]:
    if len(units) < 2:
        return dict.fromkeys(names, (0.0, 1.0) if units else (0.0, 0.0))
    chance = random.Random(seed)  # noqa: S311 - resampling, no secret
    resampled = [_shares(chance.choices(units, k=len(units)), names) for _ in range(RESAMPLES)]
    low, high = round(0.025 * (RESAMPLES - 1)), round(0.975 * (RESAMPLES - 1))
    ordered = {name: sorted(shares[name] for shares in resampled) for name in names}
    return {name: (values[low], values[high]) for name, values in ordered.items()}


def _representatives(name: str, blamed: Sequence[_Blamed]) -> tuple[str, ...]:
    """Question ids in order of confidence, each conversation's best first, then each one's second best, and so on."""
    sure = [
        (max(blame.confidence for blame in blames if blame.operation == name), attribution.case)
        for attribution, blames in blamed
        if any(blame.operation == name for blame in blames)
    ]
    sure.sort(key=lambda item: (-item[0], item[1].question.id))
    seen: Counter[str] = Counter()
    turns: list[tuple[int, str]] = []
    for _, case in sure:
        turns.append((seen[case.conversation], case.question.id))
        seen[case.conversation] += 1
    return tuple(question for _, question in sorted(turns, key=lambda turn: turn[0])[:REPRESENTATIVES])
