"""Whose fault the wrong answers of a run are: by its method, each attributed once; without one, every prompt's."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attribution.attributor import AsksModel, AttributorFactory, GuardedAttributor
from attribution.cases import Attribution, Blame, ErrorType
from attribution.recordings import Recording
from optimizer.proposers.examples import Example, examples_of
from tracing.errors import BudgetExceededError
from tracing.systems.protocol import stage_of

if TYPE_CHECKING:
    from attribution.survival.failure_picture import FailurePicture
    from optimizer.evaluation.evaluator import Outcome
    from tracing.graph.execution_graph import ExecutionGraph
    from tracing.llm.access import ModelAccess
    from tracing.systems.prompts import PromptSpec
    from tracing.systems.protocol import OperationSpec, Stage

_log = logging.getLogger(__name__)


class Failures:
    """The attributions of a run's wrong answers.

    Args:
        factory: sets the method up.
        access: the models that the method may ask.
        operations: of the system.
    """

    def __init__(self, factory: AttributorFactory, access: ModelAccess, operations: Sequence[OperationSpec]) -> None:
        self._factory, self._access, self._operations = factory, access, tuple(operations)
        self._told = False
        # Keyed by the graph's id(); the graph is kept so that no other object can get the same one.
        self._known: dict[int, tuple[ExecutionGraph, dict[str, Attribution]]] = {}

    def of(self, outcome: Outcome) -> list[Attribution]:
        """The attribution of each wrong answer, in order. An exception in the method is an abstention.

        Raises:
            BudgetExceededError: a hard budget does not allow the method's next model call.
        """
        wrong = [case for case in outcome.cases if not case.passed]
        if not wrong:
            return []
        attributions = self._of_graph(outcome)
        missing = [case for case in wrong if case.question.id not in attributions]
        if missing:
            recording = Recording(outcome.graph, outcome.conversation, self._operations)
            method = GuardedAttributor(lambda: self._factory(recording, self._access))
            for case in missing:
                attributions[case.question.id] = method.attribute(case)
            if method.trouble is not None and not self._told:
                self._told = True
                _log.warning("%s; cases where it does count as abstentions", method.trouble)
        return [attributions[case.question.id] for case in wrong]

    def known_attributions(self, outcome: Outcome) -> dict[str, Attribution]:
        """The attributions to show people, by question id; no model is asked for them.

        A method that asks a model is not run on further cases: only what the optimizer had attributed is included.
        """
        if not isinstance(self._factory, AsksModel):
            with contextlib.suppress(BudgetExceededError):
                self.of(outcome)
        return dict(self._of_graph(outcome))

    def pictures(self, outcome: Outcome) -> dict[str, FailurePicture]:
        """The pictures of the known attributions, by question id."""
        from attribution.survival.survival_method import pictures_of

        attributions = self._of_graph(outcome)
        recording = Recording(outcome.graph, outcome.conversation, self._operations)
        return dict(zip(attributions, pictures_of(recording, attributions.values()), strict=True))

    def _of_graph(self, outcome: Outcome) -> dict[str, Attribution]:
        return self._known.setdefault(id(outcome.graph), (outcome.graph, {}))[1]


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
