"""Tests of the conformance suite: the same goes in, the same comes out."""

from __future__ import annotations

import json
import string

from tracing.conformance import require
from tracing.errors import ModelError
from tracing.recording.recorder import trace
from tracing.systems.calls import build_memory
from tracing.systems.protocol import Memory
from tracing.systems.suite.steps import RecordedCall, SystemSteps, as_json, structure


class RepeatableConformance(SystemSteps):
    """A memory depends on its conversation and prompts alone, and an answer on its memory."""

    def test_equal_arguments_give_equal_requests_and_graphs(self) -> None:
        """Caches, snapshots and paired comparisons depend on this; state left in the system breaks it."""
        system = self.system()
        first, again, fresh = self._build(system), self._build(system), self._build(self.system())
        for other, which in ((again, "a second build"), (fresh, "a build by a new system")):
            require(other.requests == first.requests, f"{which} asked the models something else")
            require(structure(other.graph) == structure(first.graph), f"{which} recorded another graph")
            require(other.result.state == first.result.state, f"{which} gave another memory")

    def test_answering_leaves_the_memory_alone(self) -> None:
        """Answers must not depend on which questions came before."""
        system = self.system()
        built = self._build(system)
        before = as_json(built.result.state)
        questions = self.conversation.questions
        forwards = {question.id: self._answer(system, built, question) for question in questions}
        backwards = {question.id: self._answer(system, built, question) for question in reversed(questions)}
        require(as_json(built.result.state) == before, "answering changed the memory's state")
        for name, step in forwards.items():
            require(step.requests == backwards[name].requests, f"{name}: asked again, it sent other requests")
            require(step.result.text == backwards[name].result.text, f"{name}: asked again, it gave another answer")

    def test_a_memory_restored_from_json_answers_the_same(self) -> None:
        """Snapshots store a memory as JSON, beside the records of its build."""
        system = self.system()
        built = self._build(system)
        state, records = json.loads(as_json(built.result.state)), json.loads(json.dumps(built.records))
        restored = RecordedCall(Memory(state), records, built.graph, [])
        for question in self.conversation.questions:
            ours, theirs = self._answer(system, built, question), self._answer(self.system(), restored, question)
            require(theirs.requests == ours.requests, f"{question.id}: the restored memory led to other requests")
            require(theirs.result.text == ours.result.text, f"{question.id}: the restored memory answers differently")
            require(structure(theirs.graph) == structure(ours.graph), f"{question.id}: it recorded another graph")

    def test_prompts_that_do_not_build_leave_the_build_alone(self) -> None:
        """`builds=False` lets memtune reuse a built memory when only that prompt changed."""
        plain = self._build()
        for name, spec in self.system().prompts.items():
            if not spec.builds:
                edited = self._build(candidate=self._candidate(name))
                require(edited.requests == plain.requests, f"{name} says builds=False but changes build requests")
                require(edited.result.state == plain.result.state, f"{name} says builds=False but changes the memory")

    def test_a_tuned_prompt_reaches_the_model(self) -> None:
        """An operation sends its prompt of the candidate verbatim around the placeholders."""
        for name, spec in self.system().prompts.items():
            candidate, system = self._candidate(name), self.system()
            built = self._build(system, candidate)
            call = built if spec.builds else self._answer(system, built, self._question(), candidate)
            pieces = [piece.strip() for piece, *_ in string.Formatter().parse(candidate[name])]
            texts = ["\n".join(request.texts) for request in call.requests if request.kind == "chat"]
            require(
                any(all(piece in text for piece in pieces) for text in texts),
                f"no {'build' if spec.builds else 'answer'} request holds the text of the tuned prompt {name}",
            )

    def test_a_model_error_leaves_the_build(self) -> None:
        """A memory that lacks the result of a failed call must never be scored."""
        calls = len(self._build().requests)
        for failing in {1, calls} if calls else ():
            system = self.system()
            with trace(), self._heard(failing) as (access, _):
                try:
                    build_memory(system, self.conversation, self._candidate(), access)
                except ModelError:
                    continue
            raise AssertionError(f"call {failing} of {calls} failed, but build returned a memory all the same")
