"""What Bench'd (benchd-harness) feeds a memory and asks it: a benchmark, as the manifest of any run of it holds it.

Decisions: questions of one history are asked of one conversation; a question that is scored by a pattern or key words
has no answer that a reply could be compared with, and is left out; ids of evidence are not in a manifest, but turns
marked `has_answer` are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from pydantic import Field

from experiments.data.dataset_reader import FileReader, Ids, Reading, build_conversation
from experiments.data.json_rows import FileLayout, json_rows
from tracing.systems.conversations import Conversation, DialogueSession, Question, Turn

BENCHD = "benchd"

_EXPECTED = "a manifest that `benchd run` wrote is expected, see docs/data-format.md"
_WITH_ANSWER = ("exact", "llm")


class _Details(FileLayout):
    session_index: int = 1
    session_date_time: str = ""
    dia_id: str = ""
    speaker: str = ""
    has_answer: bool = False


class FedTurn(FileLayout):
    """A turn as the harness hands it to a memory."""

    role: str
    content: str
    timestamp: str | None = None
    metadata: _Details = _Details()


class _Trace(FileLayout):
    question_id: str
    dimension: str
    ingest_history: tuple[FedTurn, ...]
    query: str
    expected_answer: str
    scoring_method: str


class _Benchmark(FileLayout):
    slug: str


class _Run(FileLayout):
    benchmark: _Benchmark
    traces: tuple[_Trace, ...] = Field(min_length=1)


class _Signed(FileLayout):
    manifest: _Run


def sessions_of(turns: Sequence[FedTurn]) -> tuple[DialogueSession, ...]:
    """The sessions of a history, in its order; turns that say nothing are passed over."""
    sessions: list[DialogueSession] = []
    for _, group in groupby(turns, key=lambda turn: turn.metadata.session_index):
        name = f"D{len(sessions) + 1}"
        own = list(group)
        spoken = tuple(
            Turn(
                id=turn.metadata.dia_id or f"{name}:{number}",
                speaker=turn.metadata.speaker or turn.role,
                text=turn.content,
            )
            for number, turn in enumerate(own, start=1)
            if turn.content.strip()
        )
        if spoken:
            time = own[0].metadata.session_date_time or own[0].timestamp or ""
            sessions.append(DialogueSession(id=name, time=time, turns=spoken))
    return tuple(sessions)


def read_benchd(path: Path, reading: Reading) -> Iterator[Conversation | None]:
    """The conversations of a run's manifest, each with what the run asked of it."""
    for where, signed in json_rows(path, _Signed, reading, _EXPECTED):
        run = signed.manifest
        by_history: dict[tuple[FedTurn, ...], list[_Trace]] = defaultdict(list)
        ids = Ids(reading)
        for place, trace in enumerate(run.traces):
            at = f"{where}: manifest.traces.{place}"
            if ids.new("question", trace.question_id, "question_id", at, at):
                by_history[trace.ingest_history].append(trace)
        for number, (history, traces) in enumerate(by_history.items(), start=1):
            yield _conversation(where, f"{run.benchmark.slug}-{number}", history, traces, reading)


READER = FileReader(BENCHD, read_benchd)


def _conversation(
    where: str, name: str, history: Sequence[FedTurn], traces: Sequence[_Trace], reading: Reading
) -> Conversation | None:
    answered = [trace for trace in traces if trace.scoring_method in _WITH_ANSWER and trace.expected_answer.strip()]
    reading.left_out(name, "questions without an answer to compare with", len(traces) - len(answered))
    sessions = sessions_of(history)
    marked = {turn.content for turn in history if turn.metadata.has_answer}
    evidence = tuple(turn.id for session in sessions for turn in session.turns if turn.text in marked)
    questions = [
        Question(
            id=trace.question_id,
            question=trace.query,
            answers=(trace.expected_answer.strip(),),
            kind=trace.dimension,
            evidence=evidence,
        )
        for trace in answered
    ]
    return build_conversation(where, _EXPECTED, reading, name, sessions, questions)
