"""Tuned prompts as a patch of the program that they are for: each in its own place, in the syntax of the place."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.systems.wrapped.system import WrappedProgram
from tracing.errors import ContractError, RunError
from tracing.systems.prompts import Candidate, check_candidate
from tracing.systems.protocol import MemorySystem

_NO_NEWLINE = "\\ No newline at end of file\n"


def source_patch(
    system: MemorySystem, candidate: Candidate, baseline: Candidate, folder: Path
) -> tuple[str, list[str]]:
    """A unified diff that `git apply` takes in a folder, and why prompts are left out of it, a sentence each.

    Args:
        system: the program, of `memtune.system`.
        candidate: the tuned prompts.
        baseline: those that they were tuned from, which must be what stands in the program.
        folder: to which the names of files are relative.

    Raises:
        RunError: the system is no such program, or no tuned prompt can be written.
        ContractError: a prompt breaks its contract.
    """
    if not isinstance(system, WrappedProgram):
        raise RunError("--to source: where its prompts are written is known only of a program of memtune.system")
    check_candidate(system.prompts, candidate)
    before: dict[Path, str] = {}
    after: dict[Path, str] = {}
    left: list[str] = []
    for name, place in system.places.items():
        if candidate[name] == baseline[name]:
            continue
        content = after.get(place.file) or place.content()
        try:
            if not place.file.is_relative_to(folder):
                raise ContractError(f"{place.file} is not in {folder}; go to the folder of the program")
            changed = place.written(content, baseline[name], candidate[name])
        except ContractError as error:
            left.append(f"the prompt {name} is not in the patch: {error}")
            continue
        before.setdefault(place.file, content)
        after[place.file] = changed
    if left and not after:
        raise RunError(f"--to source: {'; '.join(left)}")
    diffs = (_difference(file.relative_to(folder).as_posix(), before[file], after[file]) for file in after)
    return "".join(line for lines in diffs for line in lines), left


def _difference(name: str, before: str, after: str) -> Iterator[str]:
    for line in difflib.unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}"):
        yield line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}"


def _lines(content: str) -> Sequence[str]:
    # A line ends at no other character, for Python as for git.
    return re.findall(r"[^\n]*\n|[^\n]+", content)
