"""Claims and replies whose verdict is known: rules are developed on them, and a model is tried on them.

None of them is among those that matchers are measured on (`python -m benchmarks matcher`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tracing.package_data import packaged_text

KNOWN_LANGUAGES = ("en", "de", "es", "fr")


@dataclass(frozen=True, slots=True)
class ClaimPair:
    """A claim (a question with its answer) and a text, what relates them, and whether the text carries the claim.

    A `paraphrase` or another `form` carry it; an `opposite`, people with `swapped` roles, and something `near` do not.
    """

    language: str
    kind: str
    question: str
    answer: str
    text: str
    carries: bool


@dataclass(frozen=True, slots=True)
class ReplyTwins:
    """A reply that is right in other words than the accepted answer (`kind` says how), and a wrong one like it."""

    kind: str
    question: str
    answer: str
    right: str
    wrong: str


def known_pairs(language: str) -> list[ClaimPair]:
    """The pairs in a language; in English if there are none in it."""
    nearest = language if language in KNOWN_LANGUAGES else KNOWN_LANGUAGES[0]
    return list(read_pairs(packaged_text("attribution.survival.matching", f"known/{nearest}.txt"), nearest))


def known_replies() -> list[ReplyTwins]:
    """The replies, in several languages."""
    return list(read_replies(packaged_text("attribution.survival.matching", "known/replies.txt")))


def read_pairs(text: str, language: str) -> Iterator[ClaimPair]:
    """The pairs in a text of lines `kind|question|answer|text|yes`, or `no`."""
    for line in text.splitlines():
        kind, question, answer, reply_text, carries = line.split("|")
        yield ClaimPair(language, kind, question, answer, reply_text, carries == "yes")


def read_replies(text: str) -> Iterator[ReplyTwins]:
    """The replies in a text of lines `kind|question|answer|right|wrong`."""
    for line in text.splitlines():
        yield ReplyTwins(*line.split("|"))
