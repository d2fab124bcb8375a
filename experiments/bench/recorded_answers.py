"""Which answers were right, by prompts and conversation: what `memtune eval --answers` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from experiments.runs.earlier_names import by_current_side
from experiments.runs.folder import BASELINE
from optimizer.evaluation.evaluator import Outcome
from tracing.errors import DataError
from tracing.files.opening import read_file

Recorded = Mapping[str, Mapping[str, str]]
"""Prompts → conversation → its answers, right (+) or wrong (-); of the prompts `baseline` too."""

_READER = TypeAdapter(Annotated[dict[str, dict[str, str]], BeforeValidator(by_current_side)])


def read_answers(path: Path) -> Recorded:
    """Recorded answers from a JSON file: `{"baseline": {CONVERSATION: "+-+"}, PROMPTS: {…}, …}`."""
    try:
        recorded = _READER.validate_json(read_file(path))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"])) or "the whole file"
        raise DataError(
            f'{path}: {where}: {problem["msg"]}; give {{"baseline": {{"CONVERSATION": "+-+"}}, …}}'
        ) from None
    for name, answers in recorded.items():
        for conversation, marks in answers.items():
            if (
                not marks
                or set(marks) - {"+", "-"}
                or len(marks) != len(recorded.get(BASELINE, {}).get(conversation, marks))
            ):
                raise DataError(
                    f"{path}: {name}.{conversation}: a + or - for each question, as many as of {BASELINE!r}"
                )
    return recorded


def with_outcomes(recorded: Recorded, evaluated: Mapping[str, Sequence[Outcome]]) -> dict[str, dict[str, str]]:
    """The recorded answers and those of these outcomes by prompts; tainted outcomes are left out."""
    joined = {name: dict(answers) for name, answers in recorded.items()}
    for name, outcomes in evaluated.items():
        joined.setdefault(name, {}).update(
            (outcome.conversation.id, "".join("+" if case.passed else "-" for case in outcome.cases))
            for outcome in outcomes
            if outcome.tainted is None
        )
    return joined
