"""How EverOS fills a prompt: nearly as `str.format` does, but it never refuses a brace."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from tracing.systems.prompts import placeholders_of, render

_OPEN, _CLOSE = "\0open\0", "\0close\0"


def rendered(text: str, values: Mapping[str, str]) -> str:
    """A slot's text with its values, as EverOS sends it."""
    masked = _masked(text)
    for name, value in values.items():
        masked = masked.replace(f"{{{name}}}", value)
    return masked.replace(_OPEN, "{").replace(_CLOSE, "}")


def as_template(text: str, placeholders: Collection[str]) -> str:
    """A slot's text as a template of memtune's, which gives the same request: a brace that is text is doubled there."""
    names = "|".join(map(re.escape, sorted(placeholders))) or "(?!)"
    parts = re.split(rf"(\{{(?:{names})\}})", _masked(text))
    doubled = (part if at % 2 else part.replace("{", "{{").replace("}", "}}") for at, part in enumerate(parts))
    return "".join(doubled).replace(_OPEN, "{{").replace(_CLOSE, "}}")


def reads_alike(text: str) -> Sequence[str]:
    """What is wrong with a template's braces for EverOS."""
    try:
        values = {name: f"<{name}>" for name in placeholders_of(text)}
    except ValueError:
        return ()  # the contract says so itself
    if rendered(text, values) != render(text, values):
        return ("EverOS reads braces beside a placeholder otherwise; put a blank between them",)
    return ()


def _masked(text: str) -> str:
    return text.replace("{{", _OPEN).replace("}}", _CLOSE)
