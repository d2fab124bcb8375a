"""Texts in Python source: written as literals, and read without executing anything."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from experiments.systems.exporting.written_files import read_text
from tracing.errors import RunError


def literal(text: str) -> str:
    """A text as a Python expression, with each of its lines on a line."""
    lines = text.splitlines(keepends=True)
    if len(lines) < 2:
        return repr(text)
    return "(\n" + "".join(f"    {line!r}\n" for line in lines) + ")"


def python_constants(source: str) -> dict[str, str]:
    """The texts that a Python module gives to names, to keys of dictionaries and to keyword arguments, by name.

    A value is a literal, or a name that the module assigns a literal to. Of several values of a name the first counts.

    Raises:
        RunError: it is no Python.
    """
    try:
        tree = ast.parse(read_text(Path(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = " ".join(str(error).split())
        raise RunError(f"{source}: no Python ({reason}); give a module that Python imports") from None
    constants: dict[str, str] = {}
    for name, value in _assigned(tree):
        _keep(constants, name, value, constants)
    texts: dict[str, str] = {}
    for name, value in _keyed(tree):
        _keep(texts, name, value, constants)
    return constants | texts


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None]]:
    for node in tree.body:
        if isinstance(node, ast.Assign):
            yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value


def _keyed(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, value
        elif isinstance(node, ast.keyword) and node.arg is not None:
            yield node.arg, node.value


def _keep(texts: dict[str, str], name: str, value: ast.expr | None, constants: Mapping[str, str]) -> None:
    if isinstance(value, ast.Name):
        text: object = constants.get(value.id)
    else:
        text = value.value if isinstance(value, ast.Constant) else None
    if isinstance(text, str):
        texts.setdefault(name, text)
