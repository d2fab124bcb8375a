"""The dialogue and the answers that a trace records: by memtune's recorder, or as OpenTelemetry's GenAI spans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from attribution.failures import answers_in
from attribution.recordings import conversation_of
from attribution.text.content import text_of
from experiments.data.own.feedback import RecordedAnswer
from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.systems.conversations import Conversation, DialogueSession, Turn

_USER, _ASSISTANT = "user", "assistant"
_SPOKEN = (_USER, _ASSISTANT)
_UNSPOKEN = ("system", "developer", "tool")
"""Roles of messages that are no part of a dialogue."""


@dataclass(frozen=True, slots=True)
class TracedChat:
    """What a trace holds.

    Attributes:
        conversation: the dialogue, without questions.
        answers: the answers recorded.
        asked: by the id of an answer, the turns that are the question and the reply themselves.
    """

    conversation: Conversation
    answers: tuple[RecordedAnswer, ...]
    asked: Mapping[str, frozenset[str]]


def chat_of(graph: ExecutionGraph, name: str) -> TracedChat:
    """The dialogue and the answers in a graph; `name` becomes the conversation's id.

    What memtune recorded has messages, queries and predictions. Of other tools' spans, each call to a chat model is an
    exchange: the user's last message is the question, and what the model said the answer.
    """
    recorded = answers_in(graph)
    if recorded or not _calls(graph):
        names = [_name(graph, query, prediction) for query, prediction in recorded]
        shared = Counter(names)
        answers = tuple(
            RecordedAnswer(
                # A recorder of one's own may put several answers into one session, or name every query alike.
                named if shared[named] == 1 else f"{named}/{prediction.id}",
                named,
                text_of(query.value),
                text_of(prediction.value),
            )
            for named, (query, prediction) in zip(names, recorded, strict=True)
        )
        return TracedChat(conversation_of(graph, name), answers, {})
    return _of_spans(graph, name)


def _name(graph: ExecutionGraph, query: Variable, prediction: Variable) -> str:
    session = graph.sessions.get(prediction.session or "")
    return session.name if session is not None else query.name


def _calls(graph: ExecutionGraph) -> list[Operation]:
    found = [one for one in graph.operations.values() if one.kind == "llm" and _messages(graph, one, made=False)]
    return sorted(found, key=lambda one: one.started or 0.0)


def _of_spans(graph: ExecutionGraph, name: str) -> TracedChat:
    sessions: dict[str, list[Turn]] = {}
    answers: list[RecordedAnswer] = []
    asked: dict[str, frozenset[str]] = {}
    for call in _calls(graph):
        said = [each for each in _messages(graph, call, made=False) if each[0] == _USER][-1:]
        reply = _messages(graph, call, made=True)[-1:]
        if not said or not reply:
            continue
        session = graph.sessions.get(call.session or "")
        key = session.name if session is not None else name
        turns = sessions.setdefault(key, [])
        new = [
            Turn(id=f"{key}:{len(turns) + number}", speaker=role, text=text)
            for number, (role, text) in enumerate((*said, *reply), start=1)
        ]
        turns += new
        answers.append(RecordedAnswer(call.id, call.id, said[0][1], reply[0][1]))
        asked[call.id] = frozenset(turn.id for turn in new)
    made = tuple(DialogueSession(id=key, turns=tuple(turns)) for key, turns in sessions.items())
    conversation = Conversation(id=name, speakers=_SPOKEN, sessions=made or (DialogueSession(id="session", turns=()),))
    return TracedChat(conversation, tuple(answers), asked)


def _messages(graph: ExecutionGraph, call: Operation, *, made: bool) -> list[tuple[str, str]]:
    """Who said what in the messages that a call read or made; the import names a message by its role."""
    links = call.outputs if made else call.inputs
    said = [(name, graph.variables[vid]) for name, vid in links if graph.variables[vid].kind == "message"]
    spoken = [
        (_ASSISTANT if made or name == _ASSISTANT else _USER, name, text_of(one.value).strip()) for name, one in said
    ]
    return [(speaker, text) for speaker, name, text in spoken if text and name not in _UNSPOKEN]
