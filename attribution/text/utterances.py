"""A turn in a text that was cut from the conversation: whether it is there, in which words, and attributed to whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from attribution.constants import BEGINNING_CHARACTERS, MOST_OF_AN_UTTERANCE
from attribution.text.content import content_of
from attribution.text.phrases import without_courtesies
from tracing.systems.conversations import Turn


@dataclass(frozen=True, slots=True)
class Repeated:
    """The line that repeats a turn, the share of the turn's content words in it, and if it names another speaker."""

    line: str
    share: float
    misascribed: bool


def repeated(turn: Turn, text: str, speakers: Iterable[str]) -> Repeated | None:
    """How a text repeats a turn; None if no line of it holds most of its words.

    A turn whose value was changed is still that turn, so numbers count no more than other words.
    """
    turn_words = content_of(without_courtesies(turn.text))
    if not turn_words or not is_most_of(turn_words, content_of(text)):
        return None
    lines = text.splitlines() if "\n" not in turn.text else [text]
    whole = next((line for line in lines if turn.text in line), None)
    line = whole or max(lines, key=lambda line: len(turn_words & content_of(line)))
    share = 1.0 if whole is not None else len(turn_words & content_of(line)) / len(turn_words)
    return Repeated(line, share, _misascribed(turn, line, speakers)) if share >= MOST_OF_AN_UTTERANCE else None


def is_most_of(turn_words: frozenset[str], words: frozenset[str]) -> bool:
    """Whether most of the content words that were said are among those found."""
    return len(turn_words & words) >= MOST_OF_AN_UTTERANCE * len(turn_words)


def passages_of(text: str) -> Sequence[str]:
    """The parts of a text in which a value and what it is about belong together: a line and the one it replies to."""
    lines = text.splitlines()
    return [f"{before}\n{line}" for before, line in pairwise(lines)] if len(lines) > 1 else [text]


def _misascribed(turn: Turn, line: str, speakers: Iterable[str]) -> bool:
    start = line.find(turn.text[:BEGINNING_CHARACTERS])
    label = content_of(line[:start] if start >= 0 else line.partition(": ")[0])
    own = content_of(turn.speaker)
    others = frozenset().union(*map(content_of, speakers)) - own
    return label.isdisjoint(own) and not label.isdisjoint(others)
