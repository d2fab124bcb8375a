"""`ladder.json`: an oracle ladder as `memtune data audit --json` writes it, for reports to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from tracing.errors import DataError
from tracing.systems.conversations import first_problem
from tracing.systems.protocol import Stage

if TYPE_CHECKING:
    from optimizer import ladder

LADDER = "ladder.json"
"""Its name in a run's folder."""


class Rung(BaseModel):
    """A rung: `score` is the mean over `n` questions, 0 to 1, `ci` its 95 % interval over conversations."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    score: float
    ci: tuple[float, float]
    n: int
    stage: Stage | None = None


_RUNGS = TypeAdapter(tuple[Rung, ...])


def write_ladder(path: Path, rungs: Sequence[ladder.Rung]) -> None:
    """Write the rungs.

    Raises:
        DataError: the file cannot be written.
    """
    written = tuple(Rung(**asdict(rung)) for rung in rungs)
    try:
        path.write_bytes(_RUNGS.dump_json(written, indent=2) + b"\n")
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror}); give --json another file") from None


def read_ladder(path: Path) -> Sequence[Rung]:
    """The rungs in a file.

    Raises:
        DataError: it is not one.
    """
    try:
        return _RUNGS.validate_json(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); make it with: memtune data audit --json") from None
    except ValidationError as error:
        raise DataError(f"{path}: {first_problem(error)}; make it with: memtune data audit --json") from None
