"""The first difference of two executions is the operation that made something else of the same inputs."""

from __future__ import annotations

import itertools

from tests.tracing.recordings import record_memory
from tracing import compare, operation, session, trace, variable


def test_equal_executions_are_equal_whatever_their_ids_and_times():
    first = record_memory().graph
    with trace(prefix="other-") as recorder:
        recorder.adopt([])
        variable("unread", name="extra")
    second = record_memory().graph
    found = compare(first, second)
    assert found.equal
    assert found.aligned == 5


def test_the_cause_is_the_innermost_operation_and_what_it_reaches_follows():
    found = compare(record_memory().graph, record_memory(fact="Mara lives in Rome").graph)
    assert found.cause.operation.name == "extract_facts"
    assert found.cause.parting == "outputs"
    assert found.cause.outputs == ("facts",)
    assert {one.operation.name for one in found.follows} == {"store", "retrieve", "answer"}
    assert found.others == ()


def test_an_outer_operation_whose_inner_one_differs_is_not_the_cause():
    def run(value: str):
        with trace() as recorder, operation("outer", inputs={"x": "same"}) as outer:
            with operation("inner", inputs={"x": "same"}) as inner:
                made = inner.output("y", value)
            outer.output("y", made)
        return recorder.graph

    found = compare(run("one"), run("two"))
    assert found.cause.operation.name == "inner"
    assert [one.operation.name for one in found.follows] == ["outer"]


def test_an_error_in_one_of_them_is_the_difference():
    found = compare(record_memory().graph, record_memory(fails=True).graph)
    assert found.cause.operation.name == "answer"
    assert found.cause.second.error == "ValueError: no reply"


def steps(*values: str, twice: bool = False):
    ticks = itertools.count()
    with trace(prefix="", clock=lambda: float(next(ticks))) as recorder, session("S"):
        for value in values:
            with operation("step", inputs={"x": value}) as op:
                op.output("y", value.upper())
    return recorder.graph


def test_an_operation_that_only_one_has_shifts_none_of_the_others():
    found = compare(steps("a", "b", "c"), steps("a", "new", "b", "c"))
    assert found.cause.parting == "only in the second"
    assert found.cause.second.input_ids() == ["v3"]
    assert found.aligned == 3
    assert found.follows == found.others == ()
    assert compare(steps("a", "b"), steps("b")).cause.parting == "only in the first"


def test_inputs_that_come_from_outside_are_told_as_such():
    found = compare(steps("a", "b"), steps("a", "x"))
    assert found.cause.parting == "inputs"
    assert found.cause.inputs == ("x",)


def test_two_causes_that_do_not_depend_on_each_other_are_told_apart():
    def run(left: str, right: str):
        with trace() as recorder:
            for name, value in (("left", left), ("right", right)):
                with operation(name, inputs={"x": "same"}) as op:
                    op.output("y", value)
        return recorder.graph

    found = compare(run("1", "2"), run("3", "4"))
    assert found.cause.operation.name == "left"
    assert found.follows == ()
    assert [one.operation.name for one in found.others] == ["right"]


def test_the_difference_is_the_same_from_either_side():
    first, second = record_memory().graph, record_memory(fact="Mara lives in Rome").graph
    there, back = compare(first, second), compare(second, first)
    assert there.cause.operation.name == back.cause.operation.name
    assert len(there.follows) == len(back.follows)
