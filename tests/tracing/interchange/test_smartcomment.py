"""smartcomment's files come in whole, as a graph that attribution can read, and go out as they were."""

from __future__ import annotations

import ast
import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from graph_exchange import recorded
from hypothesis import given
from hypothesis import strategies as st
from toy_graphs import HERE, chain, document, edge, node

from tracing import ExecutionGraph, TraceError, load_trace, operation, records_of, save_trace, trace, variable
from tracing.graph.elements import Operation, Variable
from tracing.interchange import smartcomment
from tracing.interchange.documents import Troubles
from tracing.interchange.literals import all_decoded, decoded
from tracing.interchange.smartcomment.file_format import SOURCE, TARGET

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
FILES = ("smartcomment/minimal.json", "smartcomment/minimal.exported.json", "smartcomment/toy-mem0.json")
REAL = (*FILES, "memeval/conv-26.json")


def real(name: str) -> Path:
    if not (DATA / name).is_file():
        pytest.skip(f"{DATA / name} is not there")
    return DATA / name


def graph_of(given: Any) -> ExecutionGraph:
    """The graph of a document in which nothing is to be repaired."""
    troubles = Troubles()
    graph = smartcomment.graph_of_document(given, "test", troubles)
    assert troubles.lines() == ()
    return graph


def repaired(given: Any) -> tuple[ExecutionGraph, str]:
    troubles = Troubles()
    graph = smartcomment.graph_of_document(given, "test", troubles)
    return graph, "\n".join(troubles.lines())


@pytest.mark.parametrize("name", REAL)
def test_a_real_file_comes_out_as_it_went_in_with_the_order_of_its_keys(name: str, tmp_path: Path):
    imported = smartcomment.read(real(name))
    assert imported.warnings == ()
    save_trace(imported.graph, tmp_path / "trace.jsonl")
    loaded = load_trace(tmp_path / "trace.jsonl")
    assert loaded.problem is None
    original = json.loads(real(name).read_bytes())
    for number, graph in enumerate((imported.graph, loaded.graph)):
        smartcomment.write(graph, tmp_path / f"{number}.json")
        written = json.loads((tmp_path / f"{number}.json").read_bytes())
        assert json.dumps(written) == json.dumps(original)


def test_a_real_run_reads_as_a_memory(tmp_path: Path):
    graph = smartcomment.load(real("memeval/conv-26.json"))
    original = json.loads(real("memeval/conv-26.json").read_bytes())["data"]
    assert (len(graph.variables), len(graph.operations), len(graph.sessions)) == (1865, 663, 171)
    assert len(graph.find_variables(kind="query")) == len(graph.find_variables(kind="context")) == 152
    assert smartcomment.annotations_of(graph) == original["annotations"]
    for note in smartcomment.annotations_of(graph):
        (answered,) = graph.producers(note["prediction_id"])
        assert answered.name == "question-answering"
        assert note["query_id"] in answered.input_ids("query")
        assert all(oid in graph.operations for oid in note["acceptable_op_ids"])
        behind = graph.backward_slice(note["prediction_id"])
        assert {one.name for one in behind.operations.values()} >= {"memory_system.retrieve", "question-answering"}
    for raw in original["edges"]:
        one = graph.operations[raw["op_id"]]
        assert raw["target_full_node_id"] in one.output_ids()
        assert raw["source_full_node_id"] in one.input_ids() + one.output_ids()


def test_a_graph_smartcomment_wrote_has_versions_and_decoded_values():
    graph = smartcomment.load(real("smartcomment/toy-mem0.json"))
    last = graph.find_variables(kind="memory_entry")[-1]
    assert [one.version for one in graph.versions(last.id)] == list(range(1, 20))
    assert isinstance(last.value, dict)
    assert last.attributes["smartcomment"]["value"] == repr(last.value)
    assert {one.kind for one in graph.variables.values()} == {
        *("message", "fact", "memory_entry", "prompt", "query", "context", "prediction")
    }
    assert all(one.started > 1.7e9 and one.status == "ok" for one in graph.operations.values())


