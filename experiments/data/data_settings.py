"""The settings of a data set in a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Protocol

from pydantic import Field

from tracing.strict_models import SettingsSection

ADVERSARIAL = 5

Positive = Annotated[int, Field(ge=1)]


class DataLimits(SettingsSection):
    """How much of a data set to take; None takes everything."""

    conversations: Positive | None = None
    """Most conversations, over all splits together. Fewer than six in the test split prove nothing."""
    sessions: Positive | None = None
    """Only the first sessions of each conversation."""
    questions: Positive | None = None
    """Most questions about each conversation."""


class LocomoSettings(SettingsSection):
    """Which categories of LoCoMo are asked.

    Category 5 is left out unless listed: its gold reply is that the conversation does not say, so a memory that
    stores nothing answers all of it, and an optimizer would learn to store nothing.
    """

    categories: tuple[Annotated[int, Field(ge=1, le=ADVERSARIAL)], ...] = Field(default=(1, 2, 3, 4), min_length=1)
    """Categories of questions: 1 multi-hop, 2 temporal, 3 open-domain, 4 single-hop, 5 adversarial."""


class DataSettings(Protocol):
    """The part of a configuration that says which data to take."""

    @property
    def dataset(self) -> str: ...
    @property
    def data(self) -> Path | None: ...
    @property
    def limits(self) -> DataLimits: ...
    @property
    def locomo(self) -> LocomoSettings: ...
