"""Text on its way to the terminal: all of it is data, and none of it steers the terminal.

What is printed quotes traces, data sets, replies and settings. `visible` makes any of it safe, `say` prints it, and
`literal_console` does the same for tables and colours, `literal` for Markdown. Nothing else in the commands prints.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import traceback
import unicodedata
import warnings
from types import TracebackType
from typing import Any

import click

from tracing.recording.known_secrets import without_remembered

_STEERING = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Categories of characters that move the cursor, colour, hide or turn round what is around them, or are half of one."""
_JOINERS = "\u200c\u200d"
"""Shape the letters of several scripts, and emoji of several parts."""
_LONGEST_HALF = 1000
_SUSPECT = re.compile(r"[^\n\t\x20-\x7e\xa0-\xac\xae-\u05ff]")
_plain_warning = warnings.formatwarning
_MARKUP = re.compile(
    r"[\\`*\[\]<>&|~$^]|(?<![^\W_])_+|_+(?![^\W_])"  # an underscore within a word is none
    r"|:(?=//)|(?<=www)\.",
    re.IGNORECASE,
)
_CLOSING = re.compile(r"(?<!\S)#+$")
"""What would end a heading."""
_OPENING = re.compile(r"^(\d*)([#+=.)-])")


def visible(text: str) -> str:
    """The text with a JSON escape (`\\u001b`) for each invisible or control character; lines stay lines.

    JSON stays the same JSON. Never raises.
    """
    return text if text.isprintable() else _SUSPECT.sub(_visible_character, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """As `visible`, on one line."""
    return " ".join(visible(text).split())


def shortened(text: str, longest: int) -> str:
    """A text of at most so many characters, the last of which shows that it was cut."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def brief(error: str) -> str:
    """An error on one line, without its middle if it is long: the problem comes first, the remedy last."""
    line = one_line(error)
    left_out = len(line) - 2 * _LONGEST_HALF
    if left_out <= 0:
        return line
    return f"{line[:_LONGEST_HALF]} … [{left_out} characters] … {line[-_LONGEST_HALF:]}"


def _visible_character(match: re.Match[str]) -> str:
    character = match[0]
    if unicodedata.category(character) not in _STEERING or character in _JOINERS:
        return character
    return json.dumps(character)[1:-1]


def say(text: object = "", *, err: bool = False) -> None:
    """Print a line, on stderr if `err`."""
    click.echo(visible(without_remembered(str(text))), err=err)


def say_library_messages() -> None:
    """Print log records, warnings and tracebacks of any library the way `say` does."""
    logging.setLogRecordFactory(_Record)
    warnings.formatwarning = _warning
    sys.excepthook = _uncaught
    threading.excepthook = lambda event: _uncaught(event.exc_type, event.exc_value, event.exc_traceback)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that is not in UTF-8 lacks characters


class _Record(logging.LogRecord):
    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, **named)
        if self.exc_info:
            self.exc_text = visible(without_remembered(logging.Formatter().formatException(self.exc_info)))

    def getMessage(self) -> str:  # noqa: N802 (the name is logging's)
        return visible(without_remembered(super().getMessage()))


def _warning(*positional: Any, **named: Any) -> str:
    return visible(without_remembered(_plain_warning(*positional, **named)))


def _uncaught(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
    say("".join(traceback.format_exception(kind, error, trace)).rstrip(), err=True)


def literal(text: str) -> str:
    """Markdown that renders as `text`, on one line, with no markup, link, HTML or formula."""
    escaped = _MARKUP.sub(lambda markup: "".join(f"\\{sign}" for sign in markup[0]), one_line(text))
    return _CLOSING.sub(r"\\\g<0>", _OPENING.sub(r"\1\\\2", escaped))
