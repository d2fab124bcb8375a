"""Production traces as conversations: the dialogue that was recorded, and the answers that users gave feedback on.

A right answer is its own gold answer; of a wrong one, the correction is. A wrong answer that nobody corrected cannot
be scored again, so it is left out here; `memtune attribute FOLDER` says what went wrong with it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
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
from experiments.data.own.histories import Histories, one_history
from experiments.data.own.span_chats import Exchange, exchanges_in
from tracing.errors import TraceError
from tracing.graph.elements import Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.identities import user_of
from tracing.interchange import read_graph
from tracing.interchange.speech import ASSISTANT, USER
from tracing.systems.conversations import Conversation, DialogueSession, Question, Turn

TRACES = "traces"
_REMEDY = "see docs/data-format.md"


@dataclass(frozen=True, slots=True)
class TracedChat:
    """A dialogue of traces, without questions, with its answers.

    By the ids of answers, `question_turns` are the turns that ask and give them, and `asked_after` is the session in
    which the last turn before one is.
    """

    conversation: Conversation
    answers: tuple[RecordedAnswer, ...]
    question_turns: Mapping[str, frozenset[str]] = field(default_factory=dict)
    asked_after: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TracedHistory:
    """The dialogues of traces that belong together, their answers by trace, and how many calls are no part of them."""

    name: str
    chats: Sequence[TracedChat]
    answers: Mapping[Path, Sequence[RecordedAnswer]]
    aside: int


def histories_in(
    traces: Sequence[Path], root: Path, reading: Reading, damaged: Callable[[Path, str], None]
) -> Iterator[TracedHistory]:
    """The dialogues of traces in a folder, those of one user together, and named so; others are named by their trace.

    `damaged` takes a trace of which not all could be read, and what is wrong with it.
    """
    histories = Histories(traces, all_of_interest=True)
    for place, (user, parts) in enumerate(histories.all()):
        reading.advanced(place, len(traces))
        *before, (last, graph) = parts.items()
        name = user or trace_name(last, root)
        history = one_history(graph, [(path.stem, earlier) for path, earlier in before])
        chats, aside = chats_of(history, name, dated=bool(before))
        answers = [answer for chat in chats for answer in chat.answers]
        by_trace = {path: [answer for answer in answers if answer.is_in(part)] for path, part in parts.items()}
        yield TracedHistory(name, chats, by_trace, aside)
    for path, problem in histories.damaged.items():
        damaged(path, problem)


def trace_name(trace: Path, root: Path) -> str:
    """The name of a trace in or under a folder, or of one alone."""
    return (trace.relative_to(root) if root.is_dir() else Path(trace.name)).with_suffix("").as_posix()


def chats_of(graph: ExecutionGraph, name: str, *, dated: bool = False) -> tuple[list[TracedChat], int]:
    """The dialogues and the answers in a graph, and how many calls in it are no part of a dialogue.

    Where it is `dated`, a message that names no time is of the day on which it was recorded.

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
            user_of(prediction, graph) or user_of(query, graph),
            answer_time(graph, prediction.id) or 0.0,
        )
        for named, (query, prediction) in zip(names, recorded, strict=True)
    )
    conversation = conversation_of(graph, name, _days(graph) if dated else {})
    asked_after = {}
    if dated:
        session_of = {turn.id: session.id for session in conversation.sessions for turn in session.turns}
        ids, latest = {answer.prediction: answer.id for answer in answers}, None
        for variable in graph.variables.values():
            if variable.kind == "message":
                latest = session_of.get(variable.name, latest)
            elif variable.id in ids and latest is not None:
                asked_after[ids[variable.id]] = latest
    return [TracedChat(conversation, answers, asked_after=asked_after)], aside


