"""What docs/extending.md shows works as it stands there."""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import click
import pytest
import yaml
from own_parts import install
from scripted_server import ScriptedServer

from experiments.command import cli
from experiments.runs.config import RunConfig
from experiments.systems.exporting.exporter import EXPORTERS, Exporter, open_exporter
from experiments.systems.wrapped.system import WrappedProgram
from tracing.conformance import Conformance
from tracing.llm.access import ModelAccess
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace
from tracing.systems.conformance import MemorySystemConformance
from tracing.systems.protocol import MemorySystem
from tracing.systems.registry import SYSTEMS, open_system

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
MODULES = dict(re.findall(r"```python\n# (\w+)\.py\n(.*?)```", PAGE, re.DOTALL))


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(autouse=True)
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's modules as files of the current folder."""
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_every_python_block_is_a_named_module() -> None:
    assert len(MODULES) == len(blocks("python")) > 5


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_the_page_runs_and_its_suites_find_nothing(name: str) -> None:
    module = importlib.import_module(name)
    suites = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == name]
    for suite in suites:
        if issubclass(suite, Conformance):
            assert suite().problems() == []
    if isinstance(wrapped := getattr(module, "system", None), WrappedProgram):
        assert wrapped.watched is not None
        wrapped.watched.undo()
    if name.startswith("test_"):
        assert suites
        assert len(MODULES[name].splitlines()) <= 16


def test_the_pages_existing_program_is_a_memory_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    system = importlib.import_module("wrapped_notes").system

    class TestWrapped(MemorySystemConformance):
        def system(self) -> MemorySystem:
            return system

    assert TestWrapped().problems() == []
    system.watched.undo()


def test_the_pages_configuration_names_the_pages_system() -> None:
    (text,) = blocks("yaml")
    config = RunConfig.model_validate(yaml.safe_load(text))
    assert isinstance(open_system(config.system, config.system_settings), MemorySystem)


def test_the_pages_entry_points_are_found(written: Path) -> None:
    (text,) = blocks("toml")
    declared = tomllib.loads(text)["project"]["entry-points"]
    for group, points in declared.items():
        for name, target in points.items():
            install(written, group, name, target)
    assert isinstance(open_system("my-memory"), MemorySystem)
    assert isinstance(open_exporter("my-json"), Exporter)
    assert {f"memtune.{registry.kind}" for registry in (SYSTEMS, EXPORTERS)} == set(declared)


def test_a_client_at_the_gateway_is_part_of_the_operation_that_asks(
    scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess]
) -> None:
    scripted_server.script = lambda body: "Oslo"
    access = open_access()
    with trace() as recorder, operation("reply"):
        assert importlib.import_module("my_client").ask(access, "Where?") == "Oslo"
    (recorded,) = recorder.graph.operations.values()
    assert (recorded.name, recorded.calls) == ("reply", 1)


def test_every_command_and_protocol_of_the_page_exists() -> None:
    commands = set(re.findall(r"^memtune (\w+)", PAGE, re.MULTILINE))
    assert commands
    assert commands <= set(cli.list_commands(click.Context(cli)))
    protocols = importlib.import_module("tracing.systems.protocol")
    named = re.findall(r"^\| `\w+\(.*?\)` \| `(\w+)` \|", PAGE, re.MULTILINE)
    assert len(named) == 7
    assert all(hasattr(protocols, name) for name in named)
    exporters = importlib.import_module("experiments.systems.exporting.exporter")
    of_exporters = re.findall(r"^\| the (?:attribute|methods?) .*? \| `(\w+)` \|", PAGE, re.MULTILINE)
    assert len(of_exporters) == 6
    assert all(hasattr(exporters, name) for name in of_exporters)
