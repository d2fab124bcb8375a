"""Examples without attribution: every wrong answer is blamed on the prompt to rewrite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attribution.cases import Attribution, Blame, ErrorType
from optimizer.proposers.examples import Example, examples_of

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
    stage = next(each.stage for each in operations if each.prompt == spec.name)
    blame = Blame(spec.operation, None, _ERRORS[stage], 0.5, "")
    wrong = [case for outcome in outcomes for case in outcome.cases if not case.passed]
    return examples_of(spec, outcomes, [Attribution(case, (blame,)) for case in wrong])
