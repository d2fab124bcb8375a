"""`memtune trace import` and `export`: traces from and for other tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from experiments.commands.examples import examples
from experiments.commands.options import SuggestingChoice
from experiments.display.terminal import one_line, say, shortened
from tracing.errors import TraceError
from tracing.files.loading import load_trace
from tracing.files.trace_file import save_trace
from tracing.files.whole_files import whole_file
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange import FORMATS, format_named, read_graph
from tracing.interchange.agent_memory.mapping import draft, read_mapping, unused

_LARGE = 4_000_000
"""Bytes from which reading a file takes long enough to say so."""
_MOST_WARNINGS, _LONGEST_WARNING = 10, 200

_force = click.option("--force", is_flag=True, help="Replace the output file if it exists.")


@click.command("import", epilog=examples("trace import"))
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "source",
    required=True,
    type=SuggestingChoice(tuple(FORMATS)),
    help="Format of FILE; see docs/interchange.md.",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Trace file to write.")
@click.option(
    "--map",
    "mapping",
    type=click.Path(path_type=Path),
    help="File that says what the operations of an agent do with its memory; `memtune trace map` writes a draft.",
)
@_force
def import_(file: Path, source: str, out: Path, mapping: Path | None, force: bool) -> None:
    """Turn the traces of another tool in FILE into a trace.

    With --map it is the trace of the agent's memory: messages, entries with their versions, contexts and replies.
    """
    from tracing.interchange.agent_memory import interpreted

    _require_free(out, force)
    mapped = read_mapping(mapping) if mapping is not None else {}
    with _status(f"reading {file}", file):
        imported = format_named(source).read(file)
    graph = imported.graph
    warnings = list(imported.warnings)
    if mapping is not None:
        names = unused(mapped, graph)
        warnings += [f"{mapping}: operations.{name}: no operation of {file} is called so" for name in names]
        graph = interpreted(graph, mapped)
        if graph is imported.graph:
            warnings.append(f"{mapping}: no operation of {file} stores or retrieves by it; imported as it was recorded")
    _warn(warnings)
    with _replacing(out) as partial:
        save_trace(graph, partial)
    say(f"{_summary(graph)} imported to {out}")


@click.command("map", epilog=examples("trace map"))
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="File to write; by default it is printed.")
@_force
def map_(trace: Path, out: Path | None, force: bool) -> None:
    """Write a draft of what the operations of an agent's TRACE do with its memory, to correct and import with."""
    if out is not None:
        _require_free(out, force)
    with _status(f"reading {trace}", trace):
        text = draft(read_graph(trace)[0])
    if out is None:
        say(text.rstrip())
        return
    with _replacing(out) as partial:
        partial.write_text(text, encoding="utf-8")
    say(f"{out} written; correct it, then: memtune trace import {trace} --from otlp --map {out} --out agent.jsonl")


@click.command(epilog=examples("trace export"))
@click.argument("trace", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "target",
    required=True,
    type=SuggestingChoice(tuple(FORMATS)),
    help="Format to write; see docs/interchange.md.",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="File to write.")
@_force
def export(trace: Path, target: str, out: Path, force: bool) -> None:
    """Write the recorded TRACE for another tool."""
    _require_free(out, force)
    with _status(f"reading {trace}", trace):
        loaded = load_trace(trace)
    _warn([*filter(None, (loaded.problem,)), *loaded.notes])
    with _status(f"writing {out}", trace), _replacing(out) as partial:
        format_named(target).write(loaded.graph, partial)
    say(f"{_summary(loaded.graph)} exported to {out}")


def _require_free(out: Path, force: bool) -> None:
    if out.is_dir():
        raise TraceError(f"{out}: is a folder; give the path of a file")
    if out.exists() and not force:
        raise TraceError(f"{out}: exists already; add --force to replace it, or give another path")


@contextmanager
def _replacing(out: Path) -> Iterator[Path]:
    """Replace the file with a complete new one, or leave it unchanged."""
    try:
        with whole_file(out) as partial:
            yield partial
    except OSError as error:
        raise TraceError(f"{out}: cannot be written: {error.strerror}; give another path") from error


def _warn(warnings: Sequence[str]) -> None:
    """Print the first warnings to stderr, one per line, and the number of the rest."""
    for warning in warnings[:_MOST_WARNINGS]:
        say(f"warning: {shortened(one_line(warning), _LONGEST_WARNING)}", err=True)
    if len(warnings) > _MOST_WARNINGS:
        say(f"warning: {len(warnings) - _MOST_WARNINGS} more kinds of problems are not shown", err=True)


@contextmanager
def _status(doing: str, file: Path) -> Iterator[None]:
    """Show a slow step, if a person is watching."""
    from experiments.display.literal_console import LiteralConsole

    console = LiteralConsole(stderr=True)
    size = file.stat().st_size if file.is_file() else 0
    if size < _LARGE or not console.is_terminal:
        yield
        return
    with console.status(f"{doing} ({size / 1e6:.0f} MB)"):
        yield


def _summary(graph: ExecutionGraph) -> str:
    return f"{len(graph.variables)} variables, {len(graph.operations)} operations and {len(graph.sessions)} sessions"
