"""Writing the files to begin with."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from experiments.runs.config_reference import ROLE, config_keys
from tracing.errors import ConfigError
from tracing.package_data import packaged_text

CONFIG, SYSTEM = "experiment.yaml", "my_memory.py"

_WIDTH = 100
_FIRST_ROLE = "task"

_HEAD = """\
# An experiment of memtune: memtune run experiment.yaml
# A key that is commented out shows what holds without it.
"""

_BEGUN_WITH = {
    "system": "my_memory:MyMemory",
    "dataset": "sample",
    "limits.conversations": "18",
    "limits.questions": "3",
    "models.task.model": "qwen2.5-coder-0.5b",
    "budget.minutes": "40",
}
"""Keys that are set, so that a first run ends soon."""


def write_starter(folder: Path) -> list[Path]:
    """Write a configuration and a memory system into a folder; the files that were written."""
    return write_files(folder, {CONFIG: starter_config(), SYSTEM: packaged_text("experiments.starter", SYSTEM)})


def write_files(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write files, by name, into a folder that has none of them; their paths."""
    for name in texts:
        if (folder / name).exists():
            raise ConfigError(f"{folder / name}: exists already; give another folder, or move it away")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written to ({error.strerror}); give another folder") from None
    return [folder / name for name in texts]


def starter_config(own: Mapping[str, str] = MappingProxyType({})) -> str:
    """The configuration: all keys with their meaning, those commented out that are not needed to begin with.

    `own` are the values of keys that are others than those to begin with.
    """
    values = {**_BEGUN_WITH, **own}
    lines, open_sections = [_HEAD.rstrip()], [""]
    for key in config_keys():
        full = key.name.replace(f".{ROLE}.", f".{_FIRST_ROLE}.")
        *sections, name = full.split(".")
        if sections[:1] != open_sections[:1] or not sections:
            lines.append("")
        shared = next(
            (at for at, section in enumerate(sections) if open_sections[at : at + 1] != [section]), len(sections)
        )
        for depth in range(shared, len(sections)):
            within = ".".join(sections[: depth + 1]) + "."
            is_set = any(key_name.startswith(within) for key_name in values)
            lines.append(_line(f"{sections[depth]}:", depth, is_set=is_set))
        open_sections = sections
        depth, begun = len(sections), values.get(full)
        choices = f" One of {', '.join(key.choices)}." if key.choices else ""
        lines += [
            f"{'  ' * depth}# {part}" for part in textwrap.wrap(key.meaning + choices, _WIDTH, break_on_hyphens=False)
        ]
        lines.append(_line(f"{name}: {begun or key.default}".rstrip(), depth, is_set=begun is not None))
    return "\n".join(lines) + "\n"


def _line(text: str, depth: int, *, is_set: bool) -> str:
    return f"{'  ' * depth}{'' if is_set else '# '}{text}"
