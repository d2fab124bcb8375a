"""What speakers state of themselves: clauses that neither ask, deny, wish nor speak to somebody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from attribution.text.clauses import statements_of
from attribution.text.content import time_words
from attribution.text.languages.language_data import compiled_of_language
from attribution.text.languages.reading_language import language
from attribution.text.phrases import denies, without_courtesies
from experiments.data.generating.word_sorts import has, has_own
from tracing.systems.conversations import Turn

_CLAUSES = compiled_of_language("common", "clauses")


@dataclass(frozen=True, slots=True)
class Statement:
    """A clause that tells something of who speaks, with the rest of its sentence."""

    text: str
    before: str
    after: str


def own_statements(turn: Turn, *, supposed: bool = False) -> Iterator[Statement]:
    """What a turn tells of its speaker; plans and wishes too if `supposed`."""
    for sentence in _sentences(turn):
        for text in statements_of(sentence):
            states = not has("addressed", text) and not denies(text) and (supposed or not has("supposed", text))
            if states and has_own(text) and text in sentence:
                yield Statement(text, *sentence.split(text, 1))


def stated(turn: Turn) -> str:
    """All that a turn states: no question, no courtesy, no caption of a picture."""
    return " ".join(_sentences(turn))


def _sentences(turn: Turn) -> list[str]:
    sentences = _CLAUSES["sentence"].split(_CLAUSES["caption"].sub(" ", turn.text))
    texts = [without_courtesies(text).strip() for text in sentences if not text.rstrip().endswith(("?", "？"))]
    return list(filter(None, texts))


def refers_back(text: str) -> bool:
    """Whether a text points at something before it; in `my tortoise and his crate` nothing does."""
    owner = compiled_of_language(language(), "frames")["possessive"]
    owned = next((match.end() for match in owner.finditer(text) if has("own", match[0])), len(text))
    for match in _CLAUSES["refers_back"].finditer(text):
        in_time = time_words(" ".join(text[match.end() :].split()[:1]))
        if not in_time and (match.start() < owned or not owner.fullmatch(match[0])):
            return True
    return False
