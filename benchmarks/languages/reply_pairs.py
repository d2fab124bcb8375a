"""Accepted answers in fifteen languages, each with a reply that is right in another form, and a wrong one near it.

What is measured on, `held-out`, was written when the rules stood; those were developed on the others, which were
written, and measured, before any of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from benchmarks.matching.replies import Part

LANGUAGES = ("de", "fr", "es", "zh", "ja", "ko", "ru", "ar", "tr", "fi", "hu", "he", "th", "km", "lo")


@dataclass(frozen=True, slots=True)
class ReplyPair:
    """A question with its accepted answer, a right reply in another form, and a wrong one that looks much the same."""

    question: str
    answer: str
    right: str
    wrong: str


def reply_pairs(part: Part, language: str) -> list[ReplyPair]:
    """The pairs of one part in a language, from lines `question|answer|right|wrong`."""
    file = files("benchmarks.languages") / part.replace("-", "_") / f"{language}.txt"
    return [ReplyPair(*line.split("|")) for line in file.read_text(encoding="utf-8").splitlines()]
