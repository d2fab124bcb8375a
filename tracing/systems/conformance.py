"""The conformance suite of `MemorySystem`: subclass it in a test file, and pytest checks your system against it.

    from tracing.systems.conformance import MemorySystemConformance

    class TestMyMemory(MemorySystemConformance):
        def system(self):
            return MyMemory()

        def reply(self, request):  # the JSON body of a chat request
            return "a text that makes the system store something"

The suite needs no network, no model and no test framework: a scripted endpoint on loopback stands in for the models,
for a system that uses the access as for one with its own client (`access.task.settings` has the address).
Each failure says in one line what is wrong; `problems` returns them all, without pytest.
"""

from __future__ import annotations

import json
import string
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tracing.conformance import require
from tracing.errors import ModelError
from tracing.recording.redaction import REDACTED
from tracing.recording.trace_context import trace
from tracing.systems.calls import build_memory, build_stepwise, builds_stepwise, settled
from tracing.systems.conversations import Conversation, Question, Stretch
from tracing.systems.description import faults_of
from tracing.systems.layouts import recorded_outputs, recorded_parts
from tracing.systems.protocol import (
    Answer,
    AnswersFromContext,
    BuildsFromFacts,
    HoldsEntries,
    Memory,
    MemorySystem,
    RerunsOperations,
)
from tracing.systems.recording_check import (
    message_faults,
    prediction_faults,
    prompt_faults,
    rerun_difference,
    unrecorded_operations,
)
from tracing.systems.suite.scripted_endpoint import Request
from tracing.systems.suite.steps import (
    CREDENTIAL,
    FACT,
    SMALL_TALK,
    RecordedCall,
    SystemSteps,
    as_json,
    as_tenant,
    sent,
    structure,
    with_credential,
)

__all__ = ["SMALL_TALK", "MemorySystemConformance"]

TENANTS = ("kingfisher", "bullfinch")
"""Each is a word that only its own tenant says."""


