"""Files of an export: text byte by byte, JSON, folders whole or absent, and what exporters of one file share."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tracing.errors import RunError
from tracing.files.opening import read_text
from tracing.files.yaml_text import load_yaml
from tracing.systems.prompts import Candidate, render


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8, with the newlines that it has."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(text)


def as_json(value: Mapping[str, Any]) -> str:
    """A JSON object as it is written."""
    return json.dumps(dict(value), indent=2, ensure_ascii=False) + "\n"


def json_or_yaml(path: Path) -> object:
    """What is in a configuration in one of these forms.

    Raises:
        RunError: it cannot be read, or is in neither.
    """
    import yaml  # which an environment of a system may lack

    text = read_text(path)
    try:
        # JSON first: YAML's reader would not take every JSON string.
        return json.loads(text) if path.suffix == ".json" else load_yaml(text)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        # YAML's message quotes the line, which may hold a key.
        reason = " ".join(str(getattr(error, "problem", None) or error).split())
        raise RunError(
            f"{path}: no configuration ({reason}); give JSON (of a dict in a program: json.dumps) or YAML"
        ) from None


def json_object(source: str) -> dict[str, Any]:
    """The JSON object in a file."""
    try:
        value = json.loads(read_text(Path(source)))
    except (ValueError, RecursionError) as error:
        raise RunError(f"{source}: no JSON ({' '.join(str(error).split())}); give the file as it was written") from None
    if not isinstance(value, dict):
        raise RunError(f"{source}: holds no JSON object; give a file with a text for each prompt")
    return value


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """An empty folder to write into. When the block ends it becomes `out`; after an error nothing is left of it.

    Raises:
        RunError: `out` holds something already, or cannot be written.
    """
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise RunError(f"{out}: exists already; give --out a new folder, such as {out}-2")
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as scratch:
            folder = Path(scratch) / "whole"
            folder.mkdir()
            yield folder
            if out.exists():
                out.rmdir()
            os.replace(folder, out)
    except OSError as error:
        raise RunError(
            f"{error.filename or out}: cannot be written ({error.strerror}); give --out another folder"
        ) from None


class OneFile:
    """An exporter of one file, or a folder with it; its texts are memtune's own templates unless it says otherwise."""

    file: str

    def content(self, candidate: Candidate) -> str:
        """What the file holds."""
        raise NotImplementedError

    def write(self, candidate: Candidate, folder: Path) -> dict[str, str]:
        """Write the file."""
        write_text(folder / self.file, self.content(candidate))
        return dict.fromkeys(candidate, self.file)

    def render(self, name: str, values: Mapping[str, str], folder: Path) -> str:
        """A prompt with its values, as `str.format` gives it."""
        return render(self.texts(str(folder / self.file))[name], values)

    def recognises(self, source: str) -> bool:
        """Whether it is the file, or a folder with it."""
        path = self.path_in(source)
        return path.is_file() and path.name == self.file

    def texts(self, source: str) -> dict[str, str]:
        """The texts that it holds, by name."""
        raise NotImplementedError

    def template(self, text: str, placeholders: Collection[str]) -> str:
        """The text itself."""
        return text

    def path_in(self, source: str) -> Path:
        """The file, which a source may name by its folder."""
        path = Path(source)
        return path / self.file if path.is_dir() else path
