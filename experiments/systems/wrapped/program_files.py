"""The files of a program: those that its wrapping imports, and what these import, without installed libraries."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from experiments.systems.wrapped.python_texts import parsed
from tracing.plugins import OUR_PACKAGES

_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
_NOT_ITS_OWN = {"memtune", *OUR_PACKAGES, *sys.stdlib_module_names}


def program_files(modules: Collection[str]) -> list[Path]:
    """The files of these modules and of what they import, of a package all of them; each once, in any order."""
    files = dict[Path, None]()
    queue = list(dict.fromkeys(module.partition(".")[0] for module in modules))
    for name in queue:
        new = [file for file in _files_of(name) if file not in files]
        files.update(dict.fromkeys(new))
        found = (imported for file in new for imported in _imported(file))
        queue += [imported for imported in dict.fromkeys(found) if imported not in queue]
    return [*files]


def _files_of(name: str) -> list[Path]:
    """Those of a module or package at the top; none of an installed one."""
    try:
        spec = None if name in _NOT_ITS_OWN else importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return []
    if spec is None:
        return []
    folders = [Path(place) for place in spec.submodule_search_locations or ()]
    files = [file for folder in folders for file in sorted(folder.rglob("*.py"))] or [Path(spec.origin or "")]
    return [file for file in files if file.suffix == ".py" and not _INSTALLED.search(str(file)) and file.is_file()]


def _imported(file: Path) -> Iterator[str]:
    """The names at the top of what a file imports."""
    try:
        tree = parsed(file.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
