"""Pairs of a claim (a question with its answer) and a text that carries it or does not, in four languages.

What is measured on, `held-out`, was written before any matcher; rules are developed on other pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from experiments.bench.matching.replies import Part
from tracing.systems.conversations import Conversation, DialogueSession, Turn

LANGUAGES = ("en", "de", "es", "fr")


@dataclass(frozen=True, slots=True)
class ClaimPair:
    """A claim and a text.

    Attributes:
        language: of both.
        kind: what relates them: a `paraphrase` or another `form` carry the claim; an `opposite`, people who have
            `swapped` roles, and something `near` it do not.
        question, answer: the claim.
        text: what may carry it.
        carries: whether it does.
    """

    language: str
    kind: str
    question: str
    answer: str
    text: str
    carries: bool


def pairs_of(part: Part) -> list[ClaimPair]:
    """The pairs of one part, language by language."""
    found: list[ClaimPair] = []
    for language in LANGUAGES:
        file = files("experiments.bench.matching") / "pairs" / part / f"{language}.txt"
        for line in file.read_text(encoding="utf-8").splitlines():
            kind, question, answer, text, carries = line.split("|")
            found.append(ClaimPair(language, kind, question, answer, text, carries == "yes"))
    return found


def conversation_of(pairs: list[ClaimPair]) -> Conversation:
    """A conversation whose turns are the pairs' texts, so that a matcher knows which words and meanings are usual."""
    turns = tuple(Turn(id=f"D1:{at}", speaker="Zed", text=pair.text) for at, pair in enumerate(pairs, start=1))
    return Conversation(id="pairs", speakers=("Zed", "Yan"), sessions=(DialogueSession(id="D1", turns=turns),))