def test_what_is_made_and_read_inside_an_operation_is_its_output_and_a_self_loop_both():
    inner = [edge("o", "a@1", "b@1"), edge("o", "b@1", "c@1")]
    step = graph_of(document([node("a"), node("b"), node("c")], inner)).operations["o"]
    assert (step.input_ids(), step.output_ids()) == (["a@1"], ["b@1", "c@1"])
    loop = graph_of(document([node("a")], [edge("o", "a@1", "a@1")])).operations["o"]
    assert (loop.input_ids(), loop.output_ids()) == (["a@1"], ["a@1"])


def test_cycles_interleaved_edges_and_late_versions_come_out_in_their_order():
    nodes = [node("a", version=2), node("b"), node("a", version=4), node("a"), node("a", class_name="other")]
    edges = [edge("p", "a@1", "b@1"), edge("o", "b@1", "a@1"), edge("p", "b@1", "b@1"), edge("o", "other:a@1", "b@1")]
    given = document(nodes, edges)
    graph = graph_of(given)
    assert smartcomment.document_of(graph) == given
    assert [one.id for one in graph.versions("a@1")] == ["a@1", "a@2", "a@4"]
    assert set(graph.backward_slice("b@1").variables) == {"a@1", "b@1", "other:a@1"}
    part = smartcomment.document_of(graph.backward_slice("a@2", "other:a@1"))
    assert [one.get("version", 1) for one in part["data"]["nodes"]] == [2, 1, 1]


def test_sentinels_stand_for_nothing_and_links_for_operations_of_their_own():
    edges = [edge("__none_op__", "a@1", "b@1"), edge("__none_op__", "c@1", "d@1"), edge("o", "COMMENT:NONE@1", "a@1")]
    nodes = [node(name, session_id="__none__") for name in "abcd"]
    given = document(nodes, edges, [{"op_id": "o", "op_name": "make", **HERE}])
    graph = graph_of(given)
    assert list(graph.backward_slice("d@1").variables) == ["c@1", "d@1"]
    assert graph.operations["o"].output_ids() == ["a@1"]
    assert {one.session for one in graph.variables.values()} == {None}
    assert smartcomment.document_of(graph) == given


def test_a_deletion_ends_the_entry_it_was_made_from():
    nodes = [node("m1", category="memory_entry"), node("why"), node("gone", category="delete_marker")]
    graph = graph_of(document(nodes, [edge("o", "m1@1", "gone@1"), edge("o", "why@1", "gone@1")]))
    assert graph.latest("m1@1").kind == "delete_marker"


def test_unknown_keys_are_kept_at_every_level():
    given = document([node("a", aim={"x": 1}), node("b")], [edge("o", "a@1", "b@1", weight=0.5)])
    given |= {"schema": 7}
    given["data"] |= {"annotations": [{"query_id": "a@1", "final_op_id": None}], "extra": []}
    given["data"]["operations"][0]["cost"] = 3
    given["data"]["sessions"][0]["mood"] = None
    assert smartcomment.document_of(graph_of(given)) == given


def test_what_was_changed_after_the_import_goes_out_changed(tmp_path: Path):
    graph = graph_of(document([node("a", full_node_id="a@1"), node("b")], [edge("o", "a@1", "b@1")]))
    graph.variables["a@1"] = Variable("a@1", "a", "prompt", {"new": 1}, attributes=graph.variables["a@1"].attributes)
    graph.add_variable(Variable("c", "b", "fact", "added"))
    graph.add_links(graph.operations["o"], outputs=(("fact", "c"),))
    written = smartcomment.document_of(graph)["data"]
    assert written["nodes"][0] == {**node("a", full_node_id="a@1"), "value": "{'new': 1}", "category": "prompt"}
    assert written["nodes"][2]["name"] == "b#c"
    ends = {(one["source_full_node_id"], one["target_full_node_id"]) for one in written["edges"]}
    assert ends == {("a@1", "b@1"), ("a@1", "b#c@1")}