def _days(graph: ExecutionGraph) -> dict[str, str]:
    """The days, in UTC, on which messages were first read, by their ids."""
    days: dict[str, str] = {}
    for operation in graph.operations.values():
        for vid in operation.input_ids():
            days.setdefault(vid, datetime.fromtimestamp(operation.started, UTC).date().isoformat())
    return days


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

    def damaged(trace: Path, problem: str) -> None:
        if feedback.on(trace):
            reading.problem(problem if "; " in problem else f"{problem}; correct or remove the trace")
        else:
            reading.left_out(trace_name(trace, path), f"damaged traces ({problem})")

    histories = [*histories_in(traces, path, reading, damaged)]
    judged = _Judged(reading, [chat for history in histories for chat in history.chats])
    recorded = {trace for history in histories for trace in history.answers}
    for trace in traces:
        if trace in recorded:
            answers = [answer for history in histories for answer in history.answers.get(trace, ())]
            judged.add(trace_name(trace, path), feedback.on(trace), answers)
    for history in histories:
        reading.left_out(history.name, "calls of the system itself, such as extraction", history.aside)
        if any(map(feedback.on, history.answers)):
            yield from judged.conversations(history)
        else:
            reading.left_out(history.name, "traces without feedback", len(history.answers))


READER = FileReader(TRACES, read_traces)


class _Judged:
    """The questions of dialogues whose truth users told, as rows of feedback are added."""

    def __init__(self, reading: Reading, chats: Sequence[TracedChat]) -> None:
        self._reading, self._ids = reading, Ids(reading)
        self._home = {id(answer): chat for chat in chats for answer in chat.answers}
        self._questions: dict[str, list[Question]] = defaultdict(list)
        self._spoken: dict[str, set[str]] = defaultdict(set)

    def add(self, name: str, rows: Sequence[tuple[str, FeedbackRow]], answers: Sequence[RecordedAnswer]) -> None:
        """Take the rows about a trace of this name, which records these answers."""
        for where, row in rows:
            answer = matching_answer(row.question, row.reply, answers)
            if isinstance(answer, str):
                self._reading.problem(f"{where}: {answer}")
                continue
            alike = [other for other in answers if (other.question, other.reply) == (answer.question, answer.reply)]
            chat = self._home[id(answer)]
            if any(self._home[id(other)] is not chat for other in alike) and row.question != answer.id:
                names = " or ".join(repr(other.id) for other in alike)
                problem = f"question: several conversations have this answer; give the call's id, {names}"
                self._reading.problem(f"{where}: {problem}")
                continue
            self._spoken[chat.conversation.id] |= chat.question_turns.get(answer.id, frozenset())
            if not row.right and not row.answers:
                self._reading.left_out(name, "wrong answers without a correction")
            elif self._ids.new("question", f"{name}/{answer.id}", "question", where, where):
                question = _question(f"{name}/{answer.id}", answer, row, chat.asked_after.get(answer.id))
                if question is None:
                    self._reading.problem(f"{where}: reply: the answer in the trace is empty; give answers")
                else:
                    self._questions[chat.conversation.id].append(question)

    def conversations(self, history: TracedHistory) -> Iterator[Conversation]:
        """The dialogues of traces that have an answer whose truth is known; the others are left out."""
        names = [chat.conversation.id for chat in history.chats]
        if not any(map(self._questions.get, names)):
            self._reading.left_out(history.name, "traces without an answer whose truth is known")
            return
        for chat, name in zip(history.chats, names, strict=True):
            if questions := self._questions.get(name):
                yield _without(chat.conversation, self._spoken[name], questions)
            else:
                self._reading.left_out(name, "conversations of a trace without an answer whose truth is known")


def _question(name: str, answer: RecordedAnswer, row: FeedbackRow, after: str | None) -> Question | None:
    confirmed = (answer.reply.strip(),) if row.right else ()
    answers = tuple(dict.fromkeys(text for text in (*confirmed, *row.answers) if text))
    try:
        return Question(id=name, question=answer.question, answers=answers, after_session=after)
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
