"""Labels: what annotators say about wrong answers, with ids that are checked against their graphs, in an SQLite file.

The file has a row for each annotator, case and revision, and is only ever appended to. A label is on the disk before it
is confirmed, so a killed server loses none. An undo is a revision too, which restores the one before; so nothing that
anybody said is lost, and several people, tabs and servers may write at once.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from attribution.cases import OUTSIDE_THE_SYSTEM, ErrorType
from experiments.display.terminal import one_line
from tracing.errors import DataError, MemtuneError
from tracing.formats import FORMATS, check_format
from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.package_data import packaged_text
from tracing.recording.redaction import redact
from tracing.suggestions import did_you_mean

Action = Literal["labelled", "accepted", "corrected", "rejected", "undone"]
"""Given without a verdict at hand; the verdict shown was taken over, changed, or called wrong; an undo."""

ERROR_TYPES: tuple[ErrorType, ...] = get_args(ErrorType)
LONGEST_NAME, LONGEST_NOTE, MOST_IDS = 60, 4000, 100

_VERSION = FORMATS["labels"]
_PATIENCE_S = 30.0


class LabelError(MemtuneError):
    """A label cannot be taken as it is; begins with the field."""


@dataclass(frozen=True, slots=True)
class CaseId:
    """A wrong answer, whatever its file is called: start of the SHA-256 of its trace, and the reply's variable."""

    trace: str
    case: str


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a label says; no error type where a verdict is only called wrong, no method without a verdict at hand.

    Operations are ids of the decisive ones, evidence ids of the variables that show it.
    """

    action: Action
    error_type: ErrorType | None
    operations: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    note: str = ""
    method: str = ""


def assessment_from(request: Any, graph: ExecutionGraph) -> Assessment:
    """The assessment in a request, checked."""
    action, error_type = request.get("action"), request.get("error_type") or None
    if action not in get_args(Action) or action == "undone":
        raise LabelError(f"action: {action!r} is none; give labelled, accepted, corrected or rejected")
    if error_type is None and action != "rejected":
        raise LabelError("error type: is missing; choose one, or reject the verdict without one")
    if error_type is not None and error_type not in ERROR_TYPES:
        raise LabelError(f"error type: {error_type!r} is none; give one of {', '.join(ERROR_TYPES)}")
    operations = _element_ids(
        request, "operations", graph.operations, "operation", "ran {:,} times; give the id of one execution"
    )
    if operations and (error_type is None or error_type in OUTSIDE_THE_SYSTEM):
        raise LabelError(f"operations: {error_type or 'a rejected verdict'} names no operation; leave them out")
    evidence = _element_ids(
        request, "evidence", graph.variables, "variable", "names {:,} variables; give the id of one"
    )
    note, method = _text(request, "note", LONGEST_NOTE), _text(request, "method", LONGEST_NAME)
    return Assessment(action, error_type, operations, evidence, note, method)


def annotator_from(request: Any) -> str:
    """The annotator's name in a request."""
    name = one_line(str(request.get("annotator") or ""))
    if not 0 < len(name) <= LONGEST_NAME:
        raise LabelError(f"annotator: give a name of at most {LONGEST_NAME} characters")
    return name


def _element_ids(
    request: Any, key: str, elements: Mapping[str, Operation] | Mapping[str, Variable], kind: str, several: str
) -> tuple[str, ...]:
    """The ids in a request, or names that only one element has, as ids; `several` is what is wrong with other names."""
    raw = request.get(key) or []
    if not isinstance(raw, list) or not all(isinstance(name, str) for name in raw) or len(raw) > MOST_IDS:
        raise LabelError(f"{key}: give a list of at most {MOST_IDS} ids")
    ids: dict[str, None] = {}
    for name in filter(None, map(str.strip, raw)):
        matches = [name] if name in elements else [element.id for element in elements.values() if element.name == name]
        if len(matches) > 1:
            raise LabelError(f"{key}: {name} {several.format(len(matches))}, such as {', '.join(matches[:3])}")
        if not matches:
            raise LabelError(f"{key}: {name!r} names no {kind} of this graph{did_you_mean(name, elements)}")
        ids[matches[0]] = None
    return tuple(ids)


def _text(request: Any, key: str, longest: int) -> str:
    text = redact(str(request.get(key) or "").strip())
    if len(text) > longest:
        raise LabelError(f"{key}: has {len(text):,} characters; {longest:,} are taken")
    return text


@dataclass(frozen=True, slots=True)
class Label:
    """One revision of what an annotator says about a case; 1 is their first.

    Attributes:
        restores: the revision whose assessment it gives: its own number, after an undo that of an earlier one, and 0 if
            the undo left no label.
        before: the revision that was in force before; 0 for none.
        created: epoch seconds.
        trace_name: of the trace's file at that time.
    """

    annotator: str
    case: CaseId
    revision: int
    restores: int
    before: int
    created: float
    trace_name: str
    assessment: Assessment

    @property
    def in_force(self) -> bool:
        """Whether it says anything: not after an undo of the first label."""
        return self.restores > 0


