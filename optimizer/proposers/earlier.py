"""Texts tried before, with what the local objective said of them, as an author of prompts is told of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, zip_longest

from tracing.systems.prompts import tokens_of

MOST_TOKENS = 600
"""Of all earlier texts in one request: a small author's context holds the prompt and its failures too."""

EACH_WAY = 2
"""Best and worst texts shown, at most."""


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


def best_and_worst(earlier: Iterable[EarlierText]) -> list[EarlierText]:
    """The texts with the greatest and the least gains, best first, of at most `MOST_TOKENS` together."""
    ranked = sorted(earlier, key=lambda earlier_text: -earlier_text.gain)
    best, worst = ranked[:EACH_WAY], ranked[EACH_WAY:][::-1][:EACH_WAY]
    room, texts = MOST_TOKENS, set[str]()
    for earlier_text in filter(None, chain.from_iterable(zip_longest(best, worst))):
        if tokens_of(earlier_text.text) <= room:
            room -= tokens_of(earlier_text.text)
            texts.add(earlier_text.text)
    return [earlier_text for earlier_text in ranked if earlier_text.text in texts]
