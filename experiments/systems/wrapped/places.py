"""Where a prompt stands in a program: a text in its Python source, a file, or a key of a YAML, JSON or TOML file."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any

import yaml

from experiments.systems.wrapped.composed_text import ComposedText
from experiments.systems.wrapped.python_texts import python_texts
from experiments.systems.wrapped.templates import Template, template_of
from tracing.errors import ConfigError, ContractError, in_one_line
from tracing.plugins import look_in

_SHORTEST = 10
KEYED_FILES = (".yaml", ".yml", ".json", ".toml")
"""Files whose texts have keys: JSON is YAML."""

TEXT_FILES = (".txt", ".md", ".prompt", ".tmpl", ".j2", ".jinja", ".jinja2")
"""Files that are a text, by what people call them; any other is one too if it is named."""

_FRONT_MATTER = re.compile(r"---\r?\n.*?^---[ \t]*\r?\n", re.DOTALL | re.MULTILINE)
"""What is told of a text before it."""
_TOML_TEXT = re.compile(
    r"""(?<==)[ \t]*("{3}(?:[^\\]|\\.)*?"{3,5}|'{3}.*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')""", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class PromptPlace:
    """A prompt's place.

    Attributes:
        name: as the user wrote it.
        file: that it is in.
        key: of a YAML, JSON or TOML file, or the dotted name in a module; empty for a whole file.
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
        return self._template(self.content())

    def written(self, content: str, baseline: str, text: str) -> str:
        """The content of the file with another template in the place of the baseline.

        Raises:
            ContractError: something else stands there by now, or the place cannot hold the text.
        """
        place = self._python(content) if self.file.suffix == ".py" else None
        start, end, template = (0, 0, place.template) if place is not None else self._span(content)
        if template.text != baseline:
            raise ContractError(f"{self.name}: what stands there is no longer what was tuned; tune it again")
        changed = template.with_text(text)
        if place is not None:
            after = place.written(changed)
        else:
            source = changed.source
            if self.file.suffix in KEYED_FILES:
                before = content[start:end]
                source = _toml_text(source, before) if self._is_toml else _yaml_scalar(source, before)
            elif template.source.endswith("\n") and not source.endswith("\n"):
                source += "\n"
            after = content[:start] + (source.replace("\n", "\r\n") if "\r\n" in content else source) + content[end:]
        if self._template(after).shape != changed.shape:
            raise ContractError(f"{self.name}: the text cannot be written there in the syntax of the place")
        return after

    def problems(self, content: str, text: str) -> list[str]:
        """Why a text cannot be written in the file with this content; none if it can."""
        try:
            self.written(content, self._template(content).text, text)
        except ContractError as error:
            return [str(error)]
        return []

    def parts(self) -> tuple[frozenset[Any], Mapping[Any, str]]:
        """Where its literals stand, and where texts that look like prompts stand beside it and are none of it."""
        if self.file.suffix != ".py":
            return frozenset([(self.file, self.key)]), {}
        text = self._python(self.content())
        return frozenset((self.file, place) for place in text.places), {
            (
                self.file,
                place,
            ): f"{self.name}: line {place[0]}, {words[:60]!r}, is kept as it is: it stands in a branch or "
            "a loop, or is another text"
            for place, words in text.left.items()
        }

    def content(self) -> str:
        """What the file holds, with its own ends of lines.

        Raises:
            ConfigError: it cannot be read.
        """
        try:
            return self.file.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"prompts: {self.name}: {self.file} cannot be read ({error})") from None

    def _template(self, content: str) -> Template:
        return self._python(content).template if self.file.suffix == ".py" else self._span(content)[2]

    def _python(self, content: str) -> ComposedText:
        try:
            text = python_texts(content).at(self.key)
        except SyntaxError as error:
            raise ConfigError(f"prompts: {self.name}: {self.file}: {error.msg} in line {error.lineno}") from None
        except KeyError as error:
            raise ConfigError(f"prompts: {self.name}: {self.file} has no {error}") from None
        if text is None or len(text.template.text) < _SHORTEST:
            raise ConfigError(
                f"prompts: {self.name}: no text is written there; name where it stands: module:NAME, "
                "module:Class.method for one that is put together in it, a file, or file.yaml:key"
            )
        return text

    def _span(self, content: str) -> tuple[int, int, Template]:
        """Where the text begins and ends in a file that is not Python, and the template that it is."""
        if self._is_toml:
            return self._toml_span(content)
        if self.file.suffix in KEYED_FILES:
            scalar = self._scalar(self._tree(content))
            return scalar.start_mark.index, scalar.end_mark.index, template_of(scalar.value)
        jinja = self.file.suffix in (".j2", ".jinja", ".jinja2")
        front = _FRONT_MATTER.match(content)
        start = front.end() if front is not None else 0
        return start, len(content), template_of(content[start:], "jinja" if jinja else None)

    def text_keys(self) -> Iterator[str]:
        """The dotted keys of the file's texts, and other single values.

        Raises:
            ConfigError: it cannot be read.
        """
        held = [("", self._table(self.content()))]
        for before, value in held:
            if isinstance(value, dict):
                held += [(f"{before}.{key}".lstrip("."), inner) for key, inner in value.items()]
            elif not isinstance(value, list):
                yield before

    @property
    def _is_toml(self) -> bool:
        return self.file.suffix == ".toml"

    def _toml_span(self, content: str) -> tuple[int, int, Template]:
        """Where the text is that has the key: the one without which only that key has another value."""
        *tables, last = self.key.split(".")
        expected = self._table(content)
        with contextlib.suppress(KeyError, TypeError):
            holder = functools.reduce(dict.__getitem__, tables, expected)
            text, holder[last] = holder[last], ""
            for match in _TOML_TEXT.finditer(content) if isinstance(text, str) else ():
                start, end = match.span(1)
                with contextlib.suppress(tomllib.TOMLDecodeError):
                    if tomllib.loads(f'{content[:start]}""{content[end:]}') == expected:
                        return start, end, template_of(text)
        raise ConfigError(f"prompts: {self.name}: {self.file} has no text at {self.key!r}")

    def _table(self, content: str) -> Any:
        try:
            return tomllib.loads(content) if self._is_toml else yaml.safe_load(content)
        except (tomllib.TOMLDecodeError, yaml.YAMLError) as error:
            raise ConfigError(f"prompts: {self.name}: {self.file} is not valid ({in_one_line(error)})") from None

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
    if file.is_file():
        if bool(colon) != (file.suffix in KEYED_FILES):
            remedy = f"leave out :{key}, it is one text" if colon else f"name a key of it, {name}:key"
            raise ConfigError(f"prompts: {name!r}: {remedy}")
        return PromptPlace(name, file.resolve(), key)
    look_in(folder)
    module = before
    while True:
        try:
            spec = find_spec(module) if colon and all(map(str.isidentifier, module.split("."))) else None
        except (ImportError, ValueError):
            spec = None
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            raise ConfigError(
                f"prompts: {name!r}: there is no such file in {folder}, nor module; write module:NAME or a path"
            )
        place = PromptPlace(name, Path(spec.origin).resolve(), key)
        with contextlib.suppress(SyntaxError):  # told where its text is read
            source = python_texts(place.content()).imported(key.partition(".")[0])
            if source is not None:
                package = module if spec.submodule_search_locations is not None else module.rpartition(".")[0]
                module, key = _where(resolve_name(source[0], package), source[1], key.partition(".")[2])
                continue
        return place


