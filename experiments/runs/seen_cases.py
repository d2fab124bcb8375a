"""The cases that a run has seen under a candidate, with the attribution of the wrong ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attribution.cases import Attribution, Case
    from attribution.survival.failure_picture import FailurePicture
    from optimizer.evaluation.evaluator import Evaluator
    from optimizer.evaluation.scores import SplitName, Splits
    from optimizer.tuning.failures import Failures
    from tracing.graph.execution_graph import ExecutionGraph
    from tracing.systems.prompts import Candidate


@dataclass(frozen=True, slots=True)
class SeenCase:
    """A judged question of a split, the graph it was answered in, and its attribution and picture, if there are any.

    `trace` is the file of the graph; None if none was kept.
    """

    split: SplitName
    case: Case
    graph: ExecutionGraph
    attribution: Attribution | None
    trace: Path | None = None
    picture: FailurePicture | None = None


def seen_cases(evaluator: Evaluator, splits: Splits, candidate: Candidate, failures: Failures) -> list[SeenCase]:
    """Every case that was evaluated with `candidate`, in the order of the splits; nothing is evaluated for it.

    Cases of validation and test are attributed here for people to read: the optimizer does not see it. With a method
    that asks a model they stay unattributed, to avoid further calls.
    """
    cases: list[SeenCase] = []
    for split, conversations in splits.named().items():
        for outcome in evaluator.known_outcomes(candidate, conversations):
            attributed = failures.known_attributions(outcome)
            pictures = failures.pictures(outcome)
            trace = evaluator.trace_of(candidate, outcome.conversation)
            for case in outcome.cases:
                qid = case.question.id
                cases.append(SeenCase(split, case, outcome.graph, attributed.get(qid), trace, pictures.get(qid)))
    return cases