def test_what_memtune_recorded_keeps_the_rules_of_smartcomment():
    with trace() as recorder:
        one, other = variable(1, name="!"), variable(2, name="same")
        with operation("step", inputs={"a": [one, other]}) as step:
            step.output("x", "first", name="same")
            step.output("x", "second", name="same", previous=other)
    for graph in (recorder.graph, recorded()):
        data = smartcomment.document_of(graph)["data"]
        required = {"graph_id", "session_id", "filename", "lineno"}
        assert all(required <= row.keys() for section in ("nodes", "edges", "operations") for row in data[section])
        assert all(any(sign.isalnum() for sign in row["name"]) for row in data["nodes"])
        full = {row["full_node_id"] for row in data["nodes"]}
        assert len(full) == len(data["nodes"])
        assert all(isinstance(row["value"], str) for row in data["nodes"])
        named = {row["op_id"] for row in data["operations"]}
        sessions = {row["session_id"] for row in data["sessions"]} | {"__none__"}
        for row in data["edges"]:
            assert row["source_full_node_id"] in full
            assert row["target_full_node_id"] in full
            assert row["op_id"] in named
        assert {row["session_id"] for section in ("nodes", "operations") for row in data[section]} <= sessions
    names = [row["full_node_id"] for row in smartcomment.document_of(recorder.graph)["data"]["nodes"]]
    assert names[1::2] == ["same@1", "same@2"]


def test_edges_that_another_tool_drew_on_our_operations_are_read():
    with trace(prefix="") as recorder:
        variable("late", name="late")
        with operation("step", inputs={"a": variable(1, name="one")}) as step:
            step.output("x", 2, name="two")
    given = smartcomment.document_of(recorder.graph)
    given["data"]["edges"].append(edge(step.id, "late@1", "two@1"))
    assert graph_of(given).operations[step.id].input_ids() == ["v2", "v1"]


def test_faults_are_repaired_and_told_with_their_place():
    nodes: list[Any] = [node("a"), 7, {"value": "1"}, node("a"), node("b", version=-1), node("c", session_id="s9")]
    nodes += [node("d", class_name=[1], category={}, metadata=3), node("e", value=None), node("f", value=[1])]
    edges: list[Any] = [edge("o", "a@1", "b@1"), edge("o", "a@1", "ghost@1"), edge("lost", "a@1", "c@1"), [], {}]
    edges += [edge({}, "a@1", "b@1"), {**edge("o", "a@1", "b@1"), "source_full_node_id": []}]  # type: ignore[arg-type]
    operations: list[Any] = [{"op_id": "o"}, {"op_id": "o"}, None, {"op_id": 5, "created_at": "never", "lineno": -1}]
    given = document(nodes, edges, operations)
    given["data"]["sessions"] += [{}, {"session_id": "s1"}, "x"]
    graph, warnings = repaired(given)
    assert list(graph.variables) == ["a@1", "a@1#2", "b@1", "c@1", "d@1", "e@1", "f@1"]
    assert list(graph.operations) == ["o", "o#2", "operation-3", "lost"]
    for words in (
        "data.nodes[1], data.nodes[2]: is not an object with a name",
        "data.sessions[2], data.nodes[3], data.operations[1]: repeats an id",
        "data.nodes[4].version: is not a version number",
        "data.nodes[5].session_id: names no session",
        "data.nodes[6].class_name: is not text",
        "data.nodes[7]: has no value",
        "data.edges[1]: names a variable that is not in the file",
        "data.edges[3], data.edges[4], data.edges[5] and 1 more: is not an object with op_id",
        "'lost': is the operation of edges but not in the file",
        "data.operations[3].op_id: is not text",
        "data.sessions[3], data.operations[2]: is not an object",
    ):
        assert words in warnings
    again, nothing = repaired(smartcomment.document_of(graph))
    assert [one.value for one in again.variables.values()] == [one.value for one in graph.variables.values()]
    assert "is not in the file" not in nothing


