"""Pairs of a claim and a text that carries it or does not, in four languages, of which matchers are measured on a part.

What is measured on, `held-out`, was written before any matcher; rules are developed on the known pairs.
"""

from __future__ import annotations

from importlib.resources import files

from attribution.survival.matching.known_verdicts import KNOWN_LANGUAGES, ClaimPair, known_pairs, read_pairs
from benchmarks.matching.replies import Part
from tracing.systems.conversations import Conversation, DialogueSession, Turn

LANGUAGES = KNOWN_LANGUAGES


def pairs_of(part: Part) -> list[ClaimPair]:
    """The pairs of one part, language by language."""
    return [pair for language in LANGUAGES for pair in (known_pairs if part == "development" else _held_out)(language)]


def _held_out(language: str) -> list[ClaimPair]:
    file = files("benchmarks.matching") / "held_out" / f"{language}.txt"
    return list(read_pairs(file.read_text(encoding="utf-8"), language))


def conversation_of(pairs: list[ClaimPair]) -> Conversation:
    """A conversation whose turns are the pairs' texts, so that a matcher knows which words and meanings are usual."""
    turns = tuple(Turn(id=f"D1:{at}", speaker="Zed", text=pair.text) for at, pair in enumerate(pairs, start=1))
    return Conversation(id="pairs", speakers=("Zed", "Yan"), sessions=(DialogueSession(id="D1", turns=turns),))
