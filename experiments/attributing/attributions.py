"""The attributions file: one JSON object per line, appended as cases are done; see docs/attribution-report.md."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from attribution.cases import PASS_SCORE, Attribution, Blame, Case
from attribution.judging.words import Judgement
from attribution.survival.matching.matcher import WORDS
from tracing.errors import DataError
from tracing.files.file_kinds import ATTRIBUTIONS, likeness
from tracing.files.opening import read_file
from tracing.formats import check_format
from tracing.recording.redaction import Redaction
from tracing.strict_models import StrictModel
from tracing.systems.conversations import Question, first_problem
from tracing.systems.protocol import OperationSpec


class Header(StrictModel):
    """The first line: what the attributions were made with, and whether replay checked them."""

    type: Literal["attributions"] = "attributions"
    version: Literal[1] = 1
    method: str
    matcher: str = WORDS
    model: str | None = None
    replayed: bool = False

    def __str__(self) -> str:
        by = self.method if self.matcher == WORDS else f"{self.method} by {self.matcher}"
        description = " with ".join(filter(None, (by, self.model)))
        return f"{description}, checked by replay" if self.replayed else description


class TraceLine(StrictModel):
    """A trace that was read: `cases` judged questions, `failed` of them wrong; `problem` where it is damaged.

    Unless `all_judged`, only wrong answers are known, and nothing of how many were right.
    The prompts of operations are null unless the system is known, see `prompts_known`.
    `trace` is relative to the folder of the file, `digest` the start of the SHA-256 of its content and of the traces of
    its history before it: another one makes what was said of the trace before void. `wrong` identifies the wrong
    answers as the second part of `CaseLine.key` does: the trace's other cases no longer count. It is null where that
    is unknown, and where only one answer was looked at. `leaks` are entries of one user in the context of another,
    `unclear` the tools whose names do not tell what they do with the memory.
    """

    type: Literal["trace"] = "trace"
    trace: str
    digest: str
    conversation: str = ""
    cases: int = 0
    failed: int = 0
    all_judged: bool = False
    wrong: tuple[str, ...] | None = None
    operations: tuple[OperationSpec, ...] = ()
    prompts_known: bool = True
    problem: str | None = None
    leaks: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()


def doubts_of(traces: Iterable[TraceLine]) -> list[str]:
    """What makes the verdicts on traces unsure, with a remedy: a sentence for each set of tools with unclear names."""
    by_tools: dict[tuple[str, ...], list[str]] = {}
    for trace in traces:
        by_tools.setdefault(trace.unclear, []).append(trace.trace)
    return [
        f"{names[0]}{f' and {len(names) - 1} more' if names[1:] else ''}: the names of {', '.join(tools)} do not tell "
        "what they do with the memory, so verdicts can mislead; correct what "
        f"`memtune trace map {names[0]}` writes, and import with --map"
        for tools, names in by_tools.items()
        if tools
    ]


def _checked(blame: Blame) -> Blame:
    if not 0 <= blame.confidence <= 1:
        raise ValueError(f"confidence: {blame.confidence} is not between 0 and 1")
    return blame


_Blame = Annotated[Blame, AfterValidator(_checked)]


class CaseLine(StrictModel):
    """A wrong answer and its attribution: `decisive`, or `abstained`, or `failed` if attributing it failed.

    `incomplete` is the failed model call without which the verdict was reached.
    """

    type: Literal["case"] = "case"
    trace: str
    conversation: str
    question_id: str
    question: str
    kind: str = "stable"
    answers: tuple[str, ...]
    evidence: tuple[str, ...] = ()
    reply: str
    score: float
    prediction: str | None = None
    decisive: tuple[_Blame, ...] = ()
    alternatives: tuple[_Blame, ...] = ()
    abstained: str | None = None
    failed: str | None = None
    incomplete: str | None = None
    tokens: int = 0
    ms: float = 0.0

    @property
    def is_complete(self) -> bool:
        """Whether attributing it again would add nothing."""
        return self.failed is None and self.incomplete is None

    @property
    def key(self) -> tuple[str, str]:
        """What identifies the case: its trace, and its reply there or otherwise its question."""
        return self.trace, self.prediction or self.question_id

    @property
    def main(self) -> Blame | None:
        """The single decisive blame, as `Attribution.main`."""
        return self.decisive[0] if self.decisive else None

    @property
    def id(self) -> str:
        """A name for people: conversation and question, unless the question's id tells both."""
        is_unique = self.question_id.startswith(self.conversation)
        return self.question_id if is_unique else f"{self.conversation}/{self.question_id}"

    def is_news(self, before: Mapping[tuple[str, str], CaseLine]) -> bool:
        """Whether earlier lines, by their keys, do not have it, or do not know the right answer that it knows."""
        earlier = before.get(self.key)
        return earlier is None or earlier.answers != self.answers

    def attribution(self) -> Attribution:
        """The same as attribution knows it."""
        question = Question(
            id=self.question_id, question=self.question, kind=self.kind, answers=self.answers, evidence=self.evidence
        )
        judgement = Judgement(score=min(self.score, PASS_SCORE / 2), em=0.0, f1=0.0, contains=0.0)
        case = Case(self.conversation, question, self.reply, judgement, self.prediction)
        abstained = self.abstained or self.failed or (None if self.decisive else "nothing was said")
        return Attribution(case, self.decisive, None if self.decisive else abstained, self.alternatives)


