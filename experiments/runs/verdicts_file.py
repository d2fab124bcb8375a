"""`verdicts.jsonl`: the verdicts of the model that judged a run, so that diagnoses count the same answers as wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ConfigDict, ValidationError

from attribution.cases import Case
from experiments.runs.folder import VERDICTS, RunFolder
from tracing.errors import RunError
from tracing.recording.redaction import redact
from tracing.systems.conversations import first_problem

Verdicts = Mapping[tuple[str, str, str], float]
"""Scores by conversation, question and reply."""


class VerdictLine(BaseModel):
    """The score of one reply to one question; the reply is as a trace has it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    conversation: str
    question_id: str
    reply: str
    score: float


def write_verdicts(folder: RunFolder, cases: Iterable[Case]) -> None:
    """Rewrite the file.

    Raises:
        RunError: it cannot be written.
    """
    lines = dict.fromkeys(
        VerdictLine(
            conversation=case.conversation,
            question_id=case.question.id,
            reply=redact(case.reply),
            score=case.judgement.score,
        ).model_dump_json()
        for case in cases
    )
    folder.write(VERDICTS, "".join(f"{line}\n" for line in lines))


def read_verdicts(folder: RunFolder) -> Verdicts:
    """The verdicts of a run; none if no model judged it, or it was killed before it wrote them.

    Raises:
        RunError: the file is damaged.
    """
    path = folder.path / VERDICTS
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror})") from None
    scores: dict[tuple[str, str, str], float] = {}
    for number, line in enumerate(lines, start=1):
        try:
            verdict = VerdictLine.model_validate_json(line)
        except ValidationError as error:
            raise RunError(f"{path}:{number}: {first_problem(error)}; remove it to have words decide") from None
        scores[verdict.conversation, verdict.question_id, verdict.reply] = verdict.score
    return scores
