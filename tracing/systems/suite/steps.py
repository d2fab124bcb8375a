"""What the conformance suite lets a system read and answer: recorded, with every request to a model heard."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from unittest.mock import patch

from tracing.conformance import Conformance
from tracing.errors import CallFailedError, ContractError
from tracing.graph.execution_graph import ExecutionGraph
from tracing.llm.access import ModelAccess
from tracing.package_data import packaged_text
from tracing.recording.trace_context import trace, whole_session
from tracing.systems.calls import settled
from tracing.systems.conversations import Conversation, Question
from tracing.systems.prompts import Candidate, check_candidate
from tracing.systems.protocol import Memory, MemorySystem
from tracing.systems.suite.scripted_endpoint import Request, ScriptedEndpoint, last_text

SMALL_TALK = Conversation.model_validate_json(packaged_text("tracing.systems.suite", "small_talk.json"))
"""Two short sessions: a new fact, a changed one, and a question about each speaker."""

FACT = "Birte has taken up the bassoon."
ADDITION = "\nMind every word of the above, kestrel."
"""Ends an edited prompt, or begins it if it must end with what is filled in; plain text, so it breaks no contract."""


CREDENTIAL = "kolibri07"


def with_credential(conversation: Conversation) -> Conversation:
    """The conversation with a URL that contains a password in each turn and question."""
    address = f"https://example.org/?user=ann&password={CREDENTIAL}"
    data = conversation.model_dump(mode="json")
    for turn in (turn for dialogue in data["sessions"] for turn in dialogue["turns"]):
        turn["text"] += f" See {address}"
    for question in data["questions"]:
        question["question"] += f" See {address}"
    return Conversation.model_validate(data)


def as_tenant(tenant: str, conversation: Conversation) -> Conversation:
    """The conversation as a tenant's own: a word of theirs is in every turn, and only its own id is another."""
    data = conversation.model_dump(mode="json")
    for turn in (turn for dialogue in data["sessions"] for turn in dialogue["turns"]):
        turn["text"] += f" {tenant.capitalize()}!"
    return Conversation.model_validate({**data, "id": f"{conversation.id}-{tenant}"})


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """What one call of the system returned, recorded and requested."""

    result: Any
    records: list[dict[str, Any]]
    graph: ExecutionGraph
    requests: list[Request]


class SystemSteps(Conformance):
    """What the tests of the suite share: the system under test, its models, and its steps."""

    conversation: Conversation = SMALL_TALK
    _endpoint: ClassVar[ScriptedEndpoint | None] = None

    def system(self) -> MemorySystem:
        """A new system under test."""
        raise NotImplementedError("override system() to return your memory system")

    def reply(self, request: Mapping[str, Any]) -> str:
        """The scripted model's reply to a chat request, given its JSON body; equal requests get equal replies.

        By default it repeats the last message. A system that asks for JSON needs a reply of that form.
        """
        return last_text(request)

    def access(self) -> ModelAccess:
        """Access to the system's models, by default the scripted ones; an override must not use a response cache."""
        cls = type(self)
        if cls._endpoint is None:
            cls._endpoint = ScriptedEndpoint(self.reply)
        cls._endpoint.reply = self.reply
        return cls._endpoint.access

    @classmethod
    def teardown_class(cls) -> None:
        """Stop the scripted models."""
        if cls._endpoint is not None:
            cls._endpoint.close()
            cls._endpoint = None

    def _question(self) -> Question:
        return self.conversation.questions[-1]

    def _candidate(self, edited: str | None = None) -> Candidate:
        prompts = self.system().prompts
        baseline = {name: spec.text for name, spec in prompts.items()}
        texts = [baseline[edited] + ADDITION, f"{ADDITION.strip()}\n{baseline[edited]}"] if edited is not None else [""]
        faults = []
        for text in texts:
            candidate = baseline | ({edited: text} if edited is not None else {})
            try:
                check_candidate(prompts, candidate)
            except ContractError as error:
                faults.append(str(error))
                continue
            return candidate
        raise AssertionError(f"a harmless edit breaks a contract: {faults[0]}")

    def _build(self, system: MemorySystem | None = None, candidate: Candidate | None = None) -> RecordedCall:
        system, texts = system or self.system(), candidate or self._candidate()
        return self._run("b", system.build, self.conversation, texts)

    def _answer(
        self, system: MemorySystem, built: RecordedCall, question: Question, candidate: Candidate | None = None
    ) -> RecordedCall:
        def ask(memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Any:
            with whole_session(question.id):
                return settled(system.answer(memory, question, candidate, access))

        return self._run("a", ask, built.result, question, candidate or self._candidate(), records=built.records)

    def _run(
        self, prefix: str, method: Callable[..., Any], *arguments: object, records: Sequence[Mapping[str, Any]] = ()
    ) -> RecordedCall:
        """What a method does with these arguments and the access, which each takes last."""
        with trace(prefix=prefix) as recorder, self._heard() as (access, requests):
            recorder.adopt(records)
            result = settled(method(*arguments, access))
        return RecordedCall(result, recorder.records(), recorder.graph, requests)

    @contextlib.contextmanager
    def _heard(self, failing: int | None = None) -> Iterator[tuple[ModelAccess, list[Request]]]:
        """The access with its requests listed as they are made; the call numbered `failing`, from 1, fails."""
        access = self.access()
        if self._endpoint is not None and access is self._endpoint.access:
            with self._endpoint.heard(failing) as requests:
                yield access, requests
        else:
            with _heard_in(access, failing) as requests:
                yield access, requests


def as_json(state: Mapping[str, Any]) -> str:
    try:
        return json.dumps(state)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"the memory's state is not JSON-serialisable: {error}") from None


def sent(step: RecordedCall, text: str) -> bool:
    return any(text in "\n".join(request.texts) for request in step.requests if request.kind == "chat")


def structure(graph: ExecutionGraph) -> list[Any]:
    """The graph without times, costs and cache hits."""
    operations = [
        (op.id, op.name, op.kind, op.inputs, op.outputs, op.parent, op.session, op.status, op.calls)
        for op in graph.operations.values()
    ]
    return [*operations, *graph.variables.values(), *graph.sessions.values()]


@contextlib.contextmanager
def _heard_in(access: ModelAccess, failing: int | None) -> Iterator[list[Request]]:
    """The requests made through an access that the user of the suite provides."""
    requests: list[Request] = []
    lock = threading.Lock()
    chat, embed = access.task.chat, access.embedding.embed

    def hear(request: Request) -> None:
        with lock:
            requests.append(request)
            number = len(requests)
        if number == failing:
            raise CallFailedError("the conformance suite made this call fail")

    def heard_chat(messages: Sequence[Mapping[str, str]], **options: Any) -> Any:
        hear(Request("chat", tuple(message["content"] for message in messages), options))
        return chat(messages, **options)

    def heard_embed(texts: Sequence[str], **options: Any) -> Any:
        hear(Request("embedding", tuple(texts), options))
        return embed(texts, **options)

    with patch.object(access.task, "chat", heard_chat), patch.object(access.embedding, "embed", heard_embed):
        yield requests
