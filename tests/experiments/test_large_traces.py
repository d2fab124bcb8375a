"""What is shown of a trace takes time and space in proportion to it, however deep, wide or damaged it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from page_titles import NO_BROWSER, told_by

from experiments.views.trace_difference import difference_lines, difference_record
from experiments.views.trace_figures import figures_of
from experiments.views.trace_map import render_map
from experiments.views.trace_page import render_page
from experiments.views.trace_tree import operation_lines, tree_lines
from tests.step_counts import grows_with
from tests.tracing.graph_shapes import SHAPES
from tracing import ExecutionGraph, compare, operation, session, trace, variable


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


FIRST_PAINT_S, ACTION_S = 3.0, 0.5


def _asked(variables: int, questions: int) -> ExecutionGraph:
    """A long conversation whose memory was asked many questions."""
    words = " ".join(f"word{n}" for n in range(120))
    with trace() as recorder:
        entries = []
        for number in range((variables - 3 * questions) // 2):
            with session(f"D{number // 20}"):
                message = variable(f"Ann: {number} {words}", name=f"D{number}", kind="message")
                with operation("store", inputs={"message": message}) as stored:
                    entries.append(
                        stored.output("entry", f"{number}, Ann said", name=f"m{number}", kind="memory_entry")
                    )
        for number in range(questions):
            with session(f"q{number}"):
                query = variable(f"What did Ann say in {number}?", name=f"q{number}", kind="query")
                with operation("retrieve", inputs={"query": query, "entries": entries[:30]}) as found:
                    context = found.output("context", words, kind="context")
                with operation("answer", inputs={"query": query, "context": context}) as answered:
                    answered.output("prediction", f"reply {number}", kind="prediction")
    return recorder.graph


@pytest.mark.slow
@NO_BROWSER
def test_a_page_of_5000_variables_opens_and_searches_without_a_wait(tmp_path: Path) -> None:
    graph = _asked(5000, 300)
    assert len(graph.variables) == 5000
    script = """
    const took = (act) => {
      const begun = performance.now();
      act();
      document.body.offsetHeight;
      told.push((performance.now() - begun) / 1000);
    };
    const search_for = (text) => took(() => { search.value = text; find(); });
    told.push(performance.now() / 1000);
    for (const text of ["w", "word7", "ann said", "", "reply 299"]) search_for(text);
    for (const act of [waterfallView, questionsView, () => showQuestion(Q[299]), () => go(Q[7].prediction)]) took(act);
    took(() => mark(Q[7].prediction, true));
    search_for("reply 298");
    told.push(document.getElementById("found").textContent);
    """
    opened, *took, found = told_by(render_page(graph, "t"), script, tmp_path)
    assert found == "2 found"
    assert float(opened) < FIRST_PAINT_S
    assert max(map(float, took)) < ACTION_S
