"""Tests of the conformance suite: the optional methods of a system, where it has them."""

from __future__ import annotations

from tracing.conformance import require
from tracing.systems.layouts import recorded_outputs, recorded_parts
from tracing.systems.protocol import AnswersFromContext, BuildsFromFacts, HoldsEntries, RerunsOperations
from tracing.systems.rerun_check import rerun_difference
from tracing.systems.suite.steps import SystemSteps, as_json, sent
from tracing.systems.suite.talk import FACT


class OptionalConformance(SystemSteps):
    """The optional methods of a system, where it has them."""

    def test_given_entries_are_what_it_answers_from(self) -> None:
        """The ladder's rung after storing: `with_entries`, if the system has it."""
        system, question = self.system(), self._question()
        if not isinstance(system, HoldsEntries):
            return
        for texts in ([FACT], []):
            call = self._run(lambda access, texts=texts: system.with_entries(texts, access), "b")  # type: ignore[misc]
            as_json(call.result.state)
            step = self._answer(system, call, question)
            require(isinstance(step.result.text, str), "the answer has no text")
            require(
                all(sent(step, text) for text in texts), "the answer's request does not hold the entry it was given"
            )

    def test_given_facts_are_stored_without_extraction(self) -> None:
        """The ladder's rung after extraction: `build_from_facts`, if the system has it."""
        system, candidate = self.system(), self._candidate()
        if not isinstance(system, BuildsFromFacts):
            return
        call = self._run(lambda access: system.build_from_facts([[FACT], []], candidate, access), "b")
        as_json(call.result.state)
        extracting = {op.name for op in system.operations if op.stage == "extract" and op.prompt is not None}
        recorded = {operation.name for operation in call.graph.operations.values()}
        require(not extracting & recorded, f"facts were given, but it ran {sorted(extracting & recorded)}")
        step = self._answer(system, call, self._question())
        require(sent(step, FACT), "the answer's request does not hold the fact that was given")

    def test_a_given_context_replaces_retrieval(self) -> None:
        """The ladder's rung after retrieval: `answer_from`, if the system has it."""
        system, candidate, question = self.system(), self._candidate(), self._question()
        if not isinstance(system, AnswersFromContext):
            return
        call = self._run(lambda access: system.answer_from([FACT], question, candidate, access), "a")
        require(sent(call, FACT), "the answer's request does not hold the context that was given")
        require(sent(call, question.question), "the answer's request does not hold the question")
        retrieving = {operation.name for operation in system.operations if operation.stage == "retrieve"}
        recorded = {operation.name for operation in call.graph.operations.values()}
        require(not retrieving & recorded, "a context was given, but it retrieved")

    def test_an_operation_runs_again_on_what_was_recorded(self) -> None:
        """The same request goes out, and the operation is recorded: `rerun`, if the system has it."""
        system, candidate, question = self.system(), self._candidate(), self._question()
        if not isinstance(system, RerunsOperations):
            return
        built = self._build(system)
        graph = self._answer(system, built, question).graph
        for prompt, spec in system.prompts.items():
            for execution in graph.find_operations(name=spec.operation):
                parts = recorded_parts(spec.layout, spec.contract.placeholders, execution, graph)
                call = self._run(
                    lambda access, prompt=prompt, parts=parts: system.rerun(prompt, parts, candidate, access),  # type: ignore[misc]
                    "l",
                )
                outputs = recorded_outputs(execution, graph)
                difference = rerun_difference(spec, parts, outputs, call.graph, repeatable=True)
                require(difference is None, difference or "")
