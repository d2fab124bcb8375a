"""Measures a prompt's text on the recorded inputs of its operation: one call each, instead of a whole pipeline.

A system with `rerun` executes its operation again. Of any other the recorded request is asked again (`asking_again`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from attribution.survival.flow import turns_read
from optimizer.evaluation.memories import digest
from optimizer.evaluation.system_steps import SystemSteps
from optimizer.objectives.asking_again import AskingAgain
from optimizer.objectives.objective import Credit, Objective, RecordedInput
from tracing.errors import ModelError, ReplyCutShortError, in_one_line
from tracing.recording.credentials import REDACTED
from tracing.systems.layouts import Item, beside_reply, recorded_outputs, recorded_parts
from tracing.systems.protocol import RerunsOperations
from tracing.systems.recorded_calls import recorded_calls
from tracing.systems.recording_check import rerun_difference, sees_calls

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Outcome
    from tracing.graph.execution_graph import ExecutionGraph, Operation
    from tracing.llm.access import ModelAccess
    from tracing.systems.conversations import Question
    from tracing.systems.prompts import Candidate, PromptSpec
    from tracing.systems.protocol import MemorySystem

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

Progress = Callable[[int, int], None]
"""Called with the number of inputs measured and their total."""


class LocalEvaluation:
    """Local scores of texts; a text is measured on an input once.

    Args:
        system: the system under test.
        prompts: its prompts by name.
        objectives: prompt name → the objective of its operation; prompts without one are left out.
        access: its models.

    Attributes:
        asking: asks again what was recorded; None for a system that reruns its operations.
    """

    def __init__(
        self,
        system: MemorySystem,
        prompts: Mapping[str, PromptSpec],
        objectives: Mapping[str, Objective],
        access: ModelAccess,
    ) -> None:
        self.objectives = objectives
        self._prompts, self._access = prompts, access
        self.asking = None if isinstance(system, RerunsOperations) else AskingAgain(prompts, access)
        self._steps = SystemSteps(system)
        self._credits: dict[tuple[str, str, str], Credit] = {}
        self._warned = False
        self._reruns: dict[str, bool] = {}
        """By prompt, whether the system's rerun does again what was recorded."""

    def inputs(self, prompt: str, outcomes: Sequence[Outcome]) -> list[RecordedInput]:
        """The recorded inputs of a prompt's operation at which anything is at stake, each once, in recorded order."""
        weight_of = self.objectives[prompt].weight
        recorded = recorded_inputs(self._prompts[prompt], outcomes, calls=self.asking is not None)
        at_stake = [
            execution for execution in recorded if (self._unless_failed(prompt, partial(weight_of, execution)) or 0) > 0
        ]
        return at_stake if self.asking is None else self.asking.repeatable(prompt, recorded, at_stake)

    def measure(
        self, prompt: str, text: str, inputs: Sequence[RecordedInput], *, progress: Progress | None = None
    ) -> list[Credit | None]:
        """The credit of a text for each input, in order; None where a call failed, also one of the judge or matcher.

        Requests that begin alike are sent one after the other, so that a server that keeps what prompts begin with
        computes it once.

        Raises:
            BudgetExceededError: a hard budget does not allow the next call.
        """
        candidate = self._candidate(prompt, text)

        def credit(execution: RecordedInput) -> Credit | None:
            key = prompt, text, execution.key
            if key not in self._credits:
                measured = self._unless_failed(prompt, partial(self._fresh, prompt, candidate, execution))
                if measured is None:
                    return None
                self._credits[key] = measured
            return self._credits[key]

        order = sorted(range(len(inputs)), key=lambda at: _data(inputs[at], text))
        credits: dict[int, Credit | None] = {}
        for at, result in zip(order, self._access.threads.map(credit, [inputs[at] for at in order]), strict=True):
            credits[at] = result
            if progress is not None:
                progress(len(credits), len(inputs))
        return [credits[at] for at in range(len(inputs))]

    def reruns_as_recorded(self, prompt: str, text: str, execution: RecordedInput) -> bool:
        """Whether texts can be measured on recorded inputs; where `rerun` does otherwise, a warning tells what.

        A prompt is tried once, and only where a cache answers the same request, so that it costs nothing. Where the
        call fails, nothing is known against it.
        """
        if self.asking is not None:
            return prompt not in self.asking.whole
        if not self._access.caches:
            return True
        if prompt not in self._reruns:
            spec = self._prompts[prompt]

            def rerun() -> str | None:
                name = execution.key[:12]
                graph = self._steps.rerun(self._access, prompt, execution.parts, self._candidate(prompt, text), name)
                repeatable = sees_calls(spec, graph)
                return rerun_difference(spec, execution.parts, execution.outputs, graph, repeatable=repeatable)

            difference = self._unless_failed(prompt, rerun)
            if difference is not None:
                _log.warning(
                    "%s; its rewrites are compared end to end; see what `memtune doctor --build` says", difference
                )
            self._reruns[prompt] = difference is None
        return self._reruns[prompt]

    def known_credits(self, prompt: str, text: str, inputs: Sequence[RecordedInput]) -> list[Credit | None]:
        """The credit of a text for each input, in order, as far as it was measured; no call is made."""
        return [self._credits.get((prompt, text, execution.key)) for execution in inputs]

    def recorded_credits(self, prompt: str, inputs: Sequence[RecordedInput]) -> list[float | None]:
        """For each input the credit, 0 to 1, of what was recorded; None where a judge could not be asked.

        Nothing is asked of the task model.
        """

        def recorded(execution: RecordedInput) -> float | None:
            credit = partial(self.objectives[prompt].credit, execution, execution.outputs)
            result = self._unless_failed(prompt, credit)
            return None if result is None else result.value

        return list(self._access.threads.map(recorded, inputs))

    def lost(self, prompt: str, inputs: Sequence[RecordedInput], credits: Sequence[float | None]) -> float:
        """How much of what was at stake at recorded inputs was lost there, in the unit of the objective's weights."""
        return sum(
            self.objectives[prompt].weight(execution) * (1 - credit)
            for execution, credit in zip(inputs, credits, strict=True)
            if credit is not None
        )

    def _candidate(self, prompt: str, text: str) -> Candidate:
        return {name: spec.text for name, spec in self._prompts.items()} | {prompt: text}

    def _fresh(self, prompt: str, candidate: Candidate, execution: RecordedInput) -> Credit | None:
        name = execution.question.id if execution.question is not None else execution.key[:12]
        try:
            if self.asking is not None:
                outputs = self.asking.outputs(prompt, candidate[prompt], execution, name)
            else:
                outputs = self._rerun(prompt, candidate, execution, name)
        except ReplyCutShortError as error:
            return Credit(0.0, (f"the reply was cut short: {error}",))
        return self.objectives[prompt].credit(execution, outputs)

    def _rerun(self, prompt: str, candidate: Candidate, execution: RecordedInput, name: str) -> tuple[Item, ...]:
        graph = self._steps.rerun(self._access, prompt, execution.parts, candidate, name)
        executions = graph.find_operations(name=self._prompts[prompt].operation)
        return beside_reply(recorded_outputs(executions[-1], graph)) if executions else ()

    def _unless_failed(self, prompt: str, measure: Callable[[], _T]) -> _T | None:
        """What is measured; None after a failed call. The first is warned of: many inputs fail alike."""
        try:
            return measure()
        except ModelError as error:
            if not self._warned:
                self._warned = True
                _log.warning(
                    "a recorded input of %r could not be measured: %s; such inputs are left out",
                    prompt,
                    in_one_line(error),
                )
            return None


