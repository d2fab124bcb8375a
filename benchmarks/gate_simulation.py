"""What the gate and the verdict together find, simulated from recorded answers.

Each trial draws conversations with replacement from those on which two sets of prompts were recorded. Exchanging the
two sides of half of them at random makes a challenger that is as good as the champion, with the churn that real prompts
have; setting some of its wrong answers right gives it a known effect.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from experiments.runs.folder import BASELINE
from optimizer.evaluation.statistics import sign_flip_p
from optimizer.gating.gate import Comparison, look_schedule
from optimizer.gating.verdict import SIGNIFICANCE
from tracing.errors import DataError
from tracing.files.opening import read_file
from tracing.systems.conversations import first_problem

Recorded = Mapping[str, Mapping[str, str]]
"""Prompts → conversation → its answers, right (+) or wrong (-); of the prompts `baseline` too."""

Row = tuple[str, str]
"""Champion's and challenger's answers to one conversation's questions, each right (+) or wrong (-)."""

EFFECTS = (0.05, 0.10, 0.15)
"""True gains in mean score that the power is simulated for."""


class _EvaluatedPrompts(BaseModel):
    prompts: str
    answers: dict[str, Annotated[str, StringConstraints(pattern="^[+-]+$")]]


class _Evaluated(BaseModel):
    evaluated: tuple[_EvaluatedPrompts, ...]


def read_recorded(*paths: Path) -> Recorded:
    """Recorded answers to draw from, of files that `memtune eval --json` wrote.

    Raises:
        DataError: one cannot be read or is none of these, or there is nothing to compare.
    """
    recorded: dict[str, dict[str, str]] = {}
    for path in paths:
        try:
            evaluated = _Evaluated.model_validate_json(read_file(path)).evaluated
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror})") from None
        except ValidationError as error:
            raise DataError(f"{path}: {first_problem(error)}; give what `memtune eval --json` wrote") from None
        for entry in evaluated:
            recorded.setdefault(entry.prompts, {}).update(entry.answers)
    named, compared = ", ".join(map(str, paths)), by_prompts(recorded)
    if not compared:
        raise DataError(f"{named}: no prompts that have a conversation in common with {BASELINE!r}")
    for name, rows in compared.items():
        if any(len(first) != len(second) for first, second in rows):
            raise DataError(f"{named}: {name}: has other questions than {BASELINE!r}; evaluate both on the same data")
        if not any("-" in side for row in rows for side in row):
            raise DataError(
                f"{named}: {name}: no answer is wrong (-), so nothing could be better; record some that are"
            )
    return recorded


def by_prompts(recorded: Recorded) -> dict[str, list[Row]]:
    """The baseline's answers beside those of other prompts, by conversation; prompts that have none are left out."""
    baseline = recorded.get(BASELINE, {})
    rows_by_prompts = {
        name: [(baseline[conversation], marks) for conversation, marks in answers.items() if conversation in baseline]
        for name, answers in recorded.items()
        if name != BASELINE
    }
    return {name: rows for name, rows in rows_by_prompts.items() if rows}


class Rates(BaseModel):
    """Shares of trials in which a challenger becomes champion and the test finds it improved, by its true effect.

    `null_rate` is that of a challenger without an effect, and `null_accepted` the share of those that become champion.
    `calls` are mean evaluations of a conversation in the search for one challenger, over all effects. `changed` is the
    share of the recorded answers that were right on one side alone.
    """

    model_config = ConfigDict(frozen=True)

    null_rate: float
    null_accepted: float
    power: dict[str, float]
    calls: float
    changed: float


class GateFigures(Rates):
    """The rates over all recorded prompts, and `by_prompts` over each, if there are several."""

    by_prompts: dict[str, Rates]
    conversations: int
    test: int
    trials: int


class Simulation(NamedTuple):
    """Whether a challenger becomes champion, after how many conversations, and whether the test finds it improved."""

    accepted: bool
    conversations: int
    improved: bool


def measure_gate(
    recorded: Recorded,
    *,
    conversations: int,
    test: int,
    trials: int,
    seed: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
) -> GateFigures:
    """Simulate gate and verdict with so many challengers (`trials`) for each effect.

    The search and the test have `conversations` and `test` of them, drawn with `seed` from the recorded answers.
    """

    def rates(rows: Sequence[Row], whose: str) -> Rates:
        drawn = random.Random(seed)  # noqa: S311 (a simulation, not a secret)
        wrong = sum(side.count("-") for row in rows for side in row) / sum(len(side) for row in rows for side in row)
        tried: dict[float, list[Simulation]] = {}
        for effect in (0.0, *EFFECTS):
            tried[effect] = []
            for number in range(trials):
                pool, held_out = (
                    [_challenged(drawn.choice(rows), effect / wrong, drawn) for _ in range(count)]
                    for count in (conversations, test)
                )
                tried[effect].append(_simulated(pool, held_out))
                if progress is not None:
                    progress(f"{whose}, effect {effect:+.2f}", number + 1, trials)
        return _rates(tried, _changed(rows))

    every = by_prompts(recorded)
    return GateFigures(
        **dict(rates([row for rows in every.values() for row in rows], "all prompts")),
        by_prompts={name: rates(rows, name) for name, rows in every.items()} if len(every) > 1 else {},
        conversations=conversations,
        test=test,
        trials=trials,
    )


def _rates(trials: Mapping[float, Sequence[Simulation]], changed: float) -> Rates:
    """The rates in the trials of each effect."""
    every = [trial for tried in trials.values() for trial in tried]
    return Rates(
        null_rate=_share([trial.accepted and trial.improved for trial in trials[0.0]]),
        null_accepted=_share([trial.accepted for trial in trials[0.0]]),
        power={
            f"{effect:.2f}": _share([trial.accepted and trial.improved for trial in trials[effect]])
            for effect in EFFECTS
        },
        calls=sum(trial.conversations for trial in every) / len(every),
        changed=changed,
    )


def _changed(rows: Sequence[Row]) -> float:
    return _share([old != new for champion, challenger in rows for old, new in zip(champion, challenger, strict=True)])


def paired(rows: Sequence[Row]) -> Comparison:
    """What the gate compares."""
    sides = [pair for champion, challenger in rows for pair in zip(champion, challenger, strict=True)]
    return Comparison(
        deltas=tuple((new.count("+") - old.count("+")) / len(old) for old, new in rows),
        gained=sides.count(("-", "+")),
        lost=sides.count(("+", "-")),
        anchors=sum(old == "+" for old, _ in sides),
    )


def _simulated(pool: Sequence[Row], held_out: Sequence[Row]) -> Simulation:
    schedule = look_schedule(len(pool))
    for count in schedule.counts:
        decision = schedule.decision(paired(pool[:count]))
        if decision is not None:
            return Simulation(decision.accepted, count, _improved(held_out))
    raise AssertionError("the last look decides")


def _improved(rows: Sequence[Row]) -> bool:
    compared = paired(rows)
    return compared.delta > 0 and sign_flip_p(compared.deltas) <= SIGNIFICANCE


def _challenged(row: Row, mended: float, drawn: random.Random) -> Row:
    """The row with its sides exchanged or not, and this share of the challenger's wrong answers set right."""
    champion, challenger = row if drawn.random() < 1 / 2 else row[::-1]
    return champion, "".join("+" if mark == "-" and drawn.random() < mended else mark for mark in challenger)


def _share(outcomes: Sequence[bool]) -> float:
    return sum(outcomes) / len(outcomes)
