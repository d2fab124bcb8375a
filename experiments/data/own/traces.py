"""Production traces as conversations: the dialogue that was recorded, and the answers that users gave feedback on.

A right answer is its own gold answer; of a wrong one, the correction is. A wrong answer that nobody corrected cannot
be scored again, so it is left out here; `memtune attribute FOLDER` says what went wrong with it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from attribution.failures import answers_in
from attribution.recordings import conversation_of
from attribution.text.content import text_of
from experiments.data.dataset_reader import FileReader, Ids, Reading
from experiments.data.own.feedback import (
    FEEDBACK,
    Feedback,
    FeedbackRow,
    RecordedAnswer,
    has_feedback,
    matching_answer,
    traces_in,
)
from experiments.data.own.span_chats import Exchange, exchanges_in
from tracing.errors import TraceError
from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.identities import user_in
from tracing.interchange import read_graph
from tracing.interchange.speech import ASSISTANT, USER
from tracing.systems.conversations import Conversation, DialogueSession, Question, Turn

TRACES = "traces"
_REMEDY = "see docs/data-format.md"


@dataclass(frozen=True, slots=True)
class TracedChat:
    """A dialogue of a trace, without questions, with its answers, and by their ids the turns that ask and give them."""

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
            prediction.id,
            _user(graph, query, prediction),
            answer_time(graph, prediction.id) or 0.0,
        )
        for named, (query, prediction) in zip(names, recorded, strict=True)
    )
    return [TracedChat(conversation_of(graph, name), answers, {})], aside


def _user(graph: ExecutionGraph, query: Variable, prediction: Variable) -> str:
    elements: tuple[Variable | Operation, ...] = (prediction, *graph.producers(prediction.id), query)
    sessions = (graph.sessions[element.session] for element in elements if element.session in graph.sessions)
    named = (user_in(element.attributes) for element in (*elements, *sessions))
    return next(filter(None, named), "")


def answer_time(graph: ExecutionGraph, prediction: str | None) -> float | None:
    """When a reply was given, in epoch seconds; None if its graph does not tell."""
    if prediction not in graph.variables:
        return None
    return max((maker.ended or maker.started for maker in graph.producers(prediction)), default=0.0) or None


def answers_of(path: Path) -> Sequence[RecordedAnswer]:
    """The answers in a trace; one that cannot be read has none."""
    try:
        chats, _ = chats_of(read_graph(path)[0], path.stem)
    except TraceError:
        return ()
    return [answer for chat in chats for answer in chat.answers]


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
        RecordedAnswer(
            *(exchange.call.id, exchange.call.id, exchange.question, exchange.reply),
            user=exchange.chat,
            time=exchange.call.ended or exchange.call.started,
        )
        for exchange in exchanges
    )
    return TracedChat(
        Conversation(id=name, speakers=(USER, ASSISTANT), sessions=dialogue_sessions), answers, question_turns
    )


def read_traces(path: Path, reading: Reading) -> Iterator[Conversation]:
    """The conversations of the traces in a folder that have an answer with known truth."""
    if not has_feedback(path):
        reading.problem(f"{path}: has no {FEEDBACK}.csv or {FEEDBACK}.jsonl; write which answers were right, {_REMEDY}")
        return
    feedback = Feedback(path, reading)
    traces = traces_in(path)
    feedback.unknown(traces)
    for place, trace in enumerate(traces):
        reading.advanced(place, len(traces))
        rows = feedback.on(trace)
        name = trace.relative_to(path).with_suffix("").as_posix()
        if not rows:
            reading.left_out(name, "traces without feedback")
            continue
        try:
            graph, problem = read_graph(trace)
        except TraceError as error:
            reading.unreadable(error, "correct or remove the trace")
            continue
        if problem is not None:
            reading.problem(f"{problem}; correct or remove the trace")
        chats, aside = chats_of(graph, name)
        reading.left_out(name, "calls of the system itself, such as extraction", aside)
        yield from _conversations_with_answers(name, chats, rows, reading)


READER = FileReader(TRACES, read_traces)


def _conversations_with_answers(
    name: str, chats: Sequence[TracedChat], rows: Sequence[tuple[str, FeedbackRow]], reading: Reading
) -> Iterator[Conversation]:
    """The conversations of a trace that have an answer with known truth."""
    home = {answer.id: place for place, chat in enumerate(chats) for answer in chat.answers}
    answers = [answer for chat in chats for answer in chat.answers]
    questions: list[list[Question]] = [[] for _ in chats]
    spoken: list[set[str]] = [set() for _ in chats]
    ids = Ids(reading)
    for where, row in rows:
        answer = matching_answer(row.question, row.reply, answers)
        if isinstance(answer, str):
            reading.problem(f"{where}: {answer}")
            continue
        place = home[answer.id]
        alike = [
            candidate
            for candidate in answers
            if (candidate.question, candidate.reply) == (answer.question, answer.reply)
        ]
        if len({home[candidate.id] for candidate in alike}) > 1 and row.question != answer.id:
            names = " or ".join(repr(candidate.id) for candidate in alike)
            reading.problem(f"{where}: question: several conversations have this answer; give the call's id, {names}")
            continue
        spoken[place] |= chats[place].question_turns.get(answer.id, frozenset())
        if not row.right and not row.answers:
            reading.left_out(name, "wrong answers without a correction")
        elif ids.new("question", f"{name}/{answer.id}", "question", where, where):
            question = _question(f"{name}/{answer.id}", answer, row)
            if question is None:
                reading.problem(f"{where}: reply: the answer in the trace is empty; give answers")
            else:
                questions[place].append(question)
    if not any(questions):
        reading.left_out(name, "traces without an answer whose truth is known")
    for chat, chat_questions, turns in zip(chats, questions, spoken, strict=True):
        if chat_questions:
            yield _without(chat.conversation, turns, chat_questions)
        elif any(questions):
            reading.left_out(chat.conversation.id, "conversations of a trace without an answer whose truth is known")


def _question(name: str, answer: RecordedAnswer, row: FeedbackRow) -> Question | None:
    confirmed = (answer.reply.strip(),) if row.right else ()
    answers = tuple(dict.fromkeys(text for text in (*confirmed, *row.answers) if text))
    try:
        return Question(id=name, question=answer.question, answers=answers)
    except ValidationError:
        return None


def _without(conversation: Conversation, turns: set[str], questions: list[Question]) -> Conversation:
    """The conversation with these questions, without the turns that ask and answer them."""
    sessions = [
        DialogueSession(
            id=session.id, time=session.time, turns=tuple(turn for turn in session.turns if turn.id not in turns)
        )
        for session in conversation.sessions
    ]
    spoken_sessions = tuple(session for session in sessions if session.turns) or tuple(sessions[:1])
    return conversation.model_copy(update={"sessions": spoken_sessions, "questions": tuple(questions)})
