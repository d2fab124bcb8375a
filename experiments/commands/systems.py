"""`memtune system`: the environments of memory systems whose libraries cannot be installed beside memtune's."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING

import click

from experiments.commands.examples import examples
from experiments.commands.whole_summaries import WholeSummaries
from experiments.display.terminal import say
from tracing.errors import ConfigError

if TYPE_CHECKING:
    from experiments.systems.worker.environment import Environment


@click.group(cls=WholeSummaries)
def system() -> None:
    """Install and check memory systems that run in environments of their own."""


@system.command(epilog=examples("system install"))
@click.argument("name")
def install(name: str) -> None:
    """Make the environment of a memory system, or bring it up to date with this memtune."""
    from rich.progress import TimeElapsedColumn

    from experiments.display.literal_console import LiteralConsole
    from experiments.display.progress import progress_on
    from experiments.systems.worker.installing import install as make

    environment = _environment(name)
    began = monotonic()
    with progress_on(LiteralConsole(stderr=True), TimeElapsedColumn()) as progress:
        task = progress.add_task(name, total=None)
        installation = make(environment, lambda line: progress.update(task, description=f"{name}: {line}"))
    say(f"{name}: installed with Python {installation.python} in {monotonic() - began:.0f} s: {environment.folder}")


@system.command("list", epilog=examples("system list"))
def list_() -> None:
    """List the memory systems that memtune knows, and where each of them runs."""
    from rich.table import Table

    from experiments.display.literal_console import LiteralConsole
    from experiments.systems.worker.environment import environments_folder

    table, remedies, known_names = Table(), [], set()
    for column in ("name", "environment", "state"):
        table.add_column(column, overflow="fold")
    for name, environment in _known_systems():
        if environment is None:
            where, missing = "memtune's own", "lacks a library"
        else:
            known_names.add(environment.name)
            oldest, newest = environment.python
            where = f"Python {oldest} to {newest}, {', '.join(environment.requirements)}"
            missing = "not installed" if environment.installed() is None else "not usable"
        remedy = _remedy(name, environment)
        table.add_row(name, where, missing if remedy else "ready")
        if remedy and missing != "not installed":
            remedies.append(remedy)
    for folder in sorted(environments_folder().glob("[!.]*")):
        if folder.is_dir() and folder.name not in known_names:
            table.add_row(folder.name, "of a system of yours", "installed")
    LiteralConsole().print(table)
    for remedy in remedies:  # whole lines, which can be copied
        say(remedy)
    say("memtune system install NAME makes an environment, or brings it up to date.")


@system.command(epilog=examples("system check"))
@click.argument("name")
def check(name: str) -> None:
    """Start a worker in a memory system's environment, and let it look for what it needs."""
    from experiments.systems.worker.installing import check as look

    environment = _environment(name)
    environment.require()
    began = monotonic()
    python = look(environment)
    contents = ", ".join((f"Python {python}", *environment.requirements))
    say(f"{name}: works with {contents}; its worker started in {monotonic() - began:.1f} s")


@system.command(epilog=examples("system remove"))
@click.argument("name")
def remove(name: str) -> None:
    """Remove the environment of a memory system."""
    from experiments.systems.worker.environment import environments_folder
    from experiments.systems.worker.installing import remove as delete

    # One of a system that can no longer be imported is known by its folder.
    folders = {folder.name for folder in environments_folder().glob("[!.]*") if folder.is_dir()}
    environment_name = name if name in folders else _environment(name).name
    if not delete(environment_name):
        raise ConfigError(f"{name}: its environment is not installed; memtune system list shows those that are")
    say(f"{name}: removed")


def _environment(name: str) -> Environment:
    """The environment of the system of this name, which must not run in memtune's process."""
    from experiments.systems.exporting.exporter import EXPORTERS, version_of
    from experiments.systems.worker.isolated import environment_of
    from tracing.systems.registry import SYSTEMS

    # Libraries that prompts are only exported to are known by the name of the exporter.
    target = None if name in SYSTEMS.names() else version_of(name)
    environment = environment_of(SYSTEMS.open(name) if target is None else EXPORTERS.open(target))
    if environment is None:
        raise ConfigError(f"{name} runs in memtune's own process and needs no environment")
    return environment


def _remedy(name: str, environment: Environment | None) -> str:
    """Why what has this name and environment cannot run here, and the command that repairs it; empty if it can."""
    from tracing.systems.protocol import ChecksItself
    from tracing.systems.registry import open_system

    try:
        if environment is not None:
            environment.require()
        elif isinstance(system := open_system(name), ChecksItself):
            system.require_library()
    except ConfigError as error:
        return str(error)
    return ""


def _known_systems() -> Iterator[tuple[str, Environment | None]]:
    """The systems that can be imported, with their environments."""
    from experiments.systems.exporting.exporter import EXPORTERS
    from experiments.systems.worker.isolated import environment_of
    from tracing.systems.registry import SYSTEMS

    systems = SYSTEMS.names()
    for name in systems:
        try:
            yield name, environment_of(SYSTEMS.open(name))
        except ConfigError as error:
            say(str(error), err=True)
    for name in EXPORTERS.names():
        with contextlib.suppress(ConfigError):
            environment = environment_of(EXPORTERS.open(name))
            if environment is not None and name not in systems:
                yield name, environment
