"""The examples in docstrings work as they stand there, and each name of the documented modules has one."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import memtune.systems
import tracing

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("memtune", "tracing", "attribution", "optimizer", "experiments")
DOCUMENTED = (memtune, memtune.systems, tracing)
IMPORTED = {name: getattr(tracing, name) for name in tracing.__all__} | {
    name: getattr(memtune.systems, name) for name in memtune.systems.__all__
}
"""What an example may use besides the names of its own module."""


def examples() -> Iterator[Any]:
    """Module and docstring of every example, read from the sources, since decorators hide functions."""
    for file in (file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))):
        text = file.read_text(encoding="utf-8")
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(text)) if ">>> " in text else ():
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                docstring = ast.get_docstring(node) or ""
                if ">>> " in docstring:
                    yield pytest.param(module, docstring, id=f"{module}.{node.name}")


@pytest.mark.parametrize(("module", "docstring"), examples())
def test_an_example_gives_what_it_shows(
    module: str, docstring: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = IMPORTED | vars(importlib.import_module(module))
    report: list[str] = []
    example = doctest.DocTestParser().get_doctest(docstring, names, module, None, 0)
    doctest.DocTestRunner().run(example, out=report.append)
    assert not "".join(report)


@pytest.mark.parametrize("package", DOCUMENTED, ids=lambda package: package.__name__)
def test_every_documented_class_and_function_has_an_example(package: ModuleType) -> None:
    parts = {name: getattr(package, name) for name in package.__all__}
    documented = [name for name, part in parts.items() if inspect.isclass(part) or inspect.isroutine(part)]
    assert [name for name in documented if ">>> " not in (parts[name].__doc__ or "")] == []
