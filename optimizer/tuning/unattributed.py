"""What takes the place of attribution where a search does without: every wrong answer counts against every prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attribution.cases import Attribution, Blame, ErrorType
from optimizer.proposers.examples import Example, examples_of
from tracing.systems.protocol import stage_of

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Outcome
    from tracing.systems.prompts import PromptSpec
    from tracing.systems.protocol import OperationSpec, Stage

_ERRORS: dict[Stage, ErrorType] = {
    "extract": "ExtractionError",
    "update": "UpdateError",
    "retrieve": "RetrievalError",
    "answer": "ResponseError",
}


def unattributed_examples(
    spec: PromptSpec, operations: Sequence[OperationSpec], outcomes: Sequence[Outcome]
) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """Executions of the prompt's operation behind wrong answers, and those behind right ones."""
    blame = Blame(spec.operation, None, _ERRORS[stage_of(operations, spec.name)], 0.5, "")
    wrong = [case for outcome in outcomes for case in outcome.cases if not case.passed]
    return examples_of(spec, outcomes, [Attribution(case, (blame,)) for case in wrong])


def blamed_on_all(outcomes: Sequence[Outcome], operations: Sequence[OperationSpec]) -> list[Attribution]:
    """Every wrong answer, blamed on each operation with a prompt alike."""
    steered = [operation for operation in operations if operation.prompt is not None]
    blames = tuple(Blame(operation.name, None, _ERRORS[operation.stage], 0.5, "") for operation in steered)
    return [Attribution(case, blames) for outcome in outcomes for case in outcome.cases if not case.passed]
