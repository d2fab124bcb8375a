"""What `memtune eval` and `memtune data audit` measured, as files for other programs. Their keys are an interface."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from optimizer.evaluation.ladder import Rung
from optimizer.evaluation.scores import Interval, Score
from optimizer.gating.verdict import VerdictName
from tracing.errors import DataError
from tracing.formats import read_stamped, stamped
from tracing.strict_models import StrictModel
from tracing.systems.conversations import first_problem

LADDER = "ladder.json"
"""The name of an oracle ladder in a run's folder."""

_RUNGS = TypeAdapter(tuple[Rung, ...])


class EvaluatedPrompts(StrictModel):
    """Prompts as they were named on the command line, with a score for each repetition and the mean of these.

    `answers` are those of the first repetition by conversation, each right (+) or wrong (-); tainted ones have none.
    """

    prompts: str
    mean: float
    scores: tuple[Score, ...]
    answers: dict[str, str]


class EvaluationDifference(StrictModel):
    """The first prompts' score less that of `against`, with conversations as the unit of interval and test."""

    against: str
    verdict: VerdictName
    delta: float
    delta_ci: Interval | None
    p_value: float
    conversations: int


class Evaluation(StrictModel):
    """What was scored on which conversations; `difference` is null without other prompts to compare with."""

    system: str
    dataset: str
    model: str
    metric: str
    split: str
    evaluated: tuple[EvaluatedPrompts, ...]
    difference: EvaluationDifference | None = None


def ladder_json(rungs: Sequence[Rung]) -> str:
    """The text of a ladder's file."""
    rows = [stamped(LADDER, rung) for rung in _RUNGS.dump_python(tuple(rungs), mode="json")]
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


def read_ladder(path: Path) -> Sequence[Rung]:
    """The rungs in a ladder's file."""
    try:
        return read_stamped(LADDER, path.read_bytes(), path, _RUNGS)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); make it with: memtune data audit --json") from None
    except ValidationError as error:
        raise DataError(f"{path}: {first_problem(error)}; make it with: memtune data audit --json") from None
