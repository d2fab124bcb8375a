"""From attributed cases to one signal per operation: its share of the loss, how sure, and can a prompt fix it."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from attribution.cases import OUTSIDE_THE_SYSTEM, Attribution, Blame, Case
from attribution.confidence_intervals import Interval, middle, wilson_interval
from tracing.systems.protocol import OperationSpec, Stage

RESAMPLES = 1000
REPRESENTATIVES = 5


@dataclass(frozen=True, slots=True)
class Signal:
    """What the failures show about one operation.

    Attributes:
        operation: its name.
        prompt: name of the prompt that steers it, or None.
        share: its share of the loss, 0 to 1; a case counts by its confidence, divided among its blames.
        share_ci: 95 % interval of the share, bootstrapped over conversations and at least that of independent failures;
            (0, 1) if there is only one conversation.
        failures: cases in which it is among the decisive operations.
        loss: share × failure rate: the most the score could gain if it made no more errors.
        loss_ci: 95 % interval of the loss, likewise; (0, failure rate) if there is only one conversation.
        first: share of the bootstrap's resamples in which its share is the greatest: how stable its rank is; None if
            there is only one conversation.
        error_types: number of these cases by error type.
        cases: question ids of the most confident cases, at most five, from different conversations where possible.
        fixable: whether a prompt can fix it.
        confirmed: share of its replayed blames, by confidence, that replay confirms; None if none was replayed.
        attainable: what a faultless stage would gain by the oracle ladder; None if that was not run.
        beside: its part of the loss of the operations of its stage that no prompt steers. What a plain search misses,
            only the prompts around it can find: one that words its query, or one that is to see that it is not enough.
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
    loss_ci: tuple[float, float] = (0.0, 1.0)
    first: float | None = None
    confirmed: float | None = None
    attainable: float | None = None
    beside: float = 0.0


@dataclass(frozen=True, slots=True)
class PromptSignal:
    """The loss of all operations that one prompt steers, with its 95 % bootstrap interval over conversations."""

    prompt: str
    loss: float
    loss_ci: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Signals:
    """All operations' signals, the greatest share first, and what they leave out.

    Attributes:
        signals: one for each operation, those without a failure included.
        failures: wrong answers seen.
        abstained: those of them that could not be attributed.
        outside: those of them due to the annotation, the judge, or a step that is no operation of the system.
        total: cases judged, right or wrong.
        prompts: the loss by prompt, the greatest first.
    """

    signals: tuple[Signal, ...]
    failures: int
    abstained: int
    outside: int
    total: int
    prompts: tuple[PromptSignal, ...] = ()

    @property
    def fixable_share(self) -> float:
        """Share of the loss, 0 to 1, from operations that a prompt can fix."""
        return sum(signal.share for signal in self.signals if signal.fixable)


def aggregate(
    attributions: Sequence[Attribution],
    operations: Sequence[OperationSpec],
    *,
    total_cases: int,
    seed: int,
    conversations: int | None = None,
    gains: Mapping[Stage, float] | None = None,
) -> Signals:
    """Aggregate the attributions of wrong answers; those of passed cases are left out.

    Args:
        attributions: one for each wrong answer.
        operations: the system's operations.
        total_cases: number of cases judged, to turn shares into losses of score.
        seed: of the bootstrap.
        conversations: number of conversations judged, so that those without a failure count in the intervals; by
            default only those with a failure count.
        gains: by stage, what a faultless one would gain, from the oracle ladder (`optimizer.evaluation.ladder`).
    """
    failed = [attribution for attribution in attributions if not attribution.case.passed]
    names = [spec.name for spec in operations]
    blamed = [(attribution, _within(attribution, names)) for attribution in failed]
    abstained = sum(attribution.abstained is not None for attribution in failed)
    outside = sum(bool(attribution.decisive) and not blames for attribution, blames in blamed)
    lossy = [attribution.case.conversation for attribution, blames in blamed if blames]
    weights = _weights(blamed)
    # Sorted, so that the same failures have the same intervals in whatever order they were judged.
    units = [_Unit(weight, lossy.count(conversation)) for conversation, weight in sorted(weights.items())]
    units += [_Unit({}, 0)] * max(0, (conversations or 0) - len(units))
    rate = len(lossy) / total_cases if total_cases else 0.0
    shares = _shares(weights.values(), names)
    resampled = _resampled(units, names, seed)
    scale = rate / (len(lossy) / len(units)) if lossy else 0.0

    def losses_ci(operations: Collection[str]) -> Interval:
        share = sum(shares[name] for name in operations)
        return _interval([sample.loss(operations) * scale for sample in resampled], share, len(lossy), most=rate)

    steered_in = Counter(spec.stage for spec in operations if spec.prompt is not None)
    unsteered = {
        stage: sum(shares[spec.name] for spec in operations if spec.stage == stage and spec.prompt is None) * rate
        for stage in steered_in
    }
    signals = [
        Signal(
            operation=spec.name,
            prompt=spec.prompt,
            share=shares[spec.name],
            share_ci=_interval(
                [sample.shares[spec.name] for sample in resampled],
                shares[spec.name],
                len(lossy),
                most=1.0 if units else 0.0,
            ),
            failures=sum(any(blame.operation == spec.name for blame in blames) for _, blames in blamed),
            loss=shares[spec.name] * rate,
            error_types=_error_types(spec.name, blamed),
            cases=_representatives(spec.name, blamed),
            fixable=spec.prompt is not None,
            loss_ci=losses_ci((spec.name,)),
            first=_first(spec.name, resampled),
            confirmed=_confirmed(spec.name, blamed),
            attainable=(gains or {}).get(spec.stage),
            beside=unsteered[spec.stage] / steered_in[spec.stage] if spec.prompt is not None else 0.0,
        )
        for spec in operations
    ]
    signals.sort(key=lambda signal: -signal.share)
    steered = {prompt: [s for s in signals if s.prompt == prompt] for prompt in {s.prompt for s in signals if s.prompt}}
    prompts = [
        PromptSignal(prompt, sum(signal.loss for signal in own), losses_ci([signal.operation for signal in own]))
        for prompt, own in steered.items()
    ]
    prompts.sort(key=lambda signal: (-signal.loss, signal.prompt))
    return Signals(tuple(signals), len(failed), abstained, outside, total_cases, tuple(prompts))


