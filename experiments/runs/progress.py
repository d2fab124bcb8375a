"""How far a run is, as its folder tells those who watch it: `progress.json`, and the rewrites of its rounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from experiments.runs.folder import PROGRESS, REWRITES, RunFolder
from optimizer.gating.gate import GateDecision
from optimizer.tuning.round import RewriteRecord, RoundRecord
from tracing.errors import RunError
from tracing.formats import read_stamped
from tracing.systems.conversations import first_problem

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` parts of a phase, and what the run has cost by then; `resumed` if it was interrupted before."""

    phase: str
    done: int
    total: int
    failed: int
    calls: int
    money: float
    resumed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """A line of `rewrites.jsonl`: a rewrite and the round that tried it."""

    round: int
    optimizer: str | None = None
    prompt: str
    source: str
    reason: str
    text: str
    screening: float | None = None
    gate: str | None = None
    local: float | None = None

    @property
    def record(self) -> RewriteRecord:
        decision = None if self.gate is None else GateDecision.read(self.gate)
        return RewriteRecord(self.prompt, self.source, self.reason, self.text, self.screening, decision, self.local)


_PROGRESS, _ATTEMPT = TypeAdapter(Progress), TypeAdapter(_Attempt)


def read_progress(folder: RunFolder) -> Progress | None:
    """What a run's folder says of its progress; None before its first phase.

    Raises:
        RunError: the file is damaged, or that of a later memtune.
    """
    path = folder.path / PROGRESS
    return _read(path, path.read_bytes(), _PROGRESS) if path.exists() else None


def with_rewrites(folder: RunFolder, rounds: tuple[RoundRecord, ...]) -> tuple[RoundRecord, ...]:
    """The rounds of a summary, which lacks what each of them tried, with that.

    Raises:
        RunError: the file of the rewrites is damaged, or that of a later memtune.
    """
    path = folder.path / REWRITES
    lines = path.read_bytes().splitlines() if path.exists() else []
    tried = [_read(path, line, _ATTEMPT) for line in lines]
    return tuple(
        replace(record, rewrites=tuple(attempt.record for attempt in tried if attempt.round == record.n))
        for record in rounds
    )


def _read(path: Path, data: bytes, reader: TypeAdapter[_Value]) -> _Value:
    try:
        return read_stamped(path.name, data, path, reader)
    except ValidationError as error:
        raise RunError(f"{path}: {first_problem(error)}; delete the file, from which nothing is resumed") from None