def case_line(
    attribution: Attribution,
    trace: str,
    *,
    failed: str | None = None,
    incomplete: str | None = None,
    tokens: int = 0,
    ms: float = 0.0,
) -> CaseLine:
    """The line of an attribution, without the credentials that the user's texts may hold."""
    case = attribution.case
    line = CaseLine(
        trace=trace,
        conversation=case.conversation,
        question_id=case.question.id,
        question=case.question.question,
        kind=case.question.kind,
        answers=case.question.answers,
        evidence=case.question.evidence,
        reply=case.reply,
        score=case.judgement.score,
        prediction=case.prediction,
        decisive=attribution.decisive,
        alternatives=attribution.alternatives,
        abstained=None if failed else attribution.abstained,
        failed=failed,
        incomplete=incomplete,
        tokens=tokens,
        ms=round(ms, 3),
    )
    return CaseLine.model_validate(Redaction().value(line.model_dump(mode="json")))


_READER: TypeAdapter[Header | TraceLine | CaseLine] = TypeAdapter(
    Annotated[Header | TraceLine | CaseLine, Field(discriminator="type")]
)


class Attributions:
    """The content of an attributions file: the latest line for each trace by path, and for each case by key."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.traces: dict[str, TraceLine] = {}
        self.cases: dict[tuple[str, str], CaseLine] = {}

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file up to its last complete line.

        Raises:
            DataError: it is missing, or not an attributions file; names the line.
        """
        try:
            data = read_file(path)
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}); make it with: memtune attribute") from None
        return cls._of(path, data[: data.rfind(b"\n") + 1])

    @classmethod
    def _of(cls, path: Path, content: bytes) -> Self:
        attributions: Self | None = None
        for number, line in enumerate(content.splitlines(), start=1):
            try:
                row = _READER.validate_json(line)
            except ValidationError as error:
                if attributions is None:
                    _check_version(path, line)
                    raise DataError(f"{path}: is not what `memtune attribute` wrote; {_remedy(path)}") from None
                defect = (
                    "is cut off or damaged" if error.errors()[0]["type"] == "json_invalid" else first_problem(error)
                )
                raise DataError(
                    f"{path}:{number}: {defect}; delete this line, and its case is attributed again"
                ) from None
            if isinstance(row, Header):
                attributions = attributions or cls(row)
            elif attributions is None:
                break
            else:
                attributions.add(row)
        if attributions is None:
            raise DataError(f"{path}: begins with no header; {_remedy(path)}")
        return attributions

    def add(self, line: TraceLine | CaseLine) -> None:
        """Add a line."""
        if isinstance(line, CaseLine):
            self.cases[line.key] = line
            return
        before = self.traces.get(line.trace)
        changed = before is not None and before.digest != line.digest
        if before is not None and (changed or line.wrong is not None):
            wrong_now = () if changed else line.wrong or ()
            self.cases = {key: case for key, case in self.cases.items() if key[0] != line.trace or key[1] in wrong_now}
        self.traces[line.trace] = line


def _check_version(path: Path, line: bytes) -> None:
    """Raise a `DataError` if the first line of a file is the header of a later format."""
    with suppress(ValueError, RecursionError):
        header = json.loads(line)
        if isinstance(header, dict) and header.get("type") == "attributions" and type(header.get("version")) is int:
            check_format("attributions", header["version"], path, DataError)


def _remedy(path: Path) -> str:
    return likeness(path, ATTRIBUTIONS) or "give a file that `memtune attribute` wrote, or to --out a new one"


def is_attributions(path: Path) -> bool:
    """Whether a file begins as an attributions file does; one that cannot be read is for others to report."""
    begin = b'{"type":"attributions"'
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(begin)) == begin
    except OSError:
        return False


class AttributionsFile:
    """An attributions file that one process appends complete lines to. Safe to use from several threads."""

    def __init__(self, path: Path, attributions: Attributions, descriptor: int) -> None:
        self.path, self.attributions = path, attributions
        self._descriptor, self._guard = descriptor, threading.Lock()

    @classmethod
    @contextmanager
    def open(cls, path: Path, header: Header) -> Iterator[Self]:
        """Open a file to append to, or create it. A partial line left by a killed process is cut off.

        Raises:
            DataError: it is no attributions file, has another method or model, or another process works on it.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise DataError(f"{path}: cannot be written ({error.strerror}); give --out another file") from None
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise DataError(f"{path}: another process works on it; wait for it, or give --out another") from None
            yield cls(path, cls._begun(path, header, descriptor), descriptor)
        finally:
            os.close(descriptor)

    @staticmethod
    def _begun(path: Path, header: Header, descriptor: int) -> Attributions:
        data = path.read_bytes()
        lines = data[: data.rfind(b"\n") + 1]
        if not lines and not (header.model_dump_json() + "\n").encode().startswith(data):
            raise DataError(f"{path}: is something else; {_remedy(path)}")
        attributions = Attributions._of(path, lines) if lines else Attributions(header)
        if attributions.header != header:
            raise DataError(f"{path}: was made by {attributions.header}; give --out another file, or the same options")
        os.ftruncate(descriptor, len(lines))
        if not lines:
            os.write(descriptor, f"{header.model_dump_json()}\n".encode())
        return attributions

    def append(self, line: TraceLine | CaseLine) -> None:
        """Write a line, unless it repeats what is already known of a trace.

        Raises:
            OSError: the disk is full; nothing of the line counts.
        """
        with self._guard:
            if isinstance(line, TraceLine) and self.attributions.traces.get(line.trace) == line:
                return
            self.attributions.add(line)
            data = f"{line.model_dump_json()}\n".encode()
            before = os.fstat(self._descriptor).st_size
            try:
                if os.write(self._descriptor, data) < len(data):
                    raise OSError(28, os.strerror(28), str(self.path))
            except OSError:
                os.ftruncate(self._descriptor, before)
                raise