def odd_rows() -> dict[str, Any]:
    """A document of which each row differs in another way from what smartcomment writes."""
    nodes: list[Any] = [node("a", aim={"x": [1]}), 7, {"value": "1"}, node("a"), node("b", version=3), node("b")]
    nodes += [node("d", class_name=[1], category={}, metadata=3), node("e", value=2**70), node("f", value=[1])]
    nodes += [node("m", category="memory_entry"), node("gone", category="delete_marker", metadata={"a": [{"b": {}}]})]
    edges: list[Any] = [edge("p", "a@1", "b@1"), edge("o", "a@1", "b@1", weight=0.5), edge("p", "a@1", "d@1"), [], {}]
    edges += [
        edge({}, "a@1", "b@1"),
        {**edge("o", "a@1", "b@1"), SOURCE: []},
        {**edge("o", "a@1", "b@1"), SOURCE: None},
    ]  # type: ignore[arg-type]
    edges += [{SOURCE: "a@1", TARGET: "b@1"}, edge("lost", "a@1", "e@1"), edge("q", "m@1", "gone@1")]
    # Texts are no rows, not even where they are JSON.
    nodes += ["a", json.dumps(node("text"))]
    edges += ["", json.dumps(edge("p", "a@1", "b@1"))]
    operations: list[Any] = [
        '{"op_id": "r"}',
        {"op_id": "o", "cost": 3},
        {"op_id": "p", "metadata": {"memtune": 1}},
        None,
        {"op_id": 5},
    ]
    return {**document(nodes, edges, operations), "schema": 7, "metadata": {"tags": [{"a": 1}]}}


def test_an_edge_whose_operation_has_no_name_is_a_link_by_hand(tmp_path: Path):
    given = document([node("a"), node("b")], [edge("", "a@1", "b@1")], [])
    (tmp_path / "f.json").write_text(json.dumps(given))
    graph = smartcomment.load(tmp_path / "f.json")
    assert [operation.id for operation in graph.operations.values()] != [""]
    smartcomment.write(graph, tmp_path / "g.json")
    assert len(smartcomment.load(tmp_path / "g.json").operations) == len(graph.operations) == 1


def test_a_native_record_with_half_of_a_character_is_told_and_read_as_any_other(tmp_path: Path):
    given = smartcomment.document_of(recorded())
    for row in given["data"]["nodes"]:
        row["metadata"]["memtune"]["\ud83d"] = 1
    (tmp_path / "f.json").write_text(json.dumps(given))
    imported = smartcomment.read(tmp_path / "f.json")
    assert "half of a character" in str(imported.warnings)
    assert len(imported.graph.variables) == len(given["data"]["nodes"])


@pytest.mark.parametrize("given", [chain(20), odd_rows(), smartcomment.document_of(recorded()), {"data": {}}, []])
def test_a_file_gives_what_its_parsed_document_does(given: Any, tmp_path: Path):
    (tmp_path / "f.json").write_text(json.dumps(given))
    troubles = Troubles()
    try:
        expected = smartcomment.graph_of_document(given, tmp_path / "f.json", troubles)
    except TraceError as error:
        with pytest.raises(TraceError, match=re.escape(str(error))):
            smartcomment.read(tmp_path / "f.json")
        return
    imported = smartcomment.read(tmp_path / "f.json")
    assert imported.warnings == troubles.lines()
    assert imported.graph.variables == expected.variables
    assert json.dumps(records_of(imported.graph)) == json.dumps(records_of(expected))
    assert json.dumps(smartcomment.document_of(imported.graph)) == json.dumps(smartcomment.document_of(expected))


