"""Quoting a trace's texts in reasons."""

from __future__ import annotations

from attribution.text.content import text_of
from tracing.graph.elements import Variable
from tracing.recording.redaction import excerpt

_LONGEST_QUOTE = 90


def quote(text: str) -> str:
    """A text in quotation marks, without credentials and cut to a readable length."""
    return f"'{excerpt(' '.join(text.split()), _LONGEST_QUOTE)}'"


def quoted(variable: Variable) -> str:
    """A variable's text in quotation marks."""
    return quote(text_of(variable.value))