class MemorySystemConformance(SystemSteps):
    """What memtune relies on. Override `system` and `reply`, and `conversation` if your system needs another one.

    The model must make the system store something, and the conversation must cause every operation it lists.

    Example:
        >>> from experiments.systems.rag import Rag
        >>> class TestRag(MemorySystemConformance):
        ...     def system(self):
        ...         return Rag()
        >>> TestRag().problems()
        []
    """

    def test_the_description_is_whole(self) -> None:
        """Name, version and settings distinguish built memories; a rewrite must meet the contract, so the baseline must
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
        system, question = self.system(), self._question()
        built = self._build(system)
        traced = self._answer(system, built, question)
        answer, requests = self._untraced(system, self.conversation, question)
        require(requests == built.requests + traced.requests, "without a trace it asked the models something else")
        require(answer.text == traced.result.text, "without a trace it gave another answer")

    def test_credentials_in_a_conversation_are_sent_and_not_recorded(self) -> None:
        """The models are sent the user's own texts; a trace is made for people to read, and holds no credential."""
        system, candidate, conversation = self.system(), self._candidate(), with_credential(self.conversation)
        built = self._run("b", system.build, conversation, candidate)
        restored = _restored(built)
        for question in conversation.questions:
            step = self._answer(system, built, question)
            require(CREDENTIAL not in json.dumps(step.records), f"{question.id}: the trace holds a credential")
            answer, requests = self._untraced(system, conversation, question)
            sent = "".join(text for request in requests for text in request.texts)
            require(REDACTED not in sent, "a model was sent the redacted text of a trace, not what was said")
            require(requests == built.requests + step.requests, "while recorded, it sent the models other texts")
            require(step.result.text == answer.text, "while recorded, it gave another answer")
            again = self._answer(self.system(), restored, question)
            require(again.requests == step.requests, f"{question.id}: the restored memory led to other requests")

    def test_equal_arguments_give_equal_requests_and_graphs(self) -> None:
        """Caches, snapshots and paired comparisons depend on this; state left in the system breaks it."""
        system = self.system()
        first, again, fresh = self._build(system), self._build(system), self._build(self.system())
        for other, which in ((again, "a second build"), (fresh, "a build by a new system")):
            require(other.requests == first.requests, f"{which} asked the models something else")
            require(structure(other.graph) == structure(first.graph), f"{which} recorded another graph")
            self._require_equal_memories(system, first, other, f"{which} gave another memory")

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
        restored = _restored(built)
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
                fault = f"{name} says builds=False but changes the memory"
                self._require_equal_memories(self.system(), plain, edited, fault)

    def test_a_tuned_prompt_reaches_the_model(self) -> None:
        """An operation sends its prompt of the candidate verbatim around the placeholders."""
        for name, spec in self.system().prompts.items():
            candidate, system = self._candidate(name), self.system()
            built = self._build(system, candidate)
            call = built if spec.builds else self._answer(system, built, self._question(), candidate)
            pieces = [piece.strip() for piece, *_ in string.Formatter().parse(candidate[name])]
            chats = [request for request in call.requests if request.kind == "chat"]
            # The descriptions of tools and schemas are prompts, too.
            texts = ["\n".join([*request.texts, _quoted(request.options)]) for request in chats]
            require(
                any(all(piece in text or _quoted(piece)[1:-1] in text for piece in pieces) for text in texts),
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

    def test_two_tenants_never_see_each_others_memories(self) -> None:
        """A run builds and asks the memories of many conversations with one system, also at the same time."""
        system, candidate = self.system(), self._candidate()
        talks = {tenant: as_tenant(tenant, self.conversation) for tenant in TENANTS}
        built = {tenant: self._run("b", system.build, talk, candidate) for tenant, talk in talks.items()}
        for tenant, other in (TENANTS, TENANTS[::-1]):
            steps = [
                built[tenant],
                *(self._answer(system, built[tenant], question) for question in talks[tenant].questions),
            ]
            state = as_json(built[tenant].result.state)
            require(other not in state.lower(), f"the memory of one tenant holds {other!r}, which another one said")
            sent = "".join(text for step in steps for request in step.requests for text in request.texts)
            require(tenant in sent.lower(), f"no request holds {tenant!r}, which is in every turn")
            for step in steps:
                fault = f"{other!r}, which another tenant said, was sent, recorded or replied"
                require(other not in _all_of(step), fault)
        for tenant, at_once in self._built_at_once(system, talks).items():
            fault = "two memories built at once differ from each alone"
            self._require_equal_memories(system, built[tenant], at_once, fault)

    def test_a_memory_on_the_way_is_that_of_the_sessions_so_far(self) -> None:
        """Questions between sessions: `build_stepwise`, if the system has it, begins as a build of fewer sessions."""
        stepwise, candidate, sessions = self.system(), self._candidate(), self.conversation.sessions
        if not builds_stepwise(stepwise) or len(sessions) == 1:
            return
        stretches = [Stretch(sessions[:1], ()), Stretch(sessions[1:], ())]
        first, _ = self._run("b", lambda *inputs: [*build_stepwise(stepwise, *inputs)], stretches, candidate).result
        early = self.conversation.model_copy(update={"sessions": sessions[:1], "facts": (), "questions": ()})
        alone = self._run("b", self.system().build, early, candidate)
        require(first.state == alone.result.state, "the memory after the first session is not that of it alone")

    def test_given_entries_are_what_it_answers_from(self) -> None:
        """The ladder's rung after storing: `with_entries`, if the system has it."""
        system, question = self.system(), self._question()
        if not isinstance(system, HoldsEntries):
            return
        for texts in ([FACT], []):
            call = self._run("b", system.with_entries, texts)
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
        call = self._run("b", system.build_from_facts, [[FACT], []], candidate)
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
        call = self._run("a", system.answer_from, [FACT], question, candidate)
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
                call = self._run("l", system.rerun, prompt, parts, candidate)
                outputs = recorded_outputs(execution, graph)
                difference = rerun_difference(spec, parts, outputs, call.graph, repeatable=True)
                require(difference is None, difference or "")

    def _untraced(
        self, system: MemorySystem, conversation: Conversation, question: Question
    ) -> tuple[Answer, list[Request]]:
        """The answer to a question by a new memory, and all requests for it, with nothing recorded."""
        candidate = self._candidate()
        with self._heard() as (access, requests):
            memory = settled(system.build(conversation, candidate, access))
            return settled(system.answer(memory, question, candidate, access)), requests

    def _require_equal_memories(self, system: MemorySystem, one: RecordedCall, other: RecordedCall, fault: str) -> None:
        """Memories are equal if their states are, or else if every question leads to the same.

        Random ids and the time of a write are in the files of many stores, and nothing depends on them.
        """
        for question in self.conversation.questions if one.result.state != other.result.state else ():
            steps = [self._answer(system, built, question) for built in (one, other)]
            texts, requests = [step.result.text for step in steps], [step.requests for step in steps]
            require(texts[0] == texts[1], f"{fault}: {question.id}: it gave another answer")
            require(requests[0] == requests[1], f"{fault}: {question.id}: it led to other requests")
            require(
                structure(steps[0].graph) == structure(steps[1].graph), f"{fault}: {question.id}: its graph differs"
            )

    def _built_at_once(self, system: MemorySystem, talks: Mapping[str, Conversation]) -> dict[str, RecordedCall]:
        """The tenants' memories, built in a thread each."""
        candidate, access = self._candidate(), self.access()

        def build(tenant: str) -> RecordedCall:
            with trace(prefix="b") as recorder:
                memory = settled(system.build(talks[tenant], candidate, access))
            return RecordedCall(memory, recorder.records(), recorder.graph, [])

        with ThreadPoolExecutor(len(talks)) as threads:
            return dict(zip(talks, threads.map(build, talks), strict=True))


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _restored(built: RecordedCall) -> RecordedCall:
    """A built memory as it comes back from a file."""
    state, records = json.loads(as_json(built.result.state)), json.loads(json.dumps(built.records))
    return RecordedCall(Memory(state), records, built.graph, [])


def _all_of(step: RecordedCall) -> str:
    """The texts that were sent, recorded and, by an answer, replied."""
    texts = [text for request in step.requests for text in request.texts]
    return "\n".join([*texts, json.dumps(step.records), str(getattr(step.result, "text", ""))]).lower()
