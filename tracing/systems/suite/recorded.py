"""Tests of the conformance suite: what a system tells of itself, and what it records."""

from __future__ import annotations

import json

from tracing.conformance import require
from tracing.recording.redaction import REDACTED, redact
from tracing.systems.description import faults_of
from tracing.systems.protocol import Answer, Memory
from tracing.systems.suite.steps import RecordedCall, SystemSteps, as_json
from tracing.systems.suite.talk import CREDENTIAL, with_credential


class RecordedConformance(SystemSteps):
    """What a system tells of itself, and what it records."""

    def test_the_description_is_whole(self) -> None:
        """Name, version and settings distinguish built memories; a rewrite must meet the contract, so the seed must
        too; blame reaches a prompt through its operation."""
        faults = faults_of(self.system())
        require(not faults, "; ".join(faults))

    def test_every_listed_operation_is_recorded(self) -> None:
        """Blame falls on recorded operations; one that never appears could never be blamed."""
        system = self.system()
        built = self._build(system)
        graph = built.graph.merge(self._answer(system, built, self._question()).graph)
        recorded = {operation.name for operation in graph.operations.values()}
        missing = [operation.name for operation in system.operations if operation.name not in recorded]
        require(not missing, f"listed, but never recorded: {missing}; recorded: {sorted(recorded)}")
        for listed in system.operations:
            for operation in graph.find_operations(name=listed.name):
                read = [graph.variables[vid] for vid in operation.input_ids()]
                prompts = [variable.name for variable in read if variable.kind == "prompt"]
                require(
                    listed.prompt is None or listed.prompt in prompts,
                    f"{listed.name} must read the prompt {listed.prompt} as a variable of kind 'prompt' and that name",
                )

    def test_messages_carry_turn_ids(self) -> None:
        """Evidence is given as turn ids; attribution finds the messages by them."""
        messages = {variable.name: variable.value for variable in self._build().graph.find_variables(kind="message")}
        for turn in self.conversation.turns():
            require(turn.id in messages, f"no variable of kind 'message' is named {turn.id!r}")
            require(
                redact(turn.text) in str(messages[turn.id]), f"the message {turn.id} does not hold the text of its turn"
            )

    def test_the_prediction_is_recorded(self) -> None:
        """A case names its prediction; attribution walks back from there."""
        system = self.system()
        built = self._build(system)
        for question in self.conversation.questions:
            step = self._answer(system, built, question)
            answer: Answer = step.result
            found = step.graph.variables.get(answer.variable or "")
            if found is None:
                raise AssertionError(
                    f"{question.id}: Answer.variable {answer.variable!r} is not a variable of the trace"
                )
            require(found.kind == "prediction", f"{question.id}: the answer's variable is of kind {found.kind!r}")
            said = redact(answer.text)
            require(found.value == said, f"{question.id}: the recorded prediction is not the answer's text")
            makers = {operation.name for operation in step.graph.producers(found.id)}
            answering = {operation.name for operation in system.operations if operation.stage == "answer"}
            require(bool(makers & answering), f"{question.id}: no operation of stage 'answer' made the prediction")

    def test_nothing_depends_on_being_recorded(self) -> None:
        """The system works the same without an active trace."""
        system, candidate, question = self.system(), self._candidate(), self._question()
        built = self._build(system)
        traced = self._answer(system, built, question)
        with self._heard() as (access, requests):
            answer = system.answer(system.build(self.conversation, candidate, access), question, candidate, access)
        require(requests == built.requests + traced.requests, "without a trace it asked the models something else")
        require(answer.text == traced.result.text, "without a trace it gave another answer")

    def test_credentials_in_a_conversation_are_sent_and_not_recorded(self) -> None:
        """The models are sent the user's own texts; a trace is made for people to read, and holds no credential."""
        system, candidate, said = self.system(), self._candidate(), with_credential(self.conversation)
        built = self._run(lambda access: system.build(said, candidate, access), "b")
        restored = RecordedCall(Memory(json.loads(as_json(built.result.state))), built.records, built.graph, [])
        for question in said.questions:
            step = self._answer(system, built, question)
            require(CREDENTIAL not in json.dumps(step.records), f"{question.id}: the trace holds a credential")
            with self._heard() as (access, requests):
                memory = system.build(said, candidate, access)
                answer = system.answer(memory, question, candidate, access)
            sent = "".join(text for request in requests for text in request.texts)
            require(REDACTED not in sent, "a model was sent the redacted text of a trace, not what was said")
            require(requests == built.requests + step.requests, "while recorded, it sent the models other texts")
            require(step.result.text == answer.text, "while recorded, it gave another answer")
            again = self._answer(self.system(), restored, question)
            require(again.requests == step.requests, f"{question.id}: the restored memory led to other requests")
