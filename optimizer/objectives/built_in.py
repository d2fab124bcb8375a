"""The objective of each prompt of a system: its own, or the one for its operation's stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attribution.survival.flow import rewrites
from optimizer.objectives.answers import AnswerObjective
from optimizer.objectives.decisions import DecisionObjective
from optimizer.objectives.extraction import ExtractionObjective
from optimizer.objectives.golds import Golds

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Evaluator
    from optimizer.objectives.objective import Objective


def objectives_of(evaluator: Evaluator) -> dict[str, Objective]:
    """Prompt name → objective, for each prompt of the evaluated system whose operation's stage has one."""
    golds = Golds(verbatim=not rewrites(evaluator.system.operations))
    by_stage: dict[str, Objective] = {
        "extract": ExtractionObjective(golds),
        "update": DecisionObjective(golds),
        "answer": AnswerObjective(evaluator.judged, golds),
    }
    return {
        each.prompt: by_stage[each.stage]
        for each in evaluator.system.operations
        if each.prompt is not None and each.stage in by_stage
    }
