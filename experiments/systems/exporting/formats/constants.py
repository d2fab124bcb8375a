"""Prompts as constants of a program: a JSON object, a dotenv file, a Python module; templates in `str.format` style."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from experiments.systems.exporting.written_files import OneFile, as_json, json_object
from tracing.errors import ContractError, RunError
from tracing.files.opening import read_text
from tracing.systems.prompts import Candidate


def literal(text: str) -> str:
    """A text as a Python expression, with each of its lines on a line."""
    lines = text.splitlines(keepends=True)
    if len(lines) < 2:
        return repr(text)
    return "(\n" + "".join(f"    {line!r}\n" for line in lines) + ")"


def python_constants(source: str) -> dict[str, str]:
    """The texts that a Python module gives to names, to keys of dictionaries and to keyword arguments, by name.

    A value is a literal, or a name that the module assigns a literal to. Of several values of a name the first counts.
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


JSON_FILE, DOTENV_FILE, PYTHON_FILE = "prompts.json", "prompts.env", "prompts.py"


def constant_of(prompt: str) -> str:
    """The name of a prompt's constant: `answer` is in `ANSWER_PROMPT`."""
    return re.sub(r"\W", "_", f"{prompt}_prompt", flags=re.ASCII).upper()


class _KnownByEnding(OneFile):
    """A file with an ending of its own."""

    def recognises(self, source: str) -> bool:
        """Whether it is a file with such an ending."""
        path, ending = Path(source), Path(self.file).suffix
        return path.is_file() and ending in (path.suffix, path.name)


class _Constants(_KnownByEnding):
    """A constant for each prompt."""

    def render(self, name: str, values: Mapping[str, str], folder: Path) -> str:
        """A prompt with its values, as `str.format` gives it."""
        return super().render(constant_of(name), values, folder)

    def constants(self, candidate: Candidate) -> dict[str, str]:
        """The texts by the name of the constant."""
        named = {constant_of(prompt): text for prompt, text in candidate.items()}
        if len(named) < len(candidate):
            raise ContractError(f"{self.file}: two of {', '.join(candidate)} would have the same name; take --to json")
        return named


class JsonConstants(_KnownByEnding):
    """A JSON object with a text for each prompt, by the name of the prompt."""

    file = JSON_FILE

    def content(self, candidate: Candidate) -> str:
        """The object."""
        return as_json(candidate)

    def texts(self, source: str) -> dict[str, str]:
        """The texts of an object, by key."""
        return {key: text for key, text in json_object(source).items() if isinstance(text, str)}


class DotenvConstants(_Constants):
    """A variable for each prompt in a dotenv file, as python-dotenv reads it."""

    file = DOTENV_FILE

    def content(self, candidate: Candidate) -> str:
        """The variables.

        Raises:
            ContractError: a text holds what python-dotenv replaces, and for which it has no escape.
        """
        for prompt, text in candidate.items():
            if "${" in text:
                raise ContractError(f"{prompt}: python-dotenv would replace '${{…}}' in it; write the dollar apart")
            if "\0" in text:
                raise ContractError(f"{prompt}: no environment variable can hold a null character; leave it out")
        return "".join(f"{name}={_quoted(text)}\n" for name, text in self.constants(candidate).items())

    def texts(self, source: str) -> dict[str, str]:
        """The texts of the variables."""
        from dotenv import dotenv_values

        read_text(Path(source))  # says in one line why a file cannot be read
        return {name: text for name, text in dotenv_values(source).items() if text is not None}


_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\r": "\\r"})


def _quoted(text: str) -> str:
    """A value in double quotes: lines stay lines, and a carriage return is escaped, since readers translate it."""
    return f'"{text.translate(_ESCAPES)}"'


class PythonConstants(_Constants):
    """A constant for each prompt in a Python module."""

    file = PYTHON_FILE

    def content(self, candidate: Candidate) -> str:
        """The module."""
        constants = [f"{name} = {literal(text)}\n" for name, text in self.constants(candidate).items()]
        return '"""Prompts tuned by memtune: fill them with `str.format`."""\n\n' + "\n".join(constants)

    def texts(self, source: str) -> dict[str, str]:
        """The texts of the module's constants; nothing of it is executed."""
        return python_constants(source)
