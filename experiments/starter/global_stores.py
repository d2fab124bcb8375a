"""What of a program is global and lasts from one memory to the next: databases, paths, containers and objects."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib.util
import re
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from experiments.systems.wrapped.program_state import CONTAINERS, is_own, state_of
from experiments.systems.wrapped.python_texts import parsed

STORES = re.compile(r"path|(?<!pro)file|db|database|folder|dir|store|home|root", re.IGNORECASE)
SQLITE = "sqlite:///"
READ = re.compile(r"prompt|template", re.IGNORECASE)
"""Names of what a program reads, and does not store in."""
_LASTS = "lasts from one memory to the next"
_KEEPS = re.compile(r"memor|store|notes|facts|history|index|vector|collection", re.IGNORECASE)
"""Names of what keeps memories, though it is of a library."""


def global_stores(name: str) -> tuple[dict[str, str], list[str]]:
    """By the places of a module's stores, what takes their place in a folder; and what else lasts, a line each."""
    stores: dict[str, str] = {}
    lasting: list[str] = []
    for module in modules_of(sys.modules[name]):
        source = Path(str(module.__file__)).resolve()
        tree = parsed(source.read_text(encoding="utf-8"))
        for attribute in _assigned(tree):
            try:
                value = functools.reduce(getattr, attribute.split("."), module)
            except AttributeError:
                continue
            place, file = f"{module.__name__}:{attribute}", _in_folder(attribute, value, source, module.__name__)
            if file is not None:
                stores[place] = file
            elif _is_of_library(value, module.__name__) and _KEEPS.search(attribute) and not READ.search(attribute):
                kind = f"{type(value).__module__}.{type(value).__qualname__}"
                lasting.append(f"{place}: what this {kind} keeps {_LASTS}; make it in `folder`")
        changed = {key for node in ast.walk(tree) if isinstance(node, ast.Global) for key in node.names}
        places = [f"{module.__name__}:{key}" for key in sorted(changed)]
        lasting += [
            f"{place}: a function sets it: it {_LASTS}; let build set it" for place in places if place not in stores
        ]
    return stores, lasting


def modules_of(module: ModuleType) -> Iterator[ModuleType]:
    """A module, and those of its package, or beside it, that it imports."""
    depth = module.__name__.count(".") + hasattr(module, "__path__")
    folder = Path(str(module.__file__)).resolve().parents[max(depth - 1, 0)]
    for listed in (queue := [module]):
        yield listed
        file = Path(str(listed.__file__))
        package = listed.__name__ if hasattr(listed, "__path__") else listed.__name__.rpartition(".")[0]
        names = list[str]()
        for node in ast.walk(parsed(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                source = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
                names += [source, *(f"{source}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                names += [alias.name for alias in node.names]
        for other in map(sys.modules.get, names):
            place = str(getattr(other, "__file__", None))
            is_new = other is not None and other not in queue and place.endswith(".py") and "site-packages" not in place
            if is_new and Path(place).resolve().is_relative_to(folder):
                queue.append(other)  # type: ignore[arg-type]


def _in_folder(name: str, value: Any, source: Path, module: str) -> str | None:
    """The file or folder that takes the place of a store; None of what is none."""
    plain = name.rpartition(".")[2].strip("_").lower()
    if isinstance(value, sqlite3.Connection):
        return "memory.db"
    if isinstance(value, str | Path) and STORES.search(name) and not READ.search(name):
        path = Path(str(value).removeprefix(SQLITE))
        is_path = isinstance(value, Path) or re.fullmatch(r"\S*[/.]\S*", value) is not None
        return path.name if is_path and not source.is_relative_to(path.resolve()) else None
    if isinstance(value, CONTAINERS):
        return None if value or not plain or "config" in plain else f"{plain}.json"
    if is_own(value) and not isinstance(value, type):
        is_of_program = type(value).__module__.partition(".")[0] == module.partition(".")[0]
        if is_of_program and any(isinstance(held, CONTAINERS) for held in vars(value).values()):
            with contextlib.suppress(TypeError):
                state_of(value)
                return f"{plain}.json"
    return None


def _is_of_library(value: Any, module: str) -> bool:
    is_object = is_own(value) and not isinstance(value, type | ModuleType | Path)
    return is_object and type(value).__module__.partition(".")[0] != module.partition(".")[0]


def _assigned(node: ast.AST, before: str = "") -> Iterator[str]:
    """Dotted names that a module or its classes assign."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.ClassDef):
            fields = any("dataclass" in ast.unparse(decorator) for decorator in inner.decorator_list)
            yield from () if fields else _assigned(inner, f"{before}{inner.name}.")
        elif isinstance(inner, ast.Assign | ast.AnnAssign):
            targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
            yield from (before + target.id for target in targets if isinstance(target, ast.Name))
