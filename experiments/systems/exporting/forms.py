"""The exporters for any system as text files, and for any system with only an answer prompt."""

from __future__ import annotations

import string
from collections.abc import Collection, Mapping
from pathlib import Path

from experiments.systems.exporting.written_files import OneFile, as_json, json_object, write_text
from tracing.errors import ContractError, RunError
from tracing.files.opening import read_text
from tracing.systems.prompts import Candidate, escaped, render

_KEY = "answer_template"


class TextFiles:
    """A file `NAME.txt` for each prompt, as memtune writes it: a template in `str.format` style."""

    def write(self, candidate: Candidate, folder: Path) -> dict[str, str]:
        """Write the files."""
        for name, text in candidate.items():
            write_text(folder / f"{name}.txt", text)
        return {name: f"{name}.txt" for name in candidate}

    def render(self, name: str, values: Mapping[str, str], folder: Path) -> str:
        """A prompt with its values, by memtune's own rules."""
        return render(read_text(folder / f"{name}.txt"), values)

    def recognises(self, source: str) -> bool:
        """Whether it is a folder with text files."""
        folder = Path(source)
        return folder.is_dir() and any(folder.glob("*.txt"))

    def texts(self, source: str) -> dict[str, str]:
        """The texts of a folder, by the name of the file."""
        if not Path(source).is_dir():
            raise RunError(f"{source}: no such folder; give --from the folder with the files NAME.txt")
        return {path.stem: read_text(path) for path in sorted(Path(source).glob("*.txt"))}

    def template(self, text: str, placeholders: Collection[str]) -> str:
        """The text itself."""
        return text


class RagTemplate(OneFile):
    """The answer prompt as a `string.Template` in a JSON file."""

    prompts, file = frozenset({"answer"}), "rag.json"

    def content(self, candidate: Candidate) -> str:
        """The JSON object."""
        return as_json({_KEY: as_string_template(candidate["answer"])})

    def render(self, name: str, values: Mapping[str, str], folder: Path) -> str:
        """The prompt with its values, by Python's `string.Template`."""
        return string.Template(self.texts(str(folder))[name]).substitute(values)

    def texts(self, source: str) -> dict[str, str]:
        """The template of a JSON file."""
        text = json_object(str(self.path_in(source))).get(_KEY)
        if not isinstance(text, str):
            raise RunError(f"{source}: holds no text {_KEY!r}; give a JSON file with it")
        return {"answer": text}

    def template(self, text: str, placeholders: Collection[str]) -> str:
        """A `string.Template` as a prompt of memtune's.

        Raises:
            ContractError: a dollar in it begins no name, and is not doubled.
        """
        return from_string_template(text)


def from_string_template(text: str) -> str:
    """The prompt of a text in the syntax of `string.Template`."""
    parts, place = [], 0
    for dollar in string.Template.pattern.finditer(text):
        name = dollar["named"] or dollar["braced"]
        if name is None and dollar["escaped"] is None:
            snippet = text[dollar.start() : dollar.start() + 10]
            raise ContractError(f"the dollar in {snippet!r} begins no placeholder; write $$ for a dollar")
        parts += [escaped(text[place : dollar.start()]), "$" if name is None else f"{{{name}}}"]
        place = dollar.end()
    return "".join([*parts, escaped(text[place:])])


def as_string_template(text: str) -> str:
    """A prompt in the syntax of `string.Template`: `$question` for a placeholder, `$$` for a dollar, braces plain."""
    parts: list[str] = []
    pieces = list(string.Formatter().parse(text))
    for place, (literal, name, _, _) in enumerate(pieces):
        parts.append(literal.replace("$", "$$"))
        if name is not None:
            after = pieces[place + 1][0] if place + 1 < len(pieces) else ""
            # If a letter follows, the name needs braces.
            parts.append(f"${{{name}}}" if after[:1].isidentifier() or after[:1].isdigit() else f"${name}")
    return "".join(parts)
