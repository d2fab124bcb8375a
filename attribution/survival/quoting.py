"""Quoting a trace's texts in reasons."""

from __future__ import annotations

from attribution.text.content import text_of
from tracing.graph.elements import Variable
from tracing.recording.redaction import redact

_LONGEST_QUOTE = 90


def quote(text: str) -> str:
    """A text in quotation marks, without credentials and cut to a readable length."""
    line = redact(" ".join(text.split()))
    return f"'{line[: _LONGEST_QUOTE - 1]}…'" if len(line) > _LONGEST_QUOTE else f"'{line}'"


def quoted(variable: Variable) -> str:
    """A variable's text in quotation marks."""
    return quote(text_of(variable.value))
