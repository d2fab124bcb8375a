"""A log of complaints: answers that users called wrong, as CSV or JSON lines, each about an answer in some trace."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from experiments.data.own.feedback import ENDINGS, FeedbackRow
from experiments.data.own.rows import OptionalText, TextList, rows_of
from experiments.data.reading import Reading
from tracing.errors import DataError
from tracing.files.file_kinds import likeness


class ComplaintRow(BaseModel):
    """One complaint.

    Attributes:
        question: as it was asked.
        reply: the wrong answer, as it was given; may be left out where the question has one reply.
        answers: what would have been right; empty if nobody said.
        trace: the trace file: its path, relative to the log's folder, or its name, with or without its ending; may be
            left out where there is one trace.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: str
    reply: OptionalText = ""
    answers: TextList = ()
    trace: str = ""


def complaints_in(log: Path, traces: Sequence[Path], reading: Reading) -> Mapping[Path, list[tuple[str, FeedbackRow]]]:
    """The complaints of a log by the trace that they are about, each with its place.

    Args:
        log: a file whose name ends in `.csv` or `.jsonl`.
        traces: those that complaints may be about.
        reading: receives the problems of rows.

    Raises:
        DataError: the file cannot be read, or is something else.
    """
    looks = likeness(log, "complaints", "feedback", "json", "table", "text", "broken", "empty")
    if looks:
        raise DataError(f"{log}: is not a log of complaints; {looks}")
    complaints: dict[Path, list[tuple[str, FeedbackRow]]] = defaultdict(list)
    for where, _, row in rows_of(log, ComplaintRow, reading):
        matches = [trace for trace in traces if _is_meant(row.trace, trace, log.parent)]
        if len(matches) != 1:
            remedy = "name one of the traces given" if row.trace else "add it, since there is more than one trace"
            reading.problem(f"{where}: trace: {row.trace!r} fits {len(matches)} of {len(traces)} traces; {remedy}")
            continue
        feedback = FeedbackRow(
            trace=row.trace, right=False, question=row.question, reply=row.reply, answers=row.answers
        )
        complaints[matches[0]].append((where, feedback))
    return complaints


def _is_meant(name: str, trace: Path, folder: Path) -> bool:
    if not name or (folder / name).resolve() == trace.resolve():
        return True
    if os.sep in name:
        return False
    return name in (trace.name, *(trace.name.removesuffix(ending) for ending in ENDINGS))