class LabelStore:
    """The labels in one file; every call opens it anew, so any thread may make it."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """Make the file if need be.

        Raises:
            DataError: the file is no label file of this version, or cannot be written.
        """
        self.path, self._clock = path, clock
        with self._open() as database:
            (version,) = database.execute("PRAGMA user_version").fetchone()
            (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            check_format("labels", version, path, DataError)
            if version != _VERSION and (version or tables):
                raise DataError(f"{path}: is not a label file of this version; give --labels another file")
            if not version:
                schema = packaged_text("experiments.annotating", "labels.sql")
                database.executescript(f"BEGIN IMMEDIATE; {schema} PRAGMA user_version = {_VERSION}; COMMIT;")

    def add(self, annotator: str, case: CaseId, assessment: Assessment, *, request: str, trace_name: str = "") -> Label:
        """Append a label. A request that was taken before is not taken again: its label is given back."""
        return self._append(annotator, case, assessment, request, trace_name)

    def undo(self, annotator: str, case: CaseId, *, request: str) -> Label:
        """Append a revision that restores what the annotator had said before the label in force."""
        return self._append(annotator, case, None, request)

    def history(self, annotator: str, case: CaseId) -> list[Label]:
        """All revisions of one annotator on a case, oldest first."""
        with self._open() as database:
            return _history(database, annotator, case)

    def in_force(self) -> list[Label]:
        """The labels in force, one for each annotator and case, in the order given."""
        with self._open() as database:
            rows = database.execute(
                "SELECT * FROM labels WHERE id IN (SELECT max(id) FROM labels GROUP BY annotator, trace, case_id) "
                "AND restores > 0 ORDER BY id"
            ).fetchall()
        return [_label(row) for row in rows]

    def state(self) -> int:
        """A number that grows with every revision."""
        with self._open() as database:
            (last,) = database.execute("SELECT coalesce(max(id), 0) FROM labels").fetchone()
        return int(last)

    def _append(
        self, annotator: str, case: CaseId, assessment: Assessment | None, request: str, trace_name: str = ""
    ) -> Label:
        """Append an assessment, or for None the one before that in force."""
        with self._open() as database:
            database.execute("BEGIN IMMEDIATE")
            earlier_row = database.execute("SELECT * FROM labels WHERE request = ?", (request,)).fetchone()
            if earlier_row is not None:
                return _label(earlier_row)
            revisions = {label.revision: label for label in _history(database, annotator, case)}
            latest = revisions[max(revisions)] if revisions else None
            revision = restores = (latest.revision if latest else 0) + 1
            if assessment is None:
                if latest is None or not latest.in_force:
                    raise LabelError("undo: there is no label of yours on this case")
                restores = revisions[latest.restores].before
                assessment = revisions[restores].assessment if restores else _NOTHING
            before = latest.restores if latest else 0
            row = (annotator, case.trace, case.case, revision, restores, before, self._clock(), trace_name)
            ids = json.dumps(assessment.operations), json.dumps(assessment.evidence)
            (new_row,) = database.execute(
                "INSERT INTO labels VALUES (NULL,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) RETURNING *",
                (*row, assessment.action, assessment.error_type, *ids, assessment.note, assessment.method, request),
            ).fetchall()
            database.execute("COMMIT")
            return _label(new_row)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            database = sqlite3.connect(self.path, timeout=_PATIENCE_S, isolation_level=None)
        except sqlite3.Error as error:
            raise DataError(f"{self.path}: cannot be opened ({error}); give --labels another file") from None
        try:
            database.row_factory = sqlite3.Row
            database.execute("PRAGMA synchronous = FULL")
            yield database
        except sqlite3.Error as error:
            raise DataError(f"{self.path}: {error}; free disk space, or give --labels another file") from None
        finally:
            database.close()


_NOTHING = Assessment("undone", None)


def _history(database: sqlite3.Connection, annotator: str, case: CaseId) -> list[Label]:
    rows = database.execute(
        "SELECT * FROM labels WHERE annotator = ? AND trace = ? AND case_id = ? ORDER BY revision",
        (annotator, case.trace, case.case),
    )
    return [_label(row) for row in rows.fetchall()]


def _label(row: Any) -> Label:
    assessment = Assessment(
        row["action"],
        row["error_type"],
        tuple(json.loads(row["operations"])),
        tuple(json.loads(row["evidence"])),
        row["note"],
        row["method"],
    )
    case, numbers = CaseId(row["trace"], row["case_id"]), (row["revision"], row["restores"], row["before"])
    return Label(row["annotator"], case, *numbers, row["made"], row["trace_name"], assessment)
