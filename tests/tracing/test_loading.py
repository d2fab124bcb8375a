"""Loading accepts, refuses and reports the same things, whichever way a record takes through it."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tests.tracing.recordings import record_memory
from tracing import TraceError, Variable, graph_of, load_trace, trace, variable
from tracing.files.records import RecordReader, lenient_model
from tracing.files.trace_lines import HEADER
from tracing.graph.elements import Operation

VARIABLE = {
    "type": "variable", "id": "v1", "name": "n", "kind": "k", "value": "text", "version": 1, "previous": None,
    "session": None, "attributes": {},
}  # fmt: skip
OPERATION = {
    "type": "operation", "id": "o1", "name": "n", "kind": "llm", "inputs": [["x", "v1"]], "outputs": [], "parent": None,
    "session": None, "started": 1.5, "ended": 2.5, "status": "ok", "error": None, "model": None, "calls": 1,
    "cached_calls": 0, "prompt_tokens": 3, "completion_tokens": 4, "cost": 0.5, "attributes": {},
}  # fmt: skip


def written(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in (HEADER, *records)))
    return path


def test_what_a_recorder_writes_is_read_without_pydantics_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "t.jsonl"
    recorder = record_memory(path, fails=True)

    def refused(self: RecordReader, cls: type, record: dict[str, Any]) -> Any:
        raise AssertionError(f"taken for a strange record: {record}")

    monkeypatch.setattr(RecordReader, "_converted", refused)
    loaded = load_trace(path)
    assert loaded.graph.operations == recorder.graph.operations
    assert loaded.graph.variables == recorder.graph.variables


SOME = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "v1", "ok", "1", "1.5", "open"]),
    st.lists(st.just("v1"), max_size=2),
    st.lists(st.lists(st.sampled_from(["v1", "r"]), min_size=1, max_size=3), max_size=2),
    st.dictionaries(st.just("a"), st.integers(), max_size=1),
)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([VARIABLE, OPERATION]).flatmap(
        lambda record: st.tuples(
            st.just(record), st.dictionaries(st.sampled_from([*record][1:]), SOME, min_size=1, max_size=2)
        )
    ),
    st.data(),
)
def test_a_record_loads_just_as_pydantic_would_load_it(
    case: tuple[dict[str, Any], dict[str, Any]], data: st.DataObject
):
    given_record, strange = case
    record = {**given_record, **strange}
    for key in data.draw(st.sets(st.sampled_from([*record][1:]), max_size=2)):
        del record[key]
    cls = Variable if record["type"] == "variable" else Operation
    try:
        model = lenient_model(cls).model_validate({key: value for key, value in record.items() if key != "type"})
    except ValidationError as error:
        with pytest.raises(TraceError, match=f"a {record['type']} record is malformed: {error.errors()[0]['loc'][0]}"):
            graph_of([record])
        return
    expected = cls(**dict(model))
    present = {**VARIABLE, "id": "r"}, {**VARIABLE, "id": "v1"}, {**VARIABLE, "id": ""}
    before = [one for one in present if one["id"] != record["id"] or record["type"] == "operation"]
    links = [vid for key in ("inputs", "outputs") for _, vid in getattr(expected, key, ())]
    if getattr(expected, "previous", None) == expected.id or not {*links} <= {"r", "v1", ""}:
        return
    if getattr(expected, "previous", None) not in (None, "r", "v1", ""):
        with pytest.raises(TraceError, match="unknown version"):
            graph_of([*before, record])
        return
    graph = graph_of([*before, record])
    assert (graph.variables if cls is Variable else graph.operations)[expected.id] == expected


def test_fields_with_a_default_may_be_left_out(tmp_path: Path):
    path = written(
        tmp_path / "t.jsonl",
        {"type": "variable", "id": "v1", "name": "n", "kind": "k", "value": 1},
        {"type": "operation", "id": "o1", "name": "n", "inputs": [["x", "v1"]]},
    )
    loaded = load_trace(path)
    assert (loaded.problem, loaded.notes) == (None, ())
    assert loaded.graph.variables["v1"] == Variable("v1", "n", "k", 1)
    assert loaded.graph.operations["o1"] == Operation("o1", "n", inputs=(("x", "v1"),))


def test_unknown_keys_are_left_out_and_reported(tmp_path: Path):
    path = written(
        tmp_path / "t.jsonl",
        {"type": "session", "id": "s1", "name": "n", "colour": 1},
        {**VARIABLE, "colour": "red"},
        {**VARIABLE, "id": "v2", "colour": "blue"},
        {**OPERATION, "shape": 1},
    )
    loaded = load_trace(path)
    assert loaded.problem is None
    assert loaded.notes == (
        "1 operation record held the unknown key 'shape', which was left out",
        "1 session record held the unknown key 'colour', which was left out",
        "2 variable records held the unknown key 'colour', which was left out",
    )
    assert list(loaded.graph.variables) == ["v1", "v2"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_know_are_damage(tmp_path: Path, number: str):
    path = written(tmp_path / "t.jsonl", VARIABLE)
    with path.open("a") as file:
        file.write(json.dumps({**VARIABLE, "id": "v2"}).replace('"text"', number) + "\n")
    loaded = load_trace(path)
    assert "not JSON" in loaded.problem
    assert list(loaded.graph.variables) == ["v1"]


@pytest.mark.parametrize("key", ["started", "ended", "cost"])
@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_an_operation_whose_times_or_cost_are_no_numbers_is_refused_before_an_export_fails_on_it(
    key: str, number: float
):
    with pytest.raises(TraceError, match="operation o1 has a time or cost that is not a number"):
        graph_of([VARIABLE, {**OPERATION, key: number}])


def test_the_collector_is_left_as_it_was(tmp_path: Path):
    good, bad = written(tmp_path / "good.jsonl", VARIABLE), written(tmp_path / "bad.jsonl", {"type": "riddle"})
    for path in (good, bad, tmp_path / "none.jsonl"):
        for on in (True, False):
            (gc.enable if on else gc.disable)()
            try:
                load_trace(path)
            except TraceError:
                assert path.name == "none.jsonl"
            finally:
                was_on = gc.isenabled()
                gc.enable()
            assert was_on is on


def test_a_loaded_graph_shares_nothing_with_the_records_it_came_from():
    record = {**OPERATION, "inputs": [], "status": "open", "attributes": {"a": 1}}
    graph = graph_of([record])
    graph.operations["o1"].attributes["b"] = 2
    assert record["attributes"] == {"a": 1}


def test_loading_and_slicing_grow_with_the_size_and_not_faster():
    """Counted, not timed: a slice of a hundred steps looks at as many variables of a long chain as of a short one."""

    class Counting(dict[str, Any]):
        looked = 0

        def __getitem__(self, key: str) -> Any:
            Counting.looked += 1
            return super().__getitem__(key)

    seen = []
    for length in (1_000, 10_000):
        records: list[dict[str, Any]] = [{**VARIABLE, "id": f"v{n}"} for n in range(length)]
        records += [
            {**OPERATION, "id": f"o{n}", "inputs": [["x", f"v{n}"]], "outputs": [["y", f"v{n + 1}"]]}
            for n in range(length - 1)
        ]
        graph = graph_of(records)
        graph.variables = Counting(graph.variables)
        graph.backward_slice(f"v{length - 1}", depth=100)
        Counting.looked = 0
        graph.backward_slice(f"v{length - 1}", depth=100)
        seen.append(Counting.looked)
    assert seen[0] == seen[1] > 0


@pytest.mark.parametrize(
    "value",
    [
        *(
            '"\\ud800"',
            '"\\ud83d\\ude00"',
            "1e999",
            "-0",
            "123456789012345678901234567890",
            "1" * 5000,
            "01",
            "[1,]",
            '"\\x"',
        ),
        *('{"a":1,"a":2}', "9007199254740993.0", "0.1e-400", "nul", "1 2", "-1.5E+5", "[" * 260 + "]" * 260),
    ],
)
def test_a_line_is_read_as_the_standard_parser_reads_it_or_left_out(value: str, tmp_path: Path) -> None:
    path = written(tmp_path / "t.jsonl")
    with path.open("a") as file:
        file.write(json.dumps(VARIABLE).replace('"text"', value) + "\n")
    loaded = load_trace(path)
    try:
        expected = json.loads(value)
    except ValueError:
        expected = None
    if expected is None or value.startswith("[["):
        assert loaded.problem is not None
        assert loaded.graph.variables == {}
    else:
        assert loaded.problem is None
        assert repr(loaded.graph.variables["v1"].value) == repr(expected)


def test_what_has_no_type_is_no_element(tmp_path: Path) -> None:
    path = written(tmp_path / "t.jsonl", {key: value for key, value in VARIABLE.items() if key != "type"})
    assert "unknown type None" in str(load_trace(path).problem)


def test_a_variable_that_is_still_noted_can_be_compared_shown_and_looked_up() -> None:
    with trace():
        first, second = variable("text", name="a"), variable("text", name="b")
        assert first != second
        assert "name='b'" in repr(second)
        third = variable("text", name="c")
        assert third in {third}
