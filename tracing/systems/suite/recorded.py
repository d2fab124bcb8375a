"""Tests of the conformance suite: what a system tells of itself, and what it records."""

from __future__ import annotations

import json

from tracing.conformance import require
from tracing.recording.redaction import REDACTED
from tracing.systems.coroutines import settled
from tracing.systems.description import faults_of
from tracing.systems.protocol import Answer, Memory
from tracing.systems.recording_check import (
    message_faults,
    prediction_faults,
    prompt_faults,
    unrecorded_operations,
)
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
        missing = unrecorded_operations(system, graph)
        require(missing is None, missing or "")
        for fault in prompt_faults(system, graph):
            require(False, fault)

    def test_messages_carry_turn_ids(self) -> None:
        """Evidence is given as turn ids; attribution finds the messages by them."""
        for fault in message_faults(self.conversation, self._build().graph):
            require(False, fault)

    def test_the_prediction_is_recorded(self) -> None:
        """A case names its prediction; attribution walks back from there."""
        system = self.system()
        built = self._build(system)
        for question in self.conversation.questions:
            step = self._answer(system, built, question)
            answer: Answer = step.result
            for fault in prediction_faults(system, answer.text, answer.variable, step.graph):
                require(False, f"{question.id}: {fault}")

    def test_nothing_depends_on_being_recorded(self) -> None:
        """The system works the same without an active trace."""
        system, candidate, question = self.system(), self._candidate(), self._question()
        built = self._build(system)
        traced = self._answer(system, built, question)
        with self._heard() as (access, requests):
            memory = settled(system.build(self.conversation, candidate, access))
            answer = settled(system.answer(memory, question, candidate, access))
        require(requests == built.requests + traced.requests, "without a trace it asked the models something else")
        require(answer.text == traced.result.text, "without a trace it gave another answer")

    def test_credentials_in_a_conversation_are_sent_and_not_recorded(self) -> None:
        """The models are sent the user's own texts; a trace is made for people to read, and holds no credential."""
        system, candidate, conversation = self.system(), self._candidate(), with_credential(self.conversation)
        built = self._run(lambda access: system.build(conversation, candidate, access), "b")
        restored = RecordedCall(Memory(json.loads(as_json(built.result.state))), built.records, built.graph, [])
        for question in conversation.questions:
            step = self._answer(system, built, question)
            require(CREDENTIAL not in json.dumps(step.records), f"{question.id}: the trace holds a credential")
            with self._heard() as (access, requests):
                memory = settled(system.build(conversation, candidate, access))
                answer = settled(system.answer(memory, question, candidate, access))
            sent = "".join(text for request in requests for text in request.texts)
            require(REDACTED not in sent, "a model was sent the redacted text of a trace, not what was said")
            require(requests == built.requests + step.requests, "while recorded, it sent the models other texts")
            require(step.result.text == answer.text, "while recorded, it gave another answer")
            again = self._answer(self.system(), restored, question)
            require(again.requests == step.requests, f"{question.id}: the restored memory led to other requests")
