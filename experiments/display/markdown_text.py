"""Data within Markdown."""

from __future__ import annotations

import re

from experiments.display.terminal import one_line

_MARKUP = re.compile(
    r"[\\`*\[\]<>&|~$^]|(?<![^\W_])_+|_+(?![^\W_])"  # an underscore within a word is none
    r"|:(?=//)|(?<=www)\.",
    re.IGNORECASE,
)
_OPENING = re.compile(r"^(\d*)([#+=.)-])")


def literal(text: str) -> str:
    """Markdown that renders as `text`, on one line, with no markup, link, HTML or formula."""
    escaped = _MARKUP.sub(lambda markup: "".join(f"\\{sign}" for sign in markup[0]), one_line(text))
    return _OPENING.sub(r"\1\\\2", escaped)
