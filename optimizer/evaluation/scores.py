"""What a candidate scores, on which conversations and under which settings of the system."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tracing.systems.conversations import Conversation

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")
Interval = tuple[float, float]
"""Lower and upper bound."""

Setting = bool | int | float | str
Settings = Mapping[str, Setting]
"""Values of a system's settings, by name."""


def settings_text(settings: Settings, between: str = ", ") -> str:
    """Settings in words."""
    return between.join(f"{name} {setting_text(value)}" for name, value in settings.items())


def setting_text(value: Setting) -> str:
    """A setting as a configuration has it: `true`, not `True`."""
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True, slots=True)
class Splits:
    """Conversations by their use: the optimizer learns on `train`, gates on `validation`, and never sees `test`."""

    train: tuple[Conversation, ...]
    validation: tuple[Conversation, ...]
    test: tuple[Conversation, ...]

    def named(self) -> dict[SplitName, tuple[Conversation, ...]]:
        """The three splits, by their names in summaries and metrics."""
        return {"train": self.train, "validation": self.validation, "test": self.test}


@dataclass(frozen=True, slots=True)
class Score:
    """Means over judged questions, each in 0..1.

    Attributes:
        score: the run's primary metric.
        em: exact match.
        f1: token F1.
        contains: an accepted answer is contained in the reply.
        n: number of questions.
        ci: 95 % interval of `score` (`optimizer.evaluation.statistics`); None for a single conversation.
    """

    score: float
    em: float
    f1: float
    contains: float
    n: int
    ci: Interval | None
