"""`memtune trace stats`, `show`, `search`, `slice` and `diff`: ways to look at a trace."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.commands.examples import examples
from experiments.commands.options import moment
from experiments.commands.output import write_output
from experiments.display.terminal import say

if TYPE_CHECKING:
    from rich.text import Text

    from experiments.display.literal_console import LiteralConsole
    from tracing.graph.execution_graph import ExecutionGraph

TRACE = click.Path(path_type=Path)
_trace_argument = click.argument("file", metavar="TRACE", type=TRACE)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
DIFFERENT = 1


_since = click.option(
    "--from",
    "since",
    callback=moment,
    metavar="WHEN",
    help="Only what ran at or after this time (ISO date, epoch, or so long ago: 12h, 1d).",
)
_until = click.option("--to", "until", callback=moment, metavar="WHEN", help="Only what ran at or before this time.")


@click.command(epilog=examples("trace stats"))
@_trace_argument
@_as_json
def stats(file: Path, as_json: bool) -> None:
    """Count what a trace holds: operations by name with times, tokens, cost and errors; variables by kind.

    An entry of one user that another one was answered with is told as a leak.
    """
    from dataclasses import asdict

    from experiments.views.trace_figures import figures_of, total

    figures = figures_of(_loaded(file))
    if as_json:
        say(json.dumps(asdict(figures), ensure_ascii=False))
        return
    from experiments.display.tables import plain_table
    from experiments.runs.intervals import duration_text, money_text
    from experiments.views.trace_tree import shorten

    console = _console()
    calls, cached, sent, received, cost = total(figures.by_operation)
    console.print(
        f"{figures.sessions:,} sessions, {figures.operations:,} operations, {figures.variables:,} variables; "
        f"{calls:,} model calls ({cached:,} from a cache), {sent:,}+{received:,} tokens, money {money_text(cost)}",
    )
    table = plain_table(gap=2)
    table.add_column("operation", overflow="fold")
    for name in ("count", "errors", "open", "calls", "tokens", "money", "in all", "median", "longest"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in figures.by_operation:
        table.add_row(
            *(shorten(row.name, 60), f"{row.count:,}", f"{row.errors:,}", f"{row.unfinished:,}", f"{row.calls:,}"),
            *(f"{row.prompt_tokens + row.completion_tokens:,}", money_text(row.cost)),
            *map(duration_text, (row.seconds, row.median_seconds, row.longest_seconds)),
        )
    console.print(table)
    kinds = ", ".join(f"{shorten(kind, 30)} {count:,}" for kind, count in figures.variable_kinds.items())
    console.print(f"variables: {kinds or 'none'}")
    errors = [f"{shorten(name, 40)} {oid}: {shorten(error)}" for oid, name, error in figures.errors]
    for troubles, noun in ((errors, "errors"), (figures.leaks, "leaks between users")):
        for trouble in troubles[:10]:
            console.print(f"✗ {shorten(trouble, None)}", style="red")
        if len(troubles) > 10:
            console.print(f"… and {len(troubles) - 10} more {noun}")


@click.command(epilog=examples("trace show"))
@_trace_argument
@click.option(
    "--operation",
    "oid",
    metavar="ID",
    help="Show one operation in full (o17 for PREFIX-o17), with what is nested in it and around it.",
)
@click.option("--session", metavar="NAME", help="Only this session, by name or id.")
@click.option("--depth", type=click.IntRange(0), help="Levels of operations to expand; 0 counts them by name.")
@click.option("--html", type=TRACE, metavar="FILE", help="Write an interactive page: one file, works offline.")
@click.option(
    "--svg", type=TRACE, metavar="FILE", help="Write a picture: operations by name, and the flow between them."
)
def show(
    file: Path, oid: str | None, session: str | None, depth: int | None, html: Path | None, svg: Path | None
) -> None:
    """Show a trace as a tree: sessions, their operations, and what each read (←) and made (→).

    A trace of more than 200 operations is shown collapsed; --session, --operation or --depth expand it.
    """
    from experiments.attributing.case_sources import judged_in
    from experiments.views.trace_page import pictures_in, questions_of, render_page
    from experiments.views.trace_tree import MANY, operation_lines, tree_lines

    graph = _loaded(file)
    if session is not None and not any(
        session in (sid, known_session.name) for sid, known_session in graph.sessions.items()
    ):
        raise click.BadParameter(f"{file}: has no session {session!r}; `memtune trace show {file}` lists them")
    if oid is not None:
        oid = _full_id(oid, graph.operations)
        if oid not in graph.operations:
            raise click.BadParameter(_no_such(file, "operation", oid))
        graph = graph.surroundings(oid)
    judged = judged_in(graph, file) if html is not None or (oid is None and svg is None) else []
    pictures = pictures_in(graph, judged)
    if html is not None:
        write_output(html, render_page(graph, file.name, judged, pictures), "--html")
        say(f"written to {html}")
    if svg is not None:
        from experiments.views.trace_map import render_map

        write_output(svg, render_map(graph, file.name), "--svg")
        say(f"written to {svg}")
    if html is not None or svg is not None:
        return
    console = _console()
    if oid is not None:
        _print(console, operation_lines(graph, graph.operations[oid], 0, whole=True))
        console.print("\nwith what is nested in it, what its inputs come from and where its outputs go:", style="dim")
    closed = depth is None and session is None and oid is None and len(graph.operations) > MANY
    questions = questions_of(graph, judged) if oid is None else ()
    lines = tree_lines(graph, session=session, depth=0 if closed else depth, questions=questions, pictures=pictures)
    _print(console, lines)
    if closed:
        say("collapsed; expand it with --session NAME, --operation ID or --depth N, or write --html FILE", err=True)


@click.command(epilog=examples("trace search"))
@_trace_argument
@click.argument("pattern")
@click.option("--regex", is_flag=True, help="PATTERN is a regular expression, matched line by line.")
@click.option("--kind", metavar="KIND", help="Only variables and operations of this kind, such as fact or llm.")
@click.option("--session", metavar="NAME", help="Only this session, by name or id.")
@_since
@_until
@_as_json
def search(file: Path, pattern: str, as_json: bool, **only: Any) -> int:
    """Find variables and operations whose name, value, error or attributes contain PATTERN.

    Exits with 1 if nothing is found, as grep does. An empty PATTERN matches everything that the options allow.
    """
    from experiments.views.trace_tree import shorten
    from tracing.graph.elements import Variable
    from tracing.graph.search import search as find

    count = 0
    graph = _loaded(file)
    for match in find(graph, pattern or None, **only):
        count += 1
        element = match.item
        element_type = "variable" if isinstance(element, Variable) else "operation"
        if as_json:
            record = {name: getattr(element, name) for name in ("id", "name", "kind", "session")}
            place = {"place": match.place, "excerpt": match.excerpt}
            say(json.dumps({"type": element_type, **record, **place}, ensure_ascii=False))
        else:
            where = f" ({match.place})" if match.place not in ("", "value") else ""
            about = f"{shorten(element.id, None)}  {shorten(element.kind, 40)}  {shorten(element.name, 40)}{where}"
            say(f"{about}: {shorten(match.excerpt, 200)}")
    return 0 if count else DIFFERENT


@click.command("slice", epilog=examples("trace slice"))
@_trace_argument
@click.argument("start", metavar="ID")
@click.option("--forward", is_flag=True, help="Show what was made from it instead.")
@click.option("--kind", metavar="KIND", help="Follow only operations of this kind.")
@click.option("--name", metavar="NAME", help="Follow only operations of this name.")
@click.option("--session", metavar="NAME", help="Follow only operations of this session, by name or id.")
@click.option("--depth", type=click.IntRange(1), help="Follow at most this many steps.")
@_since
@_until
@click.option("--out", type=TRACE, metavar="FILE", help="Write the slice as a trace, to a new file.")
@_as_json
def slice_(
    file: Path, start: str, forward: bool, depth: int | None, out: Path | None, as_json: bool, **only: Any
) -> None:
    """Show what a variable was made from, through operations and earlier versions.

    ID may also be an operation's; v42 is short for PREFIX-v42.
    """
    from experiments.views.trace_tree import tree_lines
    from tracing.errors import TraceError
    from tracing.files.trace_file import records_of, save_trace
    from tracing.graph.operation_filter import Filter

    graph = _loaded(file)
    start = _full_id(start, {**graph.variables, **graph.operations})
    operation = graph.operations.get(start)
    if operation is None and start not in graph.variables:
        raise click.BadParameter(_no_such(file, "variable or operation", start))
    starts = operation.output_ids() or operation.input_ids() if operation is not None else [start]
    cut = (graph.forward_slice if forward else graph.backward_slice)(*starts, only=Filter(**only), depth=depth)
    if out is not None:
        if out.exists():
            raise TraceError(f"{out}: exists already; delete it or give another path")
        save_trace(cut, out)
        say(f"{len(cut.operations):,} operations and {len(cut.variables):,} variables written to {out}")
    elif as_json:
        for record in records_of(cut):
            say(json.dumps(record, ensure_ascii=False))
    else:
        _print(_console(), tree_lines(cut))
        if not cut.operations:
            say(f"no operation that was asked for {'read' if forward else 'made'} {', '.join(starts)}", err=True)


@click.command(epilog=examples("trace diff"))
@click.argument("first", metavar="TRACE_A", type=TRACE)
@click.argument("second", metavar="TRACE_B", type=TRACE)
@_as_json
def diff(first: Path, second: Path, as_json: bool) -> int:
    """Tell where two executions part: the first operation that makes something else of the same inputs.

    Operations are aligned by name, session and order, values compared by role; ids, times and costs are ignored.
    Exits with 1 where they differ, as diff does.
    """
    from experiments.views.trace_difference import difference_lines, difference_record
    from tracing.graph.graph_comparison import compare

    first_graph, second_graph = _loaded(first), _loaded(second)
    comparison = compare(first_graph, second_graph)
    if as_json:
        say(json.dumps(difference_record(comparison), ensure_ascii=False))
    else:
        questions = _questions(first_graph, first), _questions(second_graph, second)
        _print(_console(), difference_lines(comparison, first_graph, second_graph, questions))
    return 0 if comparison.equal else DIFFERENT


def _no_such(file: Path, element_type: str, element_id: str) -> str:
    return f"{file}: has no {element_type} {element_id!r}; `memtune trace search {file} TEXT` finds ids"


def _full_id(element_id: str, elements: Mapping[str, object]) -> str:
    """The id with its trace's prefix, where it was given without and is of a single element."""
    if element_id in elements:
        return element_id
    matches = [candidate for candidate in elements if candidate.endswith(f"-{element_id}")]
    return matches[0] if len(matches) == 1 else element_id


def _loaded(file: Path) -> ExecutionGraph:
    """The graph of a trace file; what could not be read is reported on stderr."""
    from tracing.files.loading import load_trace

    loaded = load_trace(file)
    for warning in (loaded.problem, *loaded.notes):
        if warning:
            say(f"warning: {warning}", err=True)
    return loaded.graph


def _questions(graph: ExecutionGraph, file: Path) -> list[dict[str, Any]]:
    """The questions of a trace, with their judgements where something judged it."""
    from experiments.attributing.case_sources import judged_in
    from experiments.views.trace_page import questions_of

    return questions_of(graph, judged_in(graph, file))


def _console() -> LiteralConsole:
    from experiments.display.literal_console import LiteralConsole

    return LiteralConsole()


def _print(console: LiteralConsole, lines: Iterable[Text]) -> None:
    for line in lines:
        if console.is_terminal:
            console.print(line, no_wrap=True, overflow="ellipsis")
        else:
            say(line.plain)  # whole, and some twenty times faster