@pytest.mark.parametrize("key", ["comment", "of another tool"])
@pytest.mark.parametrize("section", ["nodes", "edges", "operations", "sessions", "annotations"])
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (b'"\xff"', "is not UTF-8 at byte"),
        (b"[" * 250 + b"]" * 250, "is nested more than 200 levels deep"),
        (b"[1,]", "is not JSON: .* at line 1 column"),
        (rb'"\q"', "is not JSON: .* at line 1 column"),
    ],
)
def test_a_fault_in_a_part_that_no_graph_needs_is_found_while_the_file_is_loaded(
    key: str, section: str, fault: bytes, words: str, tmp_path: Path
):
    given = document([node("a"), node("b")], [edge("o", "a@1", "b@1")])
    given["data"]["annotations"] = [{}]
    given["data"][section][0][key] = "@"
    (tmp_path / "f.json").write_bytes(json.dumps(given).encode().replace(b'"@"', fault))
    with pytest.raises(TraceError, match=f"f.json: {words}"):
        smartcomment.read(tmp_path / "f.json")
    (tmp_path / "f.json").write_bytes(json.dumps(given).encode().replace(b'"@"', b"1e999"))
    written = smartcomment.document_of(smartcomment.load(tmp_path / "f.json"))
    assert written["data"][section][0][key] == float("inf")


@pytest.mark.parametrize(
    "texts",
    [
        ["'a'", '"it\'s"', "'new\\nline'"],
        ["'a'", "plain"],
        ['"a", "b"', "", "'c'"],
        ['"a",\n"b"', "'c'"],
        ['"a', '"', '"b", "c"'],
        [" 'a'", "'b'"],
        ["'a' ", "'b'"],
        ["'it\\'s'"],
        ["'\\/'", "'\\ud83d\\ude00'"],
        ["'say \"hi\"'", "'a\" \"b'"],
        ["'a'b'", "'\\x41'", "'"],
        ["'a']", "['b'"],
        ["5", "None", "[1]"],
        ["'\ud800'"],
        [],
    ],
)
def test_values_decoded_together_are_what_each_is_alone(texts: list[str]):
    assert all_decoded(texts) == [decoded(one) for one in texts]


def test_edges_that_lead_nowhere_make_no_operation():
    edges = [
        edge("ghost", "a@1", "x@1"),
        edge("o", "x@1", "a@1"),
        edge("o", "b@1", "a@1"),
        edge("__none_op__", "x", "y"),
    ]
    graph, warnings = repaired(document([node("a"), node("b")], edges, [{"op_id": "o"}]))
    assert list(graph.operations) == ["o"]
    assert (graph.operations["o"].input_ids(), graph.operations["o"].output_ids()) == (["b@1"], ["a@1"])
    assert "data.edges[1], data.edges[0], data.edges[3]: names a variable that is not in the file" in warnings


def test_attributes_of_a_file_compare_as_the_mapping_they_are(tmp_path: Path):
    (tmp_path / "f.json").write_text(json.dumps(document([node("a"), node("b")])))
    one, other = (item.attributes for item in smartcomment.load(tmp_path / "f.json").variables.values())
    (same, _) = (item.attributes for item in smartcomment.load(tmp_path / "f.json").variables.values())
    assert one == same == {"smartcomment": node("a")}
    assert not one != same  # noqa: SIM202
    assert one != other
    assert repr(one) == repr(dict(one))


def test_a_row_of_a_file_stays_bytes_until_somebody_looks_at_it(tmp_path: Path):
    (tmp_path / "f.json").write_text(json.dumps(chain(1000)))
    tracemalloc.start()
    graph = smartcomment.load(tmp_path / "f.json")
    held, _ = tracemalloc.get_traced_memory()
    assert [len(one.attributes) for one in graph.variables.values()] == [1] * 1000
    looked_at, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert looked_at > held * 1.4


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "a list"),
        ({}, "data is missing"),
        ({"data": {"nodes": {}}}, "data.nodes is an object"),
        (1, "a number"),
    ],
)
def test_what_is_no_graph_is_refused_with_the_key(given: Any, words: str):
    with pytest.raises(TraceError, match=words):
        smartcomment.graph_of_document(given, "f.json", Troubles())


