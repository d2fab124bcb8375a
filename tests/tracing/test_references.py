"""Variables of other traces: their ids are nobody else's, and what refers to them is linked once both are together."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracing import ExecutionGraph, Variable, graph_of, load_trace, operation, save_trace, session, trace, variable
from tracing.systems.texts import recalled

ENTRY = {"name": "note1", "kind": "memory_entry"}


def stored(path: Path | None = None, text: str = "Mara lives in Oslo.", **options: str) -> tuple[ExecutionGraph, str]:
    """A trace that stores a note, and the note's id as a program keeps it."""
    with trace(path, **options) as recorder, session("monday"):
        message = variable("Mara: I live in Oslo.", name="D1:1", kind="message")
        with operation("take_notes", inputs={"messages": [message]}) as op:
            note = op.output("note", text, **ENTRY)
        return recorder.graph, note.id


def asked(ids: list[str], path: Path | None = None, **options: str) -> ExecutionGraph:
    """A trace that answers from notes."""
    with trace(path, **options) as recorder:
        query = variable("Where does Mara live?", name="question", kind="query")
        with operation("answer", inputs={"question": query, "notes": recalled(ids)}) as op:
            op.output("prediction", "Oslo", kind="prediction")
    return recorder.graph


@pytest.mark.parametrize(
    ("first", "second"),
    [({}, {}), ({"prefix": "mon-"}, {"prefix": "fri-"}), ({"prefix": ""}, {})],
    ids=["as is", "prefixes of one's own", "an old trace with short ids"],
)
@pytest.mark.parametrize("answer_first", [False, True])
def test_what_a_later_trace_reads_is_linked_to_what_an_earlier_one_wrote(
    tmp_path: Path, first: dict[str, str], second: dict[str, str], answer_first: bool
) -> None:
    monday, friday = tmp_path / "monday.jsonl", tmp_path / "friday.jsonl"
    _, note = stored(monday, **first)
    asked([note], friday, **second)
    graphs = [load_trace(path).graph for path in (monday, friday)]
    assert [one.is_reference for one in graphs[1].variables.values() if one.id == note] == [True]
    one, other = reversed(graphs) if answer_first else graphs
    whole = one.merge(other)
    save_trace(whole, tmp_path / "whole.jsonl")
    for graph in (whole, load_trace(tmp_path / "whole.jsonl").graph):
        (answer,) = graph.find_operations(name="answer")
        assert graph.variables[note].value == "Mara lives in Oslo."
        behind = graph.backward_slice(answer.output_ids()[0])
        assert [one.name for one in behind.operations.values() if one.name == "take_notes"] == ["take_notes"]
        assert "Mara: I live in Oslo." in [one.value for one in behind.variables.values()]


def test_no_two_traces_share_an_id_and_an_own_prefix_gives_the_same_ids_again() -> None:
    graphs = [stored()[0] for _ in range(50)]
    assert len({vid for graph in graphs for vid in graph.variables}) == 100
    (one, first), (other, second) = stored(prefix="p"), stored(prefix="p")
    assert first == second == "pv2"
    assert list(one.variables) == list(other.variables)


def test_a_version_over_three_traces_is_one_line_whatever_order_they_are_merged_in(tmp_path: Path) -> None:
    monday, note = stored()
    with trace() as recorder, operation("change") as op:
        changed = op.output("note", "Mara lives in Rome.", previous=note, **ENTRY).id
    friday = asked([changed])
    for graphs in ((monday, recorder.graph, friday), (friday, recorder.graph, monday)):
        first, second, third = graphs
        whole = first.merge(second).merge(third)
        assert [one.id for one in whole.versions(changed)] == [note, changed]
        path = tmp_path / f"{first.variables is monday.variables}.jsonl"
        save_trace(whole, path)
        assert [one.id for one in load_trace(path).graph.versions(note)] == [note, changed]


def test_a_variable_taken_from_another_trace_is_the_same_when_both_are_merged() -> None:
    monday, note = stored()
    with trace() as recorder, operation("answer", inputs={"notes": [monday.variables[note]]}):
        pass
    for whole in (monday.merge(recorder.graph), recorder.graph.merge(monday)):
        assert [one.name for one in whole.producers(note)] == ["take_notes"]
        assert whole.variables[note].session == monday.variables[note].session


def test_what_is_adopted_takes_the_place_of_references_also_in_the_file(tmp_path: Path) -> None:
    monday, note = stored()
    path = tmp_path / "friday.jsonl"
    with trace(path) as recorder:
        with operation("answer", inputs={"notes": recalled([note])}) as op:
            pass
        recorder.adopt_elements([*monday.sessions.values(), *monday.variables.values(), *monday.operations.values()])
        assert recalled([note]) == [monday.variables[note]]
    for graph in (recorder.graph, load_trace(path).graph, graph_of(recorder.records())):
        assert graph.variables[note].value == "Mara lives in Oslo."
        assert [one.name for one in graph.consumers(note)] == ["answer"]
        assert [one.name for one in graph.producers(note)] == ["take_notes"]
    assert op.id


def test_one_id_is_that_of_one_variable() -> None:
    _, note = stored()
    with trace():
        assert [one.id for one in recalled(note)] == [note]


def test_an_entry_that_was_written_untraced_is_passed_over() -> None:
    written = Variable("", "note1", "memory_entry", "Mara lives in Oslo.")
    assert recalled([written.id]) == []
    with trace() as recorder:
        assert recalled([written.id]) == []
    assert recorder.graph.variables == {}
