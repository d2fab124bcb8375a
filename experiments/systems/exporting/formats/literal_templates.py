"""Prompts in syntaxes where braces are plain: to and from memtune's templates, exactly, or not at all."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Collection

from tracing.errors import ContractError
from tracing.systems.prompts import escaped


def marked(template: str, mark: Callable[[str], str]) -> str:
    """A template with single literal braces, and each placeholder as `mark` writes its name."""
    pieces = string.Formatter().parse(template)
    return "".join(literal + (mark(name) if name is not None else "") for literal, name, _, _ in pieces)


def with_names(template: str) -> str:
    """A template with `{name}` for a placeholder and single literal braces.

    Raises:
        ContractError: a literal text would read as a placeholder.
    """
    pieces = list(string.Formatter().parse(template))
    names = {name for _, name, _, _ in pieces if name is not None}
    text = marked(template, lambda name: f"{{{name}}}")
    if from_names(text, names) != template:
        literals = marked(template, lambda name: "\0")
        clashes = ", ".join(f"{{{name}}}" for name in sorted(names) if f"{{{name}}}" in literals)
        raise ContractError(f"the literal text {clashes} would read as a placeholder there; reword it")
    return text


def from_names(text: str, names: Collection[str]) -> str:
    """The template of a text in which `{name}` stands for a placeholder if the name is one of these."""
    if not names:
        return escaped(text)
    pattern = "|".join(re.escape(name) for name in sorted(names))
    parts = re.split(rf"(\{{(?:{pattern})\}})", text)
    return "".join(part if number % 2 else escaped(part) for number, part in enumerate(parts))


_DOUBLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


def with_double_braces(template: str) -> str:
    """A template with `{{name}}` for a placeholder and single literal braces, as MLflow writes it.

    Raises:
        ContractError: a literal text would read as a placeholder.
    """
    text = marked(template, lambda name: f"{{{{{name}}}}}")
    try:
        same = from_double_braces(text) == template
    except ContractError:
        same = False
    if not same:
        raise ContractError("a literal brace would read as part of a variable there; reword it")
    return text


def from_double_braces(text: str) -> str:
    """The template of a text in which `{{name}}` stands for a placeholder; blanks around the name are left out.

    Raises:
        ContractError: a variable's name is no identifier.
    """
    parts = _DOUBLE.split(text)
    wrong = [name for name in parts[1::2] if not name.isidentifier()]
    if wrong:
        raise ContractError(f"{{{{{wrong[0]}}}}}: this name is not an identifier; rename the variable")
    return "".join(f"{{{part}}}" if number % 2 else escaped(part) for number, part in enumerate(parts))
