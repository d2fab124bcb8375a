"""What a check of the doctor found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "missing", "broken"]


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """The result of one check.

    Attributes:
        subject: what was looked at.
        state: `missing` is not needed by everyone; `broken` is what the asked-for run would fail on.
        says: what was found, in one line.
        remedy: what to do about it; empty if nothing has to be done.
    """

    subject: str
    state: State
    says: str
    remedy: str = ""
