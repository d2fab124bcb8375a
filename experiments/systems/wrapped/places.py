"""Where a prompt stands in a program: a text in its Python source, a file, or a key of a YAML or JSON file."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from experiments.systems.wrapped.templates import Field, Template, field_name, syntax_of_template, template_of
from tracing.errors import ConfigError, ContractError, in_one_line
from tracing.plugins import look_in

_SHORTEST = 12
KEYED_FILES = (".yaml", ".yml", ".json")
"""Files whose texts have keys: JSON is YAML."""

TEXT_FILES = (".txt", ".md", ".prompt", ".tmpl", ".j2", ".jinja", ".jinja2")
"""Files that are a text, by what people call them; any other is one too if it is named."""

_TELLS = re.compile(r"(?:.*\.)?(?:debug|info|warning|error|exception|critical|log|execute\w*)|print", re.DOTALL)
"""Calls whose texts are for people or databases."""
_CONVERSIONS = {-1: "", 115: "!s", 114: "!r", 97: "!a"}


@dataclass(frozen=True, slots=True)
class PromptPlace:
    """A prompt's place.

    Attributes:
        name: as the user wrote it.
        file: that it is in.
        key: of a YAML or JSON file, or the dotted name in a module; empty for a whole file.
    """

    name: str
    file: Path
    key: str

    def template(self) -> Template:
        """What stands there now.

        Raises:
            ConfigError: the file cannot be read, or has no text there.
            ContractError: the text has marks that memtune does not read.
        """
        return self._span(self.content())[2]

    def written(self, content: str, baseline: str, text: str) -> str:
        """The content of the file with another template in the place of the baseline.

        Raises:
            ContractError: something else stands there by now, or the place cannot hold the text.
        """
        start, end, template = self._span(content)
        if template.text != baseline:
            raise ContractError(f"{self.name}: what stands there is no longer what was tuned; tune it again")
        changed = template.with_text(text)
        source = changed.source
        if self.file.suffix == ".py":
            source = _python_literal(changed, content[start:end], start - (content.rfind("\n", 0, start) + 1))
        elif self.file.suffix in KEYED_FILES:
            source = _yaml_scalar(source, content[start:end])
        elif template.source.endswith("\n") and not source.endswith("\n"):
            source += "\n"
        source = source.replace("\n", "\r\n") if "\r\n" in content else source
        after = content[:start] + source + content[end:]
        if self._span(after)[2].shape != changed.shape:
            raise ContractError(f"{self.name}: the text cannot be written there in the syntax of the place")
        return after

    def content(self) -> str:
        """What the file holds, with its own ends of lines.

        Raises:
            ConfigError: it cannot be read.
        """
        try:
            return self.file.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"prompts: {self.name}: {self.file} cannot be read ({error})") from None

    def _span(self, content: str) -> tuple[int, int, Template]:
        """Where the text begins and ends in the file, and the template that it is."""
        if self.file.suffix == ".py":
            try:
                tree = ast.parse(content)
            except SyntaxError as error:
                raise ConfigError(f"prompts: {self.name}: {self.file}: {error.msg} in line {error.lineno}") from None
            node, called = self._node(tree)
            start = _offset(content, node.lineno, node.col_offset)
            end = _offset(content, node.end_lineno or node.lineno, node.end_col_offset or 0)
            if isinstance(node, ast.JoinedStr):
                return start, end, Template("f-string", tuple(_pieces_of(node)))
            return start, end, template_of(node.value, syntax_of_template(node.value) if called else None)
        if self.file.suffix in KEYED_FILES:
            scalar = self._scalar(self._tree(content))
            return scalar.start_mark.index, scalar.end_mark.index, template_of(scalar.value)
        jinja = self.file.suffix in (".j2", ".jinja", ".jinja2")
        return 0, len(content), template_of(content, "jinja" if jinja else None)

    def _node(self, tree: ast.Module) -> tuple[Any, bool]:
        """The longest text at the name, and whether a class `Template` is given it."""
        node: ast.AST = tree
        for part in self.key.split("."):
            inner = next((value for name, value in _named(node) if name == part), None)
            if inner is None:
                raise ConfigError(f"prompts: {self.name}: {self.file} has no {part!r}")
            node = inner
        docstring = (
            ast.get_docstring(node, clean=False) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None
        )
        texts = [text for text in _texts_in(node) if getattr(text, "value", None) != docstring or docstring is None]
        longest = max(texts, key=lambda text: len(ast.unparse(text)), default=None)
        if longest is None or len(ast.unparse(longest)) < _SHORTEST:
            raise ConfigError(
                f"prompts: {self.name}: no text is written there; name where it stands: module:NAME, "
                "module:Class.method for an f-string in it, a file, or file.yaml:key"
            )
        called = any("Template" in ast.unparse(call.func) for call in ast.walk(node) if isinstance(call, ast.Call))
        return longest, called

    def text_keys(self) -> Iterator[str]:
        """The dotted keys of the file's texts.

        Raises:
            ConfigError: it cannot be read.
        """
        nodes = [("", self._tree(self.content()))]
        for before, node in nodes:
            for key, value in node.value if isinstance(node, yaml.MappingNode) else []:
                if isinstance(value, yaml.ScalarNode):
                    yield f"{before}{key.value}"
                else:
                    nodes.append((f"{before}{key.value}.", value))

    def _tree(self, content: str) -> Any:
        try:
            return yaml.compose(content, Loader=yaml.SafeLoader)
        except yaml.YAMLError as error:
            raise ConfigError(f"prompts: {self.name}: {self.file} is not valid ({in_one_line(error)})") from None

    def _scalar(self, node: Any) -> Any:
        for part in self.key.split("."):
            pairs = node.value if isinstance(node, yaml.MappingNode) else []
            node = next((value for key, value in pairs if key.value == part), None)
        if not isinstance(node, yaml.ScalarNode):
            raise ConfigError(f"prompts: {self.name}: {self.file} has no text at {self.key!r}")
        return node


def place_of(name: str, folder: Path) -> PromptPlace:
    """The place of this name: `module:NAME`, `module:Class.method`, `file`, or `file.yaml:key.key`.

    Raises:
        ConfigError: there is no such module or file.
    """
    before, colon, key = name.rpartition(":") if ":" in name else (name, "", "")
    file = folder / before
    if file.is_file() and (bool(colon) == (file.suffix in KEYED_FILES)):
        return PromptPlace(name, file.resolve(), key)
    look_in(folder)
    try:
        spec = find_spec(before) if colon and all(map(str.isidentifier, before.split("."))) else None
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise ConfigError(
            f"prompts: {name!r}: there is no such file in {folder}, nor module; write module:NAME or a path"
        )
    return PromptPlace(name, Path(spec.origin).resolve(), key)


def _named(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant):
                yield str(key.value), value
        return
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield inner.name, inner
        elif isinstance(inner, ast.Assign | ast.AnnAssign) and inner.value is not None:
            targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
            for target in targets:
                yield ast.unparse(target).removeprefix("self."), inner.value


def _texts_in(node: ast.AST) -> Iterator[ast.Constant | ast.JoinedStr]:
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        yield node
        return
    if isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and _TELLS.fullmatch(ast.unparse(node.func))):
        return
    for inner in ast.iter_child_nodes(node):
        yield from _texts_in(inner)


def _pieces_of(node: ast.JoinedStr) -> Iterator[str | Field]:
    taken: dict[str, str] = {}
    for value in node.values:
        if isinstance(value, ast.Constant):
            yield str(value.value)
        elif isinstance(value, ast.FormattedValue):
            expression = ast.unparse(value.value)
            spec = f":{ast.unparse(value.format_spec)[2:-1]}" if value.format_spec is not None else ""
            source = f"{{{expression}{_CONVERSIONS[value.conversion]}{spec}}}"
            yield Field(field_name(expression, taken), source)


def _python_literal(template: Template, before: str, column: int) -> str:
    """A text in Python's syntax: with triple quotes or a line for each line if it was so, else in one line."""
    prefix = "f" if template.syntax == "f-string" else ""
    if prefix and any('"' in field.source or "\\" in field.source for field in template.fields.values()):
        raise ContractError("its fields have quotes or backslashes in them, which an f-string cannot hold")
    source = template.source.replace("\\", "\\\\").replace("\r", "\\r")
    if before.lstrip("rRfFbBuU").startswith(('"""', "'''")):
        body = source.replace('"""', '\\"\\"\\"')
        body = f'{body[:-1]}\\"' if body.endswith('"') else body
        return f'{prefix}"""{body}"""'
    several = "\n" in before and "\\\n" not in before
    lines = re.findall(r"[^\n]*\n|[^\n]+", source) if several else [source]
    literals = [prefix + '"' + line.replace('"', '\\"').replace("\n", "\\n") + '"' for line in lines]
    return f"\n{' ' * column}".join(literals)


def _yaml_scalar(text: str, before: str) -> str:
    """A text as a block of lines if it was one, else in quotes."""
    lines = before.splitlines()
    fits = all(line == line.rstrip() for line in text.splitlines()) and not text.startswith((" ", "\n"))
    if not before.startswith("|") or not fits or text.endswith("\n\n") or len(lines) < 2:
        return json.dumps(text, ensure_ascii=False) + ("\n" if before.endswith("\n") else "")
    indent = min(len(line) - len(line.lstrip()) for line in lines[1:] if line.strip())
    block = textwrap.indent(text.rstrip("\n"), " " * indent)
    return f"{'|' if text.endswith(chr(10)) else '|-'}\n{block}\n"


def _offset(content: str, line: int, column: int) -> int:
    """Where a place of Python's parser, which counts bytes, is in the text."""
    lines = content.split("\n")
    return sum(len(before) + 1 for before in lines[: line - 1]) + len(lines[line - 1].encode()[:column].decode())