def test_numbers_json_does_not_have_become_text_and_can_be_written(tmp_path: Path):
    text = json.dumps(document([node("a", metadata={"x": float("nan"), "y": [float("-inf")]})]))
    (tmp_path / "nan.json").write_text(text)
    imported = smartcomment.read(tmp_path / "nan.json")
    assert imported.graph.variables["a@1"].attributes["smartcomment"]["metadata"] == {"x": "NaN", "y": ["-Infinity"]}
    assert len(imported.warnings) == 1
    (tmp_path / "large.json").write_text(text.replace("NaN", "1e999").replace("-Infinity", "-1e999"))
    graph = smartcomment.load(tmp_path / "large.json")
    smartcomment.write(graph, tmp_path / "out.json")
    save_trace(graph, tmp_path / "out.jsonl")
    assert load_trace(tmp_path / "out.jsonl").problem is None
    assert smartcomment.load(tmp_path / "out.json").variables.keys() == graph.variables.keys()


@pytest.mark.slow
def test_many_equal_ids_take_no_longer_than_different_ones():
    given = document([node("a") for _ in range(20_000)], [edge("o", "a@1", "a@1")] * 20_000, [{"op_id": "o"}] * 20_000)
    graph, warnings = repaired(given)
    assert len(graph.variables) == len(graph.operations) == 20_000
    assert "39995 more" in warnings


def test_a_large_graph_is_the_same_graph(tmp_path: Path):
    given = chain(2_000)
    graph = graph_of(given)
    assert smartcomment.document_of(graph) == given
    assert len(graph.operations) == 1_000
    assert all(len(one.inputs) == 1 for one in graph.operations.values())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@pytest.mark.slow
@given(JSON)
def test_any_json_value_is_read_back_from_its_repr(value: Any):
    assert repr(decoded(repr(value))) == repr(value)


@given(st.text(alphabet="'\"\\/nuxU0159dD[](){},: TrueNone\n.e-ab", max_size=14) | st.text())
def test_a_literal_is_what_python_takes_it_for_or_text(text: str):
    found = decoded(text)
    try:
        expected = ast.literal_eval(text) if text[:1] not in " \t" else text
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        expected = text
    listed = json.loads(json.dumps(expected)) if found != text else text
    assert found in (listed, text)


@pytest.mark.parametrize("text", ["(1, 'a')", "[(1,), ()]", "{'a': (True, None)}", r"'\x41\u00e9\U0001f44b\'\n'"])
def test_tuples_become_lists_and_escapes_characters(text: str):
    assert decoded(text) == json.loads(json.dumps(ast.literal_eval(text)))


LONG = ("[" * 10**6, "-" * 10**6 + "1", "1+" * 10**5 + "1", "'" + "\\" * 10**6, "[1, " * 10**5, "9" * 10**5)
SHORT = (
    r"'a\/b'",
    "007",
    "1.50",
    "(5)",
    "{1, 2}",
    "{1: 2}",
    "b'x'",
    "'a' 'b'",
    "[1 2]",
    "[,]",
    "[1)",
    "1e999",
    r"'\d'",
    "'",
)


@pytest.mark.parametrize("text", [*SHORT, *LONG, "(" * 200 + ")" * 200])
def test_what_is_no_literal_stays_text(text: str):
    assert decoded(text) == text


def test_an_operation_of_another_tool_may_have_the_id_that_means_none_here(tmp_path: Path):
    graph = ExecutionGraph()
    for vid in ("a", "b", "c"):
        graph.add_variable(Variable(vid, vid, "value", vid))
    graph.add_operation(
        Operation("__none_op__", "step", inputs=(("read", "a"),), outputs=(("made", "b"),), started=1.0)
    )
    graph.add_operation(
        Operation("__none_op__7", "step", inputs=(("read", "a"),), outputs=(("made", "c"),), started=2.0)
    )
    again = graph_of(smartcomment.document_of(graph))
    links = [(one.id, one.inputs, one.outputs) for one in again.operations.values()]
    assert links == [(one.id, one.inputs, one.outputs) for one in graph.operations.values()]
