"""The difference of two executions, for people and for scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from typing import Any

from rich.text import Text

from experiments.display.literal_console import styled
from experiments.views.trace_tree import judgement, shorten
from tracing.graph.elements import Operation
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.graph_comparison import Comparison, OperationDifference
from tracing.graph.search import shown_text

MOST_ROLES, MOST_LINES = 20, 20
LONGEST_VALUES, MOST_COMPARED = 20_000, 1_000
"""Characters and lines of a value that are compared: finding what changed takes the square of the lines."""
_WORDS = {
    "outputs": "makes something else of the same inputs",
    "inputs": "is the first to be given other inputs, which come from outside",
    "only in the first": "is only in the first",
    "only in the second": "is only in the second",
}
_STYLES = {"+": "green", "-": "red"}
Questions = Sequence[Mapping[str, Any]]


def difference_lines(
    comparison: Comparison,
    first: ExecutionGraph,
    second: ExecutionGraph,
    questions: tuple[Questions, Questions] = ((), ()),
) -> Iterator[Text]:
    """The cause and what changed in it, counts of the other differences, and the replies that differ.

    `questions` are those of both graphs, with their judgements (`questions_of`).
    """
    cause = comparison.cause
    if cause is None:
        yield styled(f"no difference in {comparison.aligned:,} operations")
        return
    session = (first if cause.first else second).sessions.get(cause.operation.session or "")
    where = f" in {shorten(session.name, 60)}" if session else ""
    ids = ", ".join(operation.id for operation in (cause.first, cause.second) if operation is not None)
    yield styled((f"{shorten(cause.operation.name, 60)}{where} {_WORDS[cause.parting]}", "bold"), (f" ({ids})", "dim"))
    roles = (*cause.inputs, *cause.outputs)
    sides = _values(cause.first, first, roles[:MOST_ROLES]), _values(cause.second, second, roles[:MOST_ROLES])
    for role in roles[:MOST_ROLES]:
        yield styled(f"  {shorten(role, 60)}:")
        yield from _changed(sides[0][role], sides[1][role])
    if len(roles) > MOST_ROLES:
        yield styled((f"  … and {len(roles) - MOST_ROLES} more roles", "dim"))
    for sign, operation in (("-", cause.first), ("+", cause.second)):
        if operation is not None and operation.error:
            yield styled((f"  {sign} error: {shorten(operation.error)}", _STYLES[sign]))
    for title, rest in (("follows from it", comparison.follows), ("differs besides", comparison.others)):
        names = Counter(difference.operation.name for difference in rest)
        if names:
            yield styled(
                f"{title}: ", ", ".join(f"{shorten(name, 40)} ×{count}" for name, count in names.most_common())
            )
    yield from _reply_lines(*questions)


def _reply_lines(first: Questions, second: Questions) -> Iterator[Text]:
    """Each question with two replies that differ, and how these were judged."""
    earlier = {question["id"]: question for question in first}
    pairs = [(earlier[question["id"]], question) for question in second if question["id"] in earlier]
    changed = [pair for pair in pairs if pair[0]["reply"] != pair[1]["reply"]]
    for before, after in changed[:MOST_ROLES]:
        yield styled((shorten(before["asked"], 200), "bold"))
        for sign, question in (("-", before), ("+", after)):
            yield styled("  ", *judgement(question), (f" {sign} {shorten(question['reply'], 300)}", _STYLES[sign]))
    if len(changed) > MOST_ROLES:
        yield styled((f"… and {len(changed) - MOST_ROLES} more replies", "dim"))


def difference_record(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON."""
    return {
        "equal": comparison.equal,
        "aligned": comparison.aligned,
        "cause": _record(comparison.cause) if comparison.cause else None,
        "follows": [_record(difference) for difference in comparison.follows],
        "others": [_record(difference) for difference in comparison.others],
    }


def _values(operation: Operation | None, graph: ExecutionGraph, roles: Sequence[str]) -> dict[str, str]:
    """The value of each role as text; only the beginning if it is very long."""
    values: dict[str, str] = dict.fromkeys(roles, "")
    for role, vid in () if operation is None else (*operation.inputs, *operation.outputs):
        before = values.get(role)
        if before is not None and len(before) < LONGEST_VALUES:
            text = shown_text(graph.variables[vid].value, LONGEST_VALUES)[:LONGEST_VALUES]
            values[role] = f"{before}\n{text}" if before else text
    return values


def _changed(before: str, after: str) -> Iterator[Text]:
    compared = list(unified_diff(_lines(before), _lines(after), n=0, lineterm=""))[2:]  # after the names of the files
    changed = [line for line in compared if line[0] in _STYLES]
    for line in changed[:MOST_LINES]:
        yield styled((f"  {line[0]} {shorten(line[1:], 300)}", _STYLES[line[0]]))
    if len(changed) > MOST_LINES:
        yield styled((f"  … and {len(changed) - MOST_LINES} more lines", "dim"))


def _lines(text: str) -> list[str]:
    return text[:LONGEST_VALUES].splitlines()[:MOST_COMPARED]


def _record(difference: OperationDifference) -> dict[str, Any]:
    return {
        "name": difference.operation.name,
        "parting": difference.parting,
        "first": difference.first.id if difference.first else None,
        "second": difference.second.id if difference.second else None,
        "inputs": list(difference.inputs),
        "outputs": list(difference.outputs),
    }
