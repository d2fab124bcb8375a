"""At which step the answer was lost, by what went over HTTP and by the library's own store and history alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from attribution.cases import ErrorType
from benchmarks.mem0_failures.model import Exchange
from benchmarks.mem0_failures.story import Story
from tracing.errors import MemtuneError


def true_error(story: Story, exchanges: Sequence[Exchange], store: Mapping[str, Any]) -> ErrorType | None:
    """The error type of what really happened; None if the reply was right.

    Args:
        exchanges: what the library asked the model, and what it was answered.
        store: what `drive.converse` returns.

    Raises:
        MemtuneError: the library never read the turn that says the answer.
    """
    if _has(story.answer, exchanges[-1].reply):
        return None
    session, place = story.needed
    turn = story.sessions[session][place].spoken
    read = [each for each in exchanges if each.session == session and turn in each.request]
    if not read:
        raise MemtuneError(f"{turn}: Mem0 asked no model what to extract of it")
    if not any(_about(story, each.reply) for each in read):
        return "ExtractionError"
    if not any(_about(story, text) for text in store["stored"]):
        events = [event for event, before, _ in store["history"] if before and _about(story, before)]
        return "DeletionError" if events and events[-1] == "DELETE" else "UpdateError"
    shown = exchanges[-1].request.partition("Question:")[0]
    return "ResponseError" if _about(story, shown) else "RetrievalError"


def _about(story: Story, text: str) -> bool:
    """Whether a text has the fact that answers the question, in any of the words that the plan uses for it."""
    return any(fact in text for fact in story.facts)


def _has(value: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(value)}\b", text, re.IGNORECASE) is not None
