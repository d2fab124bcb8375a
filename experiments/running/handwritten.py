"""Prompts that people wrote, as candidates of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from optimizer.proposers.proposals import HAND, Proposal
from tracing.errors import ContractError, RunError
from tracing.suggestions import unknown_names
from tracing.systems.prompts import PromptSpec

_WRITTEN = "written by hand: "


def handwritten(path: Path, specs: Mapping[str, PromptSpec]) -> tuple[Proposal, ...]:
    """The rewrites in a file, or in all `.txt` files under a folder; `NAME.txt` and `NAME.anything.txt` are for NAME.

    A text equal to the system's own is left out.

    Raises:
        RunError: there is no rewrite, or a file is named for no prompt.
        ContractError: a text breaks its prompt's contract; nothing was spent on it.
    """
    files = sorted(path.rglob("*.txt")) if path.is_dir() else [path]
    found: dict[tuple[str, str], Proposal] = {}
    for file in files:
        name = file.name.partition(".")[0]
        if name not in specs:
            called = unknown_names([name], specs)
            raise RunError(f"{file}: no prompt is called {called}; name the file for one of {', '.join(specs)}")
        try:
            text = file.read_bytes().decode()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise RunError(f"{file}: cannot be read ({reason}); give --rewrites a text file or a folder") from None
        problems = specs[name].contract.violations(text)
        if problems:
            raise ContractError(f"{file}: {'; '.join(problems)}")
        if text != specs[name].text:
            found.setdefault((name, text), Proposal(name, text, HAND, f"{_WRITTEN}{file.name}"))
    if not found:
        raise RunError(f"{path}: holds no rewrite (NAME.txt); give --rewrites a text file or a folder")
    return tuple(found.values())


def kept_files(rewrites: Sequence[Proposal]) -> dict[str, str]:
    """Paths and texts by which `handwritten` finds these rewrites again, in this order."""
    return {f"{n:04}/{each.reason.removeprefix(_WRITTEN)}": each.text for n, each in enumerate(rewrites)}
