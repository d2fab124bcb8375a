"""A trace as a tree of lines: sessions, their operations, and what each read and made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rich.text import Text

from experiments.display.literal_console import styled
from experiments.display.terminal import one_line
from experiments.runs.intervals import duration_text
from tracing.graph.elements import Link, Operation
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.neighbours import outer_operations
from tracing.graph.operation_filter import in_session
from tracing.graph.search import shown_text

MANY = 200
"""Number of operations above which sessions are shown collapsed by default."""

MOST_LINKS = 8
WIDEST = 100
DEEPEST = 40
"""Levels shown by indenting; deeper ones show their number, to keep a long tree short."""


class Nesting:
    """Which operations are nested in which, in the order they began.

    A file holds an inner operation before the outer one, since it ends first. An operation is at the top of its
    session if its parent is unknown, of another session or, in a damaged file, nested in itself.
    """

    def __init__(self, graph: ExecutionGraph) -> None:
        self.children: dict[str, list[Operation]] = {}
        self.tops: dict[str | None, list[Operation]] = {sid: [] for sid in graph.sessions}
        outer = outer_operations(graph.operations)
        # If start times are equal, what ended later began earlier.
        places = {oid: place for place, oid in enumerate(graph.operations)}
        for operation in sorted(
            graph.operations.values(), key=lambda operation: (operation.started, places[operation.id])
        ):
            parent = outer.get(operation.id)
            if parent is None or graph.operations[parent].session != operation.session:
                sid = operation.session if operation.session in graph.sessions else None
                self.tops.setdefault(sid, []).append(operation)
            else:
                self.children.setdefault(parent, []).append(operation)


def tree_lines(
    graph: ExecutionGraph,
    *,
    session: str | None = None,
    depth: int | None = None,
    questions: Sequence[Mapping[str, Any]] = (),
    pictures: Mapping[str, object] = MappingProxyType({}),
) -> Iterator[Text]:
    """The lines of a tree.

    Args:
        session: name or id of the one session to show; None shows all.
        depth: levels of operations to open; at 0 a session's operations are counted by name. None opens all.
        questions: judgements to tell with the sessions that were asked them (`questions_of`).
        pictures: of wrong replies, by their predictions; each is told in a line.
    """
    nesting = Nesting(graph)
    for sid, tops in nesting.tops.items():
        if session is not None and not in_session(sid, session, graph.sessions):
            continue
        if sid is None and not tops:
            continue
        title = graph.sessions[sid].name if sid is not None else "outside of any session"
        yield styled((shorten(title), "bold"), (f"  {shorten(sid, None)}" if sid is not None else "", "dim"))
        for question in questions:
            if question["session"] == sid and question["passed"] is not None:
                yield styled("  ", *judgement(question), (f"  right: {shorten(' | '.join(question['gold']))}", "dim"))
                if question["prediction"] in pictures:
                    yield styled("    ", (shorten(str(pictures[question["prediction"]]), None), "dim"))
        if depth == 0:
            counts = Counter(operation.name for operation, _ in _branches(tops, nesting, None))
            for name, count in counts.most_common():
                yield styled("  ", shorten(name), (f" ×{count}", "dim"))
            continue
        for operation, level in _branches(tops, nesting, depth):
            yield from operation_lines(graph, operation, level)


def judgement(question: Mapping[str, Any]) -> list[str | tuple[str, str]]:
    """Whether the reply to a question (of `questions_of`) is right, and whose fault a wrong one is, in colour."""
    if question["passed"] is None:
        return [("? not judged", "dim")]
    if question["passed"]:
        return [("✓ right", "green")]
    blames = ", ".join(f"{blame['error']} · {shorten(blame['operation'], 60)}" for blame in question["decisive"])
    return [("✗ wrong", "red"), ": ", (blames, "bold red") if blames else ("not attributed", "dim")]


def _branches(tops: list[Operation], nesting: Nesting, depth: int | None) -> Iterator[tuple[Operation, int]]:
    """The operations down to a depth, each with its level."""
    waiting = [(operation, 1) for operation in reversed(tops)]
    while waiting:
        operation, level = waiting.pop()
        yield operation, level
        if depth is None or level < depth:
            waiting += [(inner, level + 1) for inner in reversed(nesting.children.get(operation.id, ()))]


def operation_lines(graph: ExecutionGraph, operation: Operation, level: int, *, whole: bool = False) -> Iterator[Text]:
    """An operation with its inputs and outputs, indented by its level; `whole` shortens nothing."""
    indent = "  " * min(level, DEEPEST)
    deeper = f"[{level}] " if level > DEEPEST else ""
    facts = [operation.kind, operation.id]
    if operation.ended is not None:
        facts.append(duration_text(operation.ended - operation.started))
    if operation.model:
        facts.append(f"{operation.model} {operation.prompt_tokens}+{operation.completion_tokens} tokens")
    if operation.status == "open":
        facts.append("not ended")
    name, about = shorten(operation.name, None if whole else WIDEST), shorten(" · ".join(facts), None)
    yield styled(indent, (deeper, "dim"), (name, "bold cyan"), (f"  {about}", "dim"))
    if operation.error:
        yield styled(indent, ("  ✗ ", "bold red"), (shorten(operation.error, None if whole else WIDEST), "red"))
    for name in ("unusable", "thinking"):
        if operation.attributes.get(name):
            text = shorten(str(operation.attributes[name]), None if whole else WIDEST)
            yield styled(indent, ("  ✻ ", "yellow"), (f"{'reply' if name == 'unusable' else name}: ", "dim"), text)
    for arrow, links in (("←", operation.inputs), ("→", operation.outputs)):
        yield from _link_lines(graph, arrow, links, indent, whole)


def _link_lines(graph: ExecutionGraph, arrow: str, links: tuple[Link, ...], indent: str, whole: bool) -> Iterator[Text]:
    visible_links = links if whole else links[:MOST_LINKS]
    for role, vid in visible_links:
        variable = graph.variables[vid]
        version = f"@{variable.version}" if variable.version > 1 else ""
        # Ids of imported variables often are their names.
        own = variable.name == role or variable.name in vid.split("@")
        named = "" if own else f" {shorten(variable.name)}{version}"
        text = shown_text(variable.value) if whole else shown_text(variable.value, 4 * WIDEST + 1)
        value = shorten(text, None if whole else WIDEST)
        mark = (f"  {arrow} ", "green" if arrow == "→" else "yellow")
        yield styled(indent, mark, (shorten(role), "bold"), (f"{named} {shorten(vid, None)}: ", "dim"), value)
    if len(links) > len(visible_links):
        yield styled(indent, f"  {arrow} ", (f"… and {len(links) - len(visible_links)} more", "dim"))


def shorten(text: str, longest: int | None = WIDEST) -> str:
    """A text on one line of at most so many characters, without terminal control characters."""
    # Cut first: a value may have millions of characters.
    line = one_line(text if longest is None else text[: 4 * longest])
    if longest is not None and (len(line) > longest or len(text) > 4 * longest):
        return line[: longest - 1] + "…"
    return line
