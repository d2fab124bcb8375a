"""Regular expressions that a person or a model gives, tried within limits of time.

Python's own `re` cannot be stopped, and some expressions (`(a+)+$`) take for ever on an unlucky text. The `regex`
package takes the same expressions and can be stopped; it is loaded when the first expression is compiled. A text is
tried line by line, as grep does, in pieces of at most 2,000 characters that overlap by half, so that a long line takes
no more time than its length is worth; what is found is up to 1,000 characters long, sometimes more.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from tracing.errors import TraceError

LONGEST_EXPRESSION = 500
"""Characters of an expression at most."""

PIECE = 2000
SECONDS_A_TEXT, SECONDS = 1.0, 60.0
"""Processor time that an expression may take on one text, and on all texts together."""


class Expression:
    """A compiled regular expression, in the syntax of Python's `re`. Capital letters matter; `(?i)` changes that.

    Raises:
        TraceError: it is malformed or too long, or the package `regex` is not installed.
    """

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST_EXPRESSION:
            raise TraceError(f"the expression has {len(text)} characters; shorten it to {LONGEST_EXPRESSION}")
        try:
            import regex
        except ImportError:
            raise TraceError(
                "a regular expression needs the package regex: pip install regex; "
                "leave out --regex to search for the text as it is"
            ) from None
        try:
            self._compiled: Any = regex.compile(text)
        except (regex.error, ValueError, OverflowError, RecursionError) as error:
            raise TraceError(
                f"{text!r} is not a regular expression: {error}; leave out --regex to search for it as it is"
            ) from None
        self._text, self._left = text, SECONDS

    def spans(self, text: str, most: int) -> list[tuple[int, int]]:
        """First and last position of the first matches in `text`, at most so many, none within another.

        Raises:
            TraceError: they took too long to find.
        """
        spans: list[tuple[int, int]] = []
        begun, allowed = time.thread_time(), min(SECONDS_A_TEXT, self._left)
        try:
            for line, start, first, last in _pieces(text):
                remaining = allowed - (time.thread_time() - begun)
                if remaining <= 0:
                    raise TimeoutError
                for hit in self._compiled.finditer(line, first, last, timeout=remaining):
                    if not spans or start + hit.start() >= spans[-1][1]:
                        spans.append((start + hit.start(), start + hit.end()))
                    if len(spans) == most:
                        return spans
        except TimeoutError:
            limit = f"{SECONDS_A_TEXT:g} s on one text" if allowed == SECONDS_A_TEXT else f"{SECONDS:g} s"
            raise TraceError(
                f"{self._text!r} takes more than {limit}; repeat less in it (a+ for (a+)+), or search in less"
            ) from None
        finally:
            self._left -= time.thread_time() - begun
        return spans


def _pieces(text: str) -> Iterator[tuple[str, int, int, int]]:
    """Each line of a text with where it starts, and the first and last position in it of a piece to try."""
    start = 0
    for line in text.split("\n"):
        for offset in range(0, max(1, len(line) - PIECE // 2), PIECE // 2):
            yield line, start, offset, min(len(line), offset + PIECE)
        start += len(line) + 1
