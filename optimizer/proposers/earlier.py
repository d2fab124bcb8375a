"""A text tried before, with what the local objective said of it, as an author of prompts is told of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EarlierText:
    """A text that was measured on recorded inputs of its prompt's operation.

    Attributes:
        text: the text.
        score: mean credit, 0 to 1.
        champion: that of the champion of the time on the same inputs.
    """

    text: str
    score: float
    champion: float

    @property
    def gain(self) -> float:
        """What it gained over that champion: comparable, whatever inputs it met."""
        return self.score - self.champion
