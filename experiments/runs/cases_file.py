"""What a run keeps of its questions, a line each.

`cases.jsonl` has every question asked under the baseline and the champion, with replies and blame; `verdicts.jsonl` has
the verdicts of the model that judged, so that diagnoses count the same answers as wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from experiments.runs.earlier_names import by_current_side, current_split
from experiments.runs.folder import CASES, CONFIG, VERDICTS
from optimizer.evaluation.scores import SplitName
from tracing.errors import RunError
from tracing.files.opening import read_file
from tracing.formats import read_stamped, stamped
from tracing.recording.redaction import Redaction, redact
from tracing.strict_models import StrictModel
from tracing.systems.conversations import first_problem

if TYPE_CHECKING:
    from attribution.cases import Case
    from experiments.runs.folder import RunFolder
    from experiments.runs.seen_cases import SeenCase

Side = Literal["baseline", "champion"]

Verdicts = Mapping[tuple[str, str, str], float]
"""Scores by conversation, question and reply."""


_AnyLine = TypeVar("_AnyLine", bound=StrictModel)


class CaseBlame(StrictModel):
    """A decisive blame of a wrong reply."""

    operation: str
    error_type: str
    confidence: float
    reason: str

    def __str__(self) -> str:
        return f"{self.error_type} · {self.operation}"


class CaseReply(StrictModel):
    """A reply with its score, and whether it counts as right; a wrong one with its blame.

    `page` is the page of its trace, relative to the run's folder; null if no trace was kept.
    """

    reply: str
    score: float
    passed: bool
    blame: tuple[CaseBlame, ...] = ()
    page: str | None = None


class RunCase(StrictModel):
    """A question of a split with its gold answers, and the replies under the prompts that it was asked with."""

    split: Annotated[SplitName, BeforeValidator(current_split)]
    conversation: str
    question_id: str
    question: str
    answers: tuple[str, ...]
    replies: Annotated[dict[Side, CaseReply], BeforeValidator(by_current_side)]

    @property
    def key(self) -> tuple[str, str]:
        """What it is among the questions of its data set."""
        return self.conversation, self.question_id


def run_cases(folder: RunFolder, sides: Mapping[Side, Sequence[SeenCase]]) -> list[RunCase]:
    """The questions asked under the prompts of each side, in the order of the splits, without credentials."""
    by_question: dict[tuple[str, str], RunCase] = {}
    for side, cases in sides.items():
        for seen_case in cases:
            case = seen_case.case
            before = by_question.get((case.conversation, case.question.id))
            replies = {**(before.replies if before is not None else {}), side: _reply(folder, seen_case)}
            by_question[case.conversation, case.question.id] = RunCase(
                split=seen_case.split,
                conversation=case.conversation,
                question_id=case.question.id,
                question=case.question.question,
                answers=case.question.answers,
                replies=replies,
            )
    redacted = Redaction().value
    return [RunCase.model_validate(redacted(run_case.model_dump(mode="json"))) for run_case in by_question.values()]


def page_of(trace: Path) -> Path:
    """Where the page of a trace is: beside it."""
    return trace.with_suffix(".html")


def traces_seen(folder: RunFolder, side: str) -> list[Path]:
    """The traces that the replies under the prompts of a side are in, as far as they still exist."""
    pages = {reply.page for case in read_cases(folder) for name, reply in case.replies.items() if name == side}
    traces = [(folder.path / page).with_suffix(".jsonl") for page in pages if page is not None]
    # By conversation: their folders have names that differ between models' addresses, and intervals are drawn in order.
    return sorted((trace for trace in traces if trace.is_file()), key=lambda trace: (trace.name, trace.parent))


def _reply(folder: RunFolder, seen_case: SeenCase) -> CaseReply:
    decisive = seen_case.attribution.decisive if seen_case.attribution is not None else ()
    return CaseReply(
        reply=seen_case.case.reply,
        score=seen_case.case.judgement.score,
        passed=seen_case.case.passed,
        blame=tuple(
            CaseBlame(operation=b.operation, error_type=b.error_type, confidence=b.confidence, reason=b.reason)
            for b in decisive
        ),
        page=page_of(seen_case.trace).relative_to(folder.path).as_posix() if seen_case.trace is not None else None,
    )


def write_cases(folder: RunFolder, cases: Sequence[RunCase]) -> None:
    """Rewrite the file."""
    folder.write(CASES, _text_of(CASES, cases))


def read_cases(folder: RunFolder) -> list[RunCase]:
    """The questions that a run asked."""
    remedy = f"run the experiment again, from replies that are paid for: memtune run {folder.path / CONFIG}"
    return _lines_of(folder.path / CASES, RunCase, remedy)


class VerdictLine(StrictModel):
    """The score of one reply to one question; the reply is as a trace has it."""

    conversation: str
    question_id: str
    reply: str
    score: float


def write_verdicts(folder: RunFolder, cases: Iterable[Case]) -> None:
    """Rewrite the file."""
    lines = dict.fromkeys(
        VerdictLine(
            conversation=case.conversation,
            question_id=case.question.id,
            reply=redact(case.reply),
            score=case.judgement.score,
        )
        for case in cases
    )
    folder.write(VERDICTS, _text_of(VERDICTS, lines))


def read_verdicts(folder: RunFolder) -> Verdicts:
    """The verdicts of a run; none if no model judged it, or it was killed before it wrote them."""
    path = folder.path / VERDICTS
    lines = _lines_of(path, VerdictLine, "remove it to have words decide") if path.exists() else []
    return {(line.conversation, line.question_id, line.reply): line.score for line in lines}


def _text_of(kind: str, lines: Iterable[StrictModel]) -> str:
    rows = (json.dumps(stamped(kind, line.model_dump(mode="json")), ensure_ascii=False) for line in lines)
    return "".join(f"{row}\n" for row in rows)


def _lines_of(path: Path, kind: type[_AnyLine], remedy: str) -> list[_AnyLine]:
    try:
        lines = read_file(path).splitlines()
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror}); {remedy}") from None
    values, reader = [], TypeAdapter(kind)
    for number, line in enumerate(lines, start=1):
        try:
            values.append(read_stamped(path.name, line, path, reader))
        except ValidationError as error:
            raise RunError(f"{path}:{number}: {first_problem(error)}; {remedy}") from None
    return values