def _where(module: str, imported: str, rest: str) -> tuple[str, str]:
    """Module and name there of what is imported from a module, or of something in a module that is imported from it."""
    with contextlib.suppress(ImportError, ValueError):
        if rest and find_spec(f"{module}.{imported}") is not None:
            return f"{module}.{imported}", rest
    return module, f"{imported}.{rest}" if rest else imported


def _toml_text(text: str, before: str) -> str:
    """A text in three quotes if it had these, else in one line; both escape as JSON does."""
    if before[:3] not in ('"""', "'''"):
        return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
    lines = [_toml_text(line, "")[1:-1] for line in text.split("\n")]
    begins = "\n" * (text[:1] == "\n" or before[3:5].lstrip("\r")[:1] in ("\n", "\\"))
    return '"""' + begins + "\n".join(lines).replace('\\"', '"').replace('"""', '""\\"') + '"""'


def _yaml_scalar(text: str, before: str) -> str:
    """A text as a block of lines if it was one, else in quotes."""
    lines = before.splitlines()
    fits = all(line == line.rstrip() for line in text.splitlines()) and not text.startswith((" ", "\n"))
    if not before.startswith("|") or not fits or text.endswith("\n\n") or len(lines) < 2:
        return json.dumps(text, ensure_ascii=False) + ("\n" if before.endswith("\n") else "")
    indent = min(len(line) - len(line.lstrip()) for line in lines[1:] if line.strip())
    block = textwrap.indent(text.rstrip("\n"), " " * indent)
    return f"{'|' if text.endswith(chr(10)) else '|-'}\n{block}\n"
