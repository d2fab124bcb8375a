"""What is shown of a trace takes time and space in proportion to it, however deep, wide or damaged it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from experiments.views.trace_difference import difference_lines, difference_record
from experiments.views.trace_figures import figures_of
from experiments.views.trace_map import render_map
from experiments.views.trace_page import render_page
from experiments.views.trace_tree import operation_lines, tree_lines
from tests.step_counts import grows_with
from tests.tracing.graph_shapes import SHAPES
from tracing import ExecutionGraph, compare


def _difference(graph: ExecutionGraph) -> str:
    values = [replace(one, value=f"{one.value}, changed") for one in graph.variables.values()]
    made = [replace(one, inputs=()) for one in graph.operations.values()]
    other = ExecutionGraph(values, made, graph.sessions.values())
    left = ExecutionGraph(graph.variables.values(), made, graph.sessions.values())
    found = compare(left, other)
    return "\n".join(map(str, difference_lines(found, left, other))) + str(difference_record(found))


VIEWS: dict[str, Callable[[ExecutionGraph], str]] = {
    "tree": lambda graph: "\n".join(map(str, tree_lines(graph))),
    "closed tree": lambda graph: "\n".join(map(str, tree_lines(graph, depth=0))),
    "tree of a session": lambda graph: "\n".join(map(str, tree_lines(graph, session="one name"))),
    "operation": lambda graph: "\n".join(
        map(str, operation_lines(graph, next(iter(graph.operations.values())), 0, whole=True))
    ),
    "page": lambda graph: render_page(graph, "t"),
    "picture": lambda graph: render_map(graph, "t"),
    "figures": lambda graph: str(figures_of(graph)),
    "difference": _difference,
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("view", VIEWS)
def test_work_and_text_grow_with_the_trace_and_no_faster(shape: str, view: str) -> None:
    lengths: list[int] = []
    VIEWS[view](SHAPES[shape](3))  # what is imported once is not counted

    def make(size: int) -> Callable[[], object]:
        graph = SHAPES[shape](size)
        return lambda: lengths.append(len(VIEWS[view](graph)))

    assert grows_with(make) < 1.7
    large, small = lengths
    assert large < 6 * 1.7 * max(1, small)
