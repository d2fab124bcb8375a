"""An export in one file: what its exporters have in common, and JSON as they write and read it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from experiments.systems.exporting.written_files import read_text, write_text
from tracing.errors import RunError
from tracing.systems.prompts import Candidate, render


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


def as_json(value: Mapping[str, Any]) -> str:
    """A JSON object as it is written."""
    return json.dumps(dict(value), indent=2, ensure_ascii=False) + "\n"


def json_object(source: str) -> dict[str, Any]:
    """The JSON object in a file."""
    try:
        value = json.loads(read_text(Path(source)))
    except (ValueError, RecursionError) as error:
        raise RunError(f"{source}: no JSON ({' '.join(str(error).split())}); give the file as it was written") from None
    if not isinstance(value, dict):
        raise RunError(f"{source}: holds no JSON object; give a file with a text for each prompt")
    return value
