"""The result of `memtune eval` as one file that other programs read. Its keys are an interface."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from optimizer.evaluation.scores import Interval, Score
from optimizer.gating.verdict import VerdictName


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EvaluatedPrompts(_Part):
    """Prompts as they were named on the command line, with a score for each repetition and the mean of these."""

    prompts: str
    mean: float
    scores: tuple[Score, ...]


class EvaluationDifference(_Part):
    """The first prompts' score less that of `against`, with conversations as the unit of interval and test."""

    against: str
    verdict: VerdictName
    delta: float
    delta_ci: Interval | None
    p_value: float
    conversations: int


class Evaluation(_Part):
    """What was scored on which conversations; `difference` is null without other prompts to compare with."""

    system: str
    dataset: str
    model: str
    metric: str
    split: str
    evaluated: tuple[EvaluatedPrompts, ...]
    difference: EvaluationDifference | None = None