def recorded_inputs(spec: PromptSpec, outcomes: Sequence[Outcome], *, calls: bool = False) -> list[RecordedInput]:
    """What the executions of a prompt's operation were given, each once, in recorded order.

    Inputs from which a credential was removed are left out: a model is only sent what the system was given.
    With `calls`, each has what it asked a model.
    """
    inputs: dict[str, RecordedInput] = {}
    for outcome in outcomes:
        questions = {question.id: question for question in outcome.conversation.questions}
        asked = recorded_calls(spec.name, spec.operation, outcome.graph) if calls else {}
        for execution in outcome.graph.find_operations(name=spec.operation):
            parts = recorded_parts(spec.layout, spec.contract.placeholders, execution, outcome.graph)
            question = _question(execution, outcome.graph, questions) if not spec.builds else None
            texts = {name: [(item.name, item.text) for item in items] for name, items in parts.items()}
            key = digest({"prompt": spec.name, "conversation": outcome.conversation.id, "parts": texts})
            if key not in inputs and not any(REDACTED in item.text for items in parts.values() for item in items):
                outputs = beside_reply(recorded_outputs(execution, outcome.graph))
                turns, call = turns_read(outcome.graph, execution), asked.get(execution.id)
                inputs[key] = RecordedInput(key, spec, outcome.conversation, parts, outputs, question, turns, call)
    return list(inputs.values())


def _question(execution: Operation, graph: ExecutionGraph, questions: Mapping[str, Question]) -> Question | None:
    where = graph.sessions.get(execution.session or "")
    return questions.get(where.name) if where is not None else None


def _data(execution: RecordedInput, text: str) -> list[str]:
    """What fills the placeholders of a text, in the order in which they stand in it."""
    filled = execution.prompt.layout.filled(execution.parts)
    return [filled[name] for name in sorted(filled, key=lambda name: text.rfind(f"{{{name}}}"))]
