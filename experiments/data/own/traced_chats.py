"""The dialogues and the answers that a trace records: by memtune's recorder, or as OpenTelemetry's GenAI spans."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attribution.failures import answers_in
from attribution.recordings import conversation_of
from attribution.text.content import text_of
from experiments.data.own.feedback import RecordedAnswer
from experiments.data.own.span_chats import Exchange, exchanges_in
from tracing.graph.elements import Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.speech import ASSISTANT, USER
from tracing.systems.conversations import Conversation, DialogueSession, Turn


@dataclass(frozen=True, slots=True)
class TracedChat:
    """A dialogue of a trace.

    Attributes:
        conversation: the dialogue, without questions.
        answers: those recorded in it.
        question_turns: by the id of an answer, the turns that are the question and the reply themselves.
    """

    conversation: Conversation
    answers: tuple[RecordedAnswer, ...]
    question_turns: Mapping[str, frozenset[str]]


def chats_of(graph: ExecutionGraph, name: str) -> tuple[list[TracedChat], int]:
    """The dialogues and the answers in a graph, and how many calls in it are no part of a dialogue.

    What memtune recorded is one conversation of this `name`, with messages, queries and predictions. Other tools' spans
    are a conversation for each user or thread that they name; several are named `NAME/ID`.
    """
    recorded = answers_in(graph)
    exchanges, aside = ([], 0) if recorded else exchanges_in(graph)
    if exchanges:
        chats: dict[str, list[Exchange]] = defaultdict(list)
        for exchange in exchanges:
            chats[exchange.chat].append(exchange)
        several = len(chats) > 1
        return [
            _chat(f"{name}/{key}" if several and key else name, chat_exchanges) for key, chat_exchanges in chats.items()
        ], aside
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
    return [TracedChat(conversation_of(graph, name), answers, {})], aside


def _name(graph: ExecutionGraph, query: Variable, prediction: Variable) -> str:
    session = graph.sessions.get(prediction.session or "")
    return session.name if session is not None else query.name


def _chat(name: str, exchanges: Sequence[Exchange]) -> TracedChat:
    sessions: dict[str, list[Turn]] = {}
    question_turns: dict[str, frozenset[str]] = {}
    for exchange in exchanges:
        key = exchange.session or name
        turns = sessions.setdefault(key, [])
        new = [
            Turn(id=f"{key}:{len(turns) + number}", speaker=role, text=text)
            for number, (role, text) in enumerate(((USER, exchange.question), (ASSISTANT, exchange.reply)), start=1)
        ]
        turns += new
        question_turns[exchange.call.id] = frozenset(turn.id for turn in new)
    dialogue_sessions = tuple(DialogueSession(id=key, turns=tuple(turns)) for key, turns in sessions.items())
    answers = tuple(
        RecordedAnswer(exchange.call.id, exchange.call.id, exchange.question, exchange.reply) for exchange in exchanges
    )
    return TracedChat(
        Conversation(id=name, speakers=(USER, ASSISTANT), sessions=dialogue_sessions), answers, question_turns
    )
