"""Production traces as conversations: the dialogue that was recorded, and the answers that users gave feedback on.

A right answer is its own gold answer; of a wrong one, the correction is. A wrong answer that nobody corrected cannot
be scored again, so it is left out here; `memtune attribute FOLDER` says what went wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from experiments.data.own.feedback import (
    FEEDBACK,
    Feedback,
    FeedbackRow,
    RecordedAnswer,
    answer_meant,
    has_feedback,
    traces_in,
)
from experiments.data.own.traced_chats import TracedChat, chats_of
from experiments.data.reading import FileReader, Ids, Reading
from tracing.errors import TraceError
from tracing.interchange import read_graph
from tracing.systems.conversations import Conversation, DialogueSession, Question

TRACES = "traces"

_REMEDY = "see docs/data-format.md"


def read_traces(path: Path, reading: Reading) -> Iterator[Conversation]:
    """The conversations of the traces in a folder that have an answer with known truth.

    Raises:
        DataError: the folder has no feedback, or a row of it is invalid, or a trace cannot be read.
    """
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
        yield from _judged(name, chats, rows, reading)


READER = FileReader(TRACES, read_traces)


def _judged(
    name: str, chats: Sequence[TracedChat], rows: Sequence[tuple[str, FeedbackRow]], reading: Reading
) -> Iterator[Conversation]:
    """The conversations of a trace that have an answer with known truth."""
    home = {answer.id: place for place, chat in enumerate(chats) for answer in chat.answers}
    answers = [answer for chat in chats for answer in chat.answers]
    questions: list[list[Question]] = [[] for _ in chats]
    spoken: list[set[str]] = [set() for _ in chats]
    ids = Ids(reading)
    for where, row in rows:
        meant = answer_meant(row, answers)
        if isinstance(meant, str):
            reading.problem(f"{where}: {meant}")
            continue
        place = home[meant.id]
        alike = [one for one in answers if (one.question, one.reply) == (meant.question, meant.reply)]
        if len({home[one.id] for one in alike}) > 1 and row.question != meant.id:
            names = " or ".join(repr(one.id) for one in alike)
            reading.problem(f"{where}: question: several conversations have this answer; give the call's id, {names}")
            continue
        spoken[place] |= chats[place].asked.get(meant.id, frozenset())
        if not row.right and not row.answers:
            reading.left_out(name, "wrong answers without a correction")
        elif ids.new("question", f"{name}/{meant.id}", "question", where, where):
            question = _question(f"{name}/{meant.id}", meant, row)
            if question is None:
                reading.problem(f"{where}: reply: the answer in the trace is empty; give answers")
            else:
                questions[place].append(question)
    if not any(questions):
        reading.left_out(name, "traces without an answer whose truth is known")
    for chat, asked, turns in zip(chats, questions, spoken, strict=True):
        if asked:
            yield _without(chat.conversation, turns, asked)
        elif any(questions):
            reading.left_out(chat.conversation.id, "conversations of a trace without an answer whose truth is known")


def _question(name: str, meant: RecordedAnswer, row: FeedbackRow) -> Question | None:
    given = (meant.reply.strip(),) if row.right else ()
    answers = tuple(dict.fromkeys(each for each in (*given, *row.answers) if each))
    try:
        return Question(id=name, question=meant.question, answers=answers)
    except ValidationError:
        return None


def _without(conversation: Conversation, turns: set[str], questions: list[Question]) -> Conversation:
    """The conversation with these questions, without the turns that ask and answer them."""
    sessions = [
        DialogueSession(id=one.id, time=one.time, turns=tuple(turn for turn in one.turns if turn.id not in turns))
        for one in conversation.sessions
    ]
    kept = tuple(one for one in sessions if one.turns) or tuple(sessions[:1])
    return conversation.model_copy(update={"sessions": kept, "questions": tuple(questions)})
