"""What the table of docs/systems.md says of every system, beside what the code declares, is tried."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tracing.systems.conformance import MemorySystemConformance
from tracing.systems.description import describe
from tracing.systems.registry import SYSTEMS, open_system

FOLDER = Path(__file__).parent


def suites(kind: type[MemorySystemConformance]) -> Iterator[type[MemorySystemConformance]]:
    for suite in kind.__subclasses__():
        yield from (suite, *suites(suite))


def test_a_suite_tries_that_each_system_records_its_operations_and_keeps_conversations_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    modules = []
    for folder in (FOLDER, FOLDER / "foreign"):
        monkeypatch.syspath_prepend(folder)
        texts = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("test_*.py")}
        modules += [import_module(name).__name__ for name, text in texts.items() if "MemorySystemConformance)" in text]
    tried = set()
    for suite in suites(MemorySystemConformance):
        if suite.__module__ not in modules or not suite.__name__.startswith("Test"):
            continue
        # An example of a user's own system, which a fixture writes first.
        with contextlib.suppress(ModuleNotFoundError):
            tried.add(describe(suite().system()).name)
    assert {describe(open_system(name)).name for name in SYSTEMS.names()} - tried == set()