_Blamed = tuple[Attribution, tuple[Blame, ...]]
_Weight = dict[str, float]


@dataclass(frozen=True, slots=True)
class _Unit:
    """One conversation: the loss each operation is blamed for, and the wrong answers that operations explain."""

    weight: Mapping[str, float]
    lossy: int


@dataclass(frozen=True, slots=True)
class _Resample:
    """The shares in one resample, and the mean number of wrong answers of a conversation."""

    shares: Mapping[str, float]
    lossy: float

    def loss(self, operations: Iterable[str]) -> float:
        return sum(self.shares[name] for name in operations) * self.lossy


def _within(attribution: Attribution, names: Collection[str]) -> tuple[Blame, ...]:
    """The blames on operations of the system; a trace may hold others too, whose loss is not that of these."""
    return tuple(
        blame
        for blame in attribution.decisive
        if blame.error_type not in OUTSIDE_THE_SYSTEM and blame.operation in names
    )


def _weights(blamed: Sequence[_Blamed]) -> dict[str, _Weight]:
    """By conversation, how much loss each operation is blamed for: at most 1 a case."""
    weights: dict[str, _Weight] = defaultdict(lambda: defaultdict(float))
    for attribution, blames in blamed:
        sure = sum(blame.confidence for blame in blames)
        for blame in blames:
            weights[attribution.case.conversation][blame.operation] += blame.confidence / max(1.0, sure)
    return weights


def _shares(weights: Iterable[Mapping[str, float]], names: Sequence[str]) -> dict[str, float]:
    summed: _Weight = defaultdict(float)
    for unit in weights:
        for name, weight in unit.items():
            summed[name] += weight
    whole = sum(summed[name] for name in names)
    return {name: summed[name] / whole if whole else 0.0 for name in names}


def _resampled(units: Sequence[_Unit], names: Sequence[str], seed: int) -> list[_Resample]:
    """Bootstrap resamples of the conversations; none where there are fewer than two."""
    if len(units) < 2:
        return []
    chance = random.Random(seed)  # noqa: S311 - resampling, no secret
    drawn = [chance.choices(units, k=len(units)) for _ in range(RESAMPLES)]
    return [
        _Resample(_shares((unit.weight for unit in some), names), sum(unit.lossy for unit in some) / len(some))
        for some in drawn
    ]


def _interval(values: Sequence[float], share: float, failures: int, *, most: float) -> Interval:
    """The middle 95 % of the resampled values of a share, in parts of `most`; its whole range if there are none.

    Where conversations happen to be alike, it is no narrower than that of the share among independent failures.
    """
    if not values:
        return 0.0, most
    low, high = middle(values)
    floor = wilson_interval(min(1.0, share), failures) if failures else (0.0, 0.0)
    return min(low, most * floor[0]), max(high, most * floor[1])


def _first(name: str, resampled: Sequence[_Resample]) -> float | None:
    leads = [sample.shares[name] > 0 and sample.shares[name] >= max(sample.shares.values()) for sample in resampled]
    return sum(leads) / len(leads) if leads else None


def _of(name: str, blamed: Iterable[_Blamed]) -> list[tuple[Case, Blame]]:
    """The cases that an operation is blamed for, each with its most confident blame."""
    own = ((attribution.case, [blame for blame in blames if blame.operation == name]) for attribution, blames in blamed)
    return [(case, max(blames, key=lambda blame: blame.confidence)) for case, blames in own if blames]


def _error_types(name: str, blamed: Iterable[_Blamed]) -> dict[str, int]:
    own = ({blame.error_type for blame in blames if blame.operation == name} for _, blames in blamed)
    return dict(Counter(str(error_type) for types in own for error_type in sorted(types)))


def _confirmed(name: str, blamed: Iterable[_Blamed]) -> float | None:
    replayed = [blame for _, blames in blamed for blame in blames if blame.operation == name and blame.verdict]
    whole = sum(blame.confidence for blame in replayed)
    confirmed = sum(blame.confidence for blame in replayed if blame.verdict == "confirmed")
    return confirmed / whole if whole else None


def _representatives(name: str, blamed: Sequence[_Blamed]) -> tuple[str, ...]:
    """Question ids in order of confidence, each conversation's best first, then each one's second best, and so on."""
    sure = [(blame.confidence, case) for case, blame in _of(name, blamed)]
    sure.sort(key=lambda blamed_case: (-blamed_case[0], blamed_case[1].question.id))
    counts: Counter[str] = Counter()
    turns: list[tuple[int, str]] = []
    for _, case in sure:
        turns.append((counts[case.conversation], case.question.id))
        counts[case.conversation] += 1
    return tuple(question for _, question in sorted(turns, key=lambda turn: turn[0])[:REPRESENTATIVES])
