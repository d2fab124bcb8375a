"""What is done with a graph takes time and memory in proportion to it, however deep, wide or damaged it is."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.step_counts import grows_with
from tests.tracing.graph_shapes import SHAPES, wide
from tracing import (
    ExecutionGraph,
    Operation,
    Redaction,
    TraceError,
    Variable,
    compare,
    graph_of,
    load_trace,
    operation,
    records_of,
    save_trace,
    search,
    trace,
)
from tracing.files.depth import DEEPEST, DEEPEST_LINE
from tracing.files.trace_lines import HEADER
from tracing.interchange import FORMATS, format_named, smartcomment
from tracing.interchange.documents import Troubles, json_pieces
from tracing.interchange.smartcomment import document_writer, edges
from tracing.interchange.smartcomment.file_format import SOURCE, TARGET

ACTIONS: dict[str, Callable[[ExecutionGraph], object]] = {
    "what the last came from": lambda graph: graph.backward_slice(*list(graph.variables)[-1:]),
    "what came of the first": lambda graph: graph.forward_slice(*list(graph.variables)[:1]),
    "from the first to the last": lambda graph: (
        graph.variables and graph.shortest_path(next(iter(graph.variables)), list(graph.variables)[-1])
    ),
    "around the first": lambda graph: graph.surroundings(next(iter(graph.operations))),
    "versions": lambda graph: graph.variables and graph.versions(list(graph.variables)[-1]),
    "the latest": lambda graph: graph.variables and graph.latest(next(iter(graph.variables))),
    "comparison": lambda graph: compare(graph, graph),
    "comparison with another": lambda graph: compare(graph, _changed(graph)),
    "search": lambda graph: list(search(graph, "not there")),
    "search by time": lambda graph: list(search(graph, since=0.5)),
    "records": lambda graph: graph_of(records_of(graph)),
    "union": lambda graph: graph.merge(_cut(graph)).intersection(graph).difference(ExecutionGraph()),
    "networkx": lambda graph: graph.nx,
}


def _changed(graph: ExecutionGraph) -> ExecutionGraph:
    """The same execution with other values."""
    values = [replace(one, value=f"{one.value}, changed") for one in graph.variables.values()]
    return ExecutionGraph(values, map(replace, graph.operations.values()), graph.sessions.values())


def _cut(graph: ExecutionGraph) -> ExecutionGraph:
    """The same execution, of which each operation is known by half."""
    halves = [
        replace(one, inputs=one.inputs[: len(one.inputs) // 2], outputs=one.outputs[len(one.outputs) // 2 :])
        for one in graph.operations.values()
    ]
    return ExecutionGraph(graph.variables.values(), halves, graph.sessions.values())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("action", ACTIONS)
def test_work_grows_with_the_graph_and_no_faster(shape: str, action: str) -> None:
    ACTIONS[action](SHAPES[shape](3))  # what is imported once is not counted

    def make(size: int) -> Callable[[], object]:
        graph = SHAPES[shape](size)
        return lambda: ACTIONS[action](graph)

    assert grows_with(make) < 1.7


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        (shape, name)
        for shape in SHAPES
        for name in ("", *FORMATS)
        # An edge for each pair, and a copy of a value for each variable, are what these formats are: they have limits.
        if (shape, name) != ("wide", "smartcomment") and not (shape == "shared" and name)
    ],
)
def test_files_are_written_and_read_in_proportion_to_the_graph(shape: str, name: str, tmp_path: Path) -> None:
    number = itertools.count()

    def make(size: int) -> Callable[[], object]:
        graph = SHAPES[shape](size)

        def exchange() -> None:
            path = tmp_path / str(next(number))
            if name:
                format_named(name).write(graph, path)
                format_named(name).read(path)
            else:
                save_trace(graph, path)
                load_trace(path)

        exchange()  # what is imported and compiled once is not counted
        return exchange

    assert grows_with(make) < 1.7
    first, second = (path.stat().st_size for path in sorted(tmp_path.iterdir(), key=lambda path: int(path.name))[::2])
    assert second / first < 6 * 1.7


def test_a_file_with_an_edge_for_each_pair_is_refused_beyond_its_limit_at_once_and_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "wide.json"
    with pytest.raises(
        TraceError, match=r"here 400,000,000, most of them in o \(wide\) .* to otlp or mlflow, or a part"
    ):
        smartcomment.write(wide(20_000), path)
    assert not list(tmp_path.iterdir())

    monkeypatch.setattr(edges, "MOST_EDGES", 900)
    smartcomment.write(wide(30), path)
    assert len(json.loads(path.read_text())["data"]["edges"]) == 900
    with pytest.raises(TraceError, match="961"):
        smartcomment.write(wide(31), tmp_path / "wider.json")
    # What was read from such a file and has its edges already counts them once.
    monkeypatch.setattr(edges, "MOST_EDGES", 1)
    given = {"nodes": [{"name": "a"}, {"name": "b"}], "edges": [_edge("a@1", "b@1")], "operations": [{"op_id": "o"}]}
    foreign = smartcomment.graph_of_document({"data": given}, "test", Troubles())
    assert len(smartcomment.document_of(foreign)["data"]["edges"]) == 1


def _edge(source: str, target: str) -> dict[str, str]:
    return {"op_id": "o", SOURCE: source, TARGET: target}


@pytest.mark.slow
def test_edges_are_written_without_being_held() -> None:
    """What the writer holds of 40,000 edges at any moment is a small part of what they take."""
    pieces = json_pieces(document_writer.outline_of(wide(200)))
    tracemalloc.start()
    written = sum(map(len, pieces))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert written > 10_000_000
    assert most < written / 4


@pytest.mark.parametrize("name", FORMATS)
def test_a_value_that_a_trace_holds_once_is_no_bomb_in_another_format(name: str, tmp_path: Path) -> None:
    """Ten thousand variables with one long value are a small trace; other formats would hold the value each time."""
    text = "x" * 1_000_000
    graph = ExecutionGraph(Variable(f"v{n}", "x", "value", text) for n in range(10_000))
    with pytest.raises(TraceError, match=r"10,000,000,000 characters, .* `memtune trace slice"):
        format_named(name).write(graph, tmp_path / "out.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
@pytest.mark.parametrize("deep", [DEEPEST_LINE + 1, 900, 100_000])
def test_a_line_nested_too_deep_to_be_walked_through_is_left_out_as_damaged(
    opening: str, deep: int, tmp_path: Path
) -> None:
    closing = opening.replace("[", "]").replace('{"a":', "}")[::-1]
    record = {"type": "variable", "id": "v", "name": "x", "kind": "value", "value": "@"}
    line = json.dumps(record).replace('"@"', f"{opening * deep}1{closing * deep}")
    path = tmp_path / "t.jsonl"
    path.write_text(f"{json.dumps(HEADER)}\n{line}\n")
    loaded = load_trace(path)
    assert not loaded.graph.variables
    assert f"{path}:2: the line is nested more than {DEEPEST_LINE} levels deep" in str(loaded.problem)


def test_the_deepest_value_that_is_read_can_be_looked_at_in_every_way(tmp_path: Path) -> None:
    value = json.loads("[" * (DEEPEST_LINE - 1) + "]" * (DEEPEST_LINE - 1))
    variables = [Variable("v0", "x", "value", value), Variable("v1", "x", "value", "y")]
    made = Operation("o", "step", inputs=(("in", "v0"),), outputs=(("out", "v1"),), status="ok")
    save_trace(ExecutionGraph(variables, [made]), tmp_path / "t.jsonl")
    loaded = load_trace(tmp_path / "t.jsonl")
    assert loaded.problem is None
    for action in ACTIONS.values():
        action(loaded.graph)
    with trace(redaction=Redaction(keys=("x",))) as recorder:
        recorder.adopt(records_of(loaded.graph))


def nested(levels: int) -> str:
    """JSON of so many levels, with what no other JSON has inside."""
    return "[" * levels + '"inside"' + "]" * levels


FOREIGN = {
    "otlp": lambda text: {"resourceSpans": [{"scopeSpans": [{"spans": [_span({"input.value": text})]}]}]},
    "mlflow": lambda text: {"info": {}, "data": {"spans": [{"name": "x", "attributes": {"mlflow.spanInputs": text}}]}},
    "smartcomment": lambda text: {"data": {"nodes": [{"name": "x", "value": text}]}, "more": json.loads(text)},
}


def _span(facts: dict[str, str]) -> dict[str, object]:
    rows = [{"key": key, "value": {"stringValue": value}} for key, value in facts.items()]
    return {"spanId": "1", "name": "x", "attributes": rows}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_was_imported_from_the_deepest_document_can_be_loaded(name: str, tmp_path: Path) -> None:
    """JSON within a text is read as deep as a document may be, and deeper JSON stays text."""
    for levels in (DEEPEST - 1, DEEPEST + 1, 900, 50_000):
        text = nested(levels) if name != "smartcomment" else nested(min(levels, DEEPEST - 1))
        path = tmp_path / f"{levels}.json"
        path.write_text(json.dumps(FOREIGN[name](text)))
        imported = format_named(name).read(path).graph
        save_trace(imported, tmp_path / f"{levels}.jsonl")
        loaded = load_trace(tmp_path / f"{levels}.jsonl")
        assert loaded.problem is None
        assert records_of(loaded.graph) == records_of(imported)
        assert any("inside" in json.dumps(one.value) for one in loaded.graph.variables.values())


def test_a_value_too_deep_to_be_encoded_is_cut_when_a_graph_made_by_hand_is_written(tmp_path: Path) -> None:
    value: list[object] = []
    for _ in range(5000):
        value = [value]
    save_trace(ExecutionGraph([Variable("v", "x", "value", value)]), tmp_path / "t.jsonl")
    assert load_trace(tmp_path / "t.jsonl").graph.variables["v"].value[0][0]


def test_a_result_passed_out_through_many_operations_is_settled_in_linear_time() -> None:
    def make(size: int) -> Callable[[], object]:
        with trace(prefix="") as recorder:
            around = [operation("step").__enter__() for _ in range(size)]
            made = ["text"]
            for op in reversed(around):
                op.finish(made)
                op.__exit__(None, None, None)
            # Only noted so far, and settled when it is looked at.
        return lambda: recorder.graph

    assert grows_with(make) < 1.7
    assert len(make(50)().producers("v1")) == 50  # type: ignore[attr-defined]


def test_very_many_steps_folded_into_one_operation_are_settled_in_linear_time() -> None:
    def make(size: int) -> Callable[[], object]:
        with trace() as recorder, operation("whole", fold=True):
            for number in range(size):
                with operation("step", inputs={"in": f"given {number}"}) as step:
                    step.output("out", f"made {number}")
        return lambda: recorder.graph

    assert grows_with(make) < 1.7
