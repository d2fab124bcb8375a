"""The examples of the commands, which stand in a file beside this one."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files


def examples(command: str) -> str:
    """The end of a command's help, by the words of the command without `memtune`."""
    return f"\b\nExamples:\n{_texts()[command]}"


@cache
def _texts() -> dict[str, str]:
    return tomllib.loads((files("experiments.commands") / "examples.toml").read_text(encoding="utf-8"))
