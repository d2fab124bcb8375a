"""What a verdict may say of a conversation in a language whose reading was not measured: what its words show alone.

That a text lacks the answer cannot be known where its endings are not. That a text holds it word for word can.
"""

from __future__ import annotations

from attribution.cases import UNUSABLE_REPLY, Case
from attribution.survival.calibration import Grounds
from attribution.text.languages.reading_language import MEASURED
from attribution.text.tokens import normalise

NOT_READ = (
    f" (conversation, question or kind of answer is of none that reading was measured on, which are {MEASURED}, so this"
    " is hardly sure: endings and small words may hide what was said)"
)
"""Ends the reason of a verdict on a conversation in a language whose reading was not measured."""

UNREAD = (
    f"conversation, question or kind of answer is of none that reading was measured on ({MEASURED}), and no text holds "
    "the answer word for word from the evidence to the context, so where it was lost would be a guess: ask a "
    "model (--matcher llm)"
)

_BEGINNING = 4


def is_guess(grounds: Grounds, case: Case) -> bool:
    """Whether a verdict rests on words that are missing, where nothing says that they are not there in another form."""
    if grounds.read or grounds.error_type in ("JudgeError", UNUSABLE_REPLY):
        return False
    alike = any(_beginnings(case.reply) & _beginnings(answer) for answer in case.question.answers)
    return grounds.error_type != "ResponseError" or (grounds.followed and alike)


def _beginnings(text: str) -> set[str]:
    return {word[:_BEGINNING] for word in normalise(text) if len(word) >= _BEGINNING}
