"""`ladder.json`: an oracle ladder as `memtune data audit --json` writes it, for reports to show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from optimizer.evaluation.ladder import Rung
from tracing.errors import DataError
from tracing.systems.conversations import first_problem

LADDER = "ladder.json"
"""Its name in a run's folder."""


_RUNGS = TypeAdapter(tuple[Rung, ...])


def ladder_json(rungs: Sequence[Rung]) -> str:
    """The text of the file."""
    return _RUNGS.dump_json(tuple(rungs), indent=2).decode() + "\n"


def read_ladder(path: Path) -> Sequence[Rung]:
    """The rungs in a file.

    Raises:
        DataError: it is not a ladder file.
    """
    try:
        return _RUNGS.validate_json(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); make it with: memtune data audit --json") from None
    except ValidationError as error:
        raise DataError(f"{path}: {first_problem(error)}; make it with: memtune data audit --json") from None
