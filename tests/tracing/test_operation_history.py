from __future__ import annotations

import random

import pytest

from tracing.errors import TraceError
from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace, variable


def held(graph: ExecutionGraph) -> set[str]:
    return {one.name for one in graph.variables.values()}


def test_an_operations_past_has_what_was_recorded_before_it_and_what_it_made_but_nothing_later():
    with trace() as recorder:
        said = variable("I moved to Oslo.", name="said", kind="message")
        with operation("store", inputs={"said": said}) as op:
            entry = op.output("entry", "Oslo", name="entry", kind="memory_entry")
        with operation("answer", inputs={"entry": entry}) as op:
            op.output("reply", "Oslo", name="reply", kind="prediction")
        unread = variable("I like tea.", name="late", kind="message")
        with operation("store", inputs={"said": unread, "old": entry}) as op:
            op.output("entry", "Oslo, tea", name="later entry", kind="memory_entry", previous=entry)
    graph = recorder.graph
    past = graph.until(graph.find_operations(name="answer")[0].id)
    assert held(past) == {"said", "entry", "reply"}
    assert [one.name for one in past.operations.values()] == ["store", "answer"]
    assert past.latest(entry.id).id == entry.id
    with pytest.raises(TraceError, match="'ghost'"):
        graph.until("ghost")


def test_what_the_operation_around_it_makes_afterwards_is_not_in_its_past():
    with trace() as recorder, operation("turn") as turn:
        before = turn.output("before", "kept", name="before", kind="memory_entry")
        with operation("answer", inputs={"entry": before}) as op:
            with operation("search", inputs={"entry": before}) as inner:
                inner.output("hit", "kept", name="hit", kind="context")
            op.output("reply", "Oslo", name="reply", kind="prediction")
        turn.output("after", "Rex", name="after", kind="memory_entry")
    graph = recorder.graph
    past = graph.until(graph.find_operations(name="answer")[0].id)
    assert held(past) == {"before", "hit", "reply"}
    assert {one.name for one in past.operations.values()} == {"turn", "answer", "search"}


def test_what_outlasts_an_operation_has_made_only_what_precedes_its_outputs():
    graph = ExecutionGraph(
        [Variable(name, name, "memory_entry", name) for name in ("early", "reply", "late")],
        [
            Operation("save", "save", outputs=(("e", "early"), ("e", "late")), started=1.0, ended=9.0, status="ok"),
            Operation("answer", "answer", outputs=(("reply", "reply"),), started=2.0, ended=3.0, status="ok"),
        ],
    )
    assert held(graph.until("answer")) == {"early", "reply"}


def test_what_led_to_an_operation_is_in_its_past_wherever_a_foreign_file_lists_it():
    graph = ExecutionGraph(
        [Variable(name, name, "memory_entry", name) for name in ("reply", "other", "entry", "message")],
        [
            Operation("answer", "answer", inputs=(("e", "entry"),), outputs=(("reply", "reply"),)),
            Operation("store", "store", inputs=(("m", "message"),), outputs=(("e", "entry"),)),
            Operation("store2", "store", outputs=(("e", "other"),)),
        ],
    )
    assert held(graph.until("answer")) == {"reply", "entry", "message"}


def shape(graph: ExecutionGraph) -> list[tuple[list[str], list[str], list[str]]]:
    """Of each variable the operations that made and read it, and its versions."""
    return [
        (
            [maker.id for maker in graph.producers(vid)],
            [reader.id for reader in graph.consumers(vid)],
            [version.id for version in graph.versions(vid)],
        )
        for vid in graph.variables
    ]


@pytest.mark.parametrize("seed", range(40))
def test_a_past_answers_as_a_graph_of_what_it_has_and_goes_on_to_when_it_grows(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a choice of shapes, no secret
    ids = [f"v{place}" for place in range(12)]
    variables = [
        Variable(vid, vid, "memory_entry", vid, previous=chance.choice(ids) if chance.random() < 0.3 else None)
        for vid in ids
    ]
    operations = [
        Operation(
            f"o{place}",
            "step",
            inputs=tuple(("in", vid) for vid in chance.sample(ids, chance.randrange(4))),
            outputs=tuple(("out", vid) for vid in chance.sample(ids, chance.randrange(3))),
            parent=f"o{chance.randrange(place)}" if place and chance.random() < 0.3 else None,
            started=float(place),
            ended=place + chance.random() * 3,
            status="ok",
        )
        for place in range(7)
    ]
    graph = ExecutionGraph(variables, operations)
    for oid in graph.operations:
        past = graph.until(oid)
        alone = ExecutionGraph(past.variables.values(), past.operations.values())
        assert shape(past) == shape(alone)
        # All that led to it is in it, whatever was recorded when.
        assert graph.backward_slice(*graph.operations[oid].input_ids()).variables.keys() <= past.variables.keys()
        for grown in (past, alone):
            grown.add_variable(
                Variable("more", "more", "memory_entry", "more", previous=next(iter(grown.variables), None))
            )
            grown.add_operation(Operation("again", "step", inputs=(("in", "more"),), outputs=(), started=9.0))
        assert shape(past) == shape(alone)
