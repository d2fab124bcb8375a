"""The built-in objectives, each made of what a run knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimizer.objectives.answers import AnswerObjective
from optimizer.objectives.decisions import DecisionObjective
from optimizer.objectives.extraction import ExtractionObjective

if TYPE_CHECKING:
    from optimizer.objectives.objective import Objective
    from optimizer.objectives.objectives import ObjectiveMeans


def extraction(means: ObjectiveMeans) -> Objective:
    """What the messages say that is needed survives, and nothing is made up."""
    return ExtractionObjective(means.golds)


def decision(means: ObjectiveMeans) -> Objective:
    """The decision is what a correct one makes of the same fact and the same entries."""
    return DecisionObjective(means.golds)


def answer(means: ObjectiveMeans) -> Objective:
    """The judged reply to a recorded question and context."""
    return AnswerObjective(means.judged, means.golds)
