"""The recorder takes down what happened, as it was when it happened, in every context it happens in."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from tracing import (
    TraceError,
    Variable,
    bind,
    current_operation,
    current_recorder,
    graph_of,
    load_trace,
    operation,
    session,
    trace,
    traced,
    variable,
)


@traced()
def shout(text):
    return text.upper() + "!"


@traced(name="pause")
async def shout_later(text):
    await asyncio.sleep(0.001)
    return text.upper()


@contextlib.contextmanager
def frequent_switches():
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def only_operation(recorder, name):
    (found,) = recorder.graph.find_operations(name=name)
    return found


def test_an_operation_is_recorded_with_roles_session_parent_times_and_calls():
    ticks = count(100)
    with trace(clock=lambda: float(next(ticks))) as recorder, session("D1", date="Monday") as stage:
        messages = [variable(f"A: {n}", name=f"D1:{n}", kind="message") for n in range(2)]
        with operation("extract", kind="llm", inputs={"messages": messages, "prompt": "extract!"}, attempt=1) as outer:
            with operation("call") as inner:
                current_operation().record_call(model="m", prompt_tokens=5, completion_tokens=2, cost=0.5)
                current_operation().record_call(model="m", prompt_tokens=5, completion_tokens=2, cached=True)
            fact = outer.output("facts", "a fact", name="first", kind="fact", rank=1)
            outer.annotate(found=1)
    extract, call = recorder.graph.operations[outer.id], recorder.graph.operations[inner.id]
    assert [role for role, _ in extract.inputs] == ["messages", "messages", "prompt"]
    assert extract.input_ids("messages") == [message.id for message in messages]
    assert extract.output_ids("facts") == [fact.id]
    assert (extract.kind, extract.status, extract.session, extract.parent) == ("llm", "ok", stage.id, None)
    assert (extract.started, call.started, call.ended, extract.ended) == (100, 101, 102, 103)
    assert extract.attributes == {"attempt": 1, "found": 1}
    assert (call.parent, call.calls, call.cached_calls, call.model) == (extract.id, 2, 1, "m")
    assert (call.prompt_tokens, call.completion_tokens, call.cost, extract.calls) == (10, 4, 0.5, 0)
    assert (fact.name, fact.kind, fact.value, fact.session) == ("first", "fact", "a fact", stage.id)
    assert recorder.graph.sessions[stage.id].attributes == {"date": "Monday"}
    assert outer.outputs == [fact]


def test_the_outputs_so_far_are_those_of_this_moment():
    with trace(), operation("extract") as running:
        assert running.id  # read before there is an output
        made = [running.output("facts", number) for number in range(2)]
        assert running.outputs == made
        made.append(running.output("facts", 2))
        assert running.outputs == made


def test_the_same_execution_gives_the_same_records():
    def run():
        with trace(prefix="c1-", clock=lambda: 0.0) as recorder, session("D1"):
            shout(shout("word"))
            variable({"b", "a", object}, name="set")
        return recorder.records()

    assert run() == run()
    assert [record["id"] for record in run() if record["type"] == "operation"] == ["c1-o1", "c1-o2"]


def test_without_a_trace_nothing_is_recorded_and_code_runs_alike():
    assert current_recorder() is None
    with session("D1") as stage, operation("step", inputs={"x": 1}) as op:
        made = op.output("y", ("a", "tuple"), name="n", kind="fact", rank=1)
        op.use("z", 2)
        op.annotate(a=1)
        op.record_call(model="m")
        assert current_operation() is None
    assert (stage.id, op.id, made.id, op.outputs) == ("", "", "", [])
    assert (made.name, made.kind, made.value, made.attributes) == ("n", "fact", ("a", "tuple"), {"rank": 1})
    assert shout("x") == "X!"
    with trace() as recorder, operation("later", inputs={"x": made}, empty=True):
        pass
    (taken,) = recorder.graph.variables.values()
    assert (taken.name, taken.kind, taken.value) == ("n", "fact", ["a", "tuple"])


def test_an_exception_is_recorded_with_its_inputs_and_goes_on():
    @traced()
    def fails(text):
        raise ValueError(f"no {text}")

    with trace() as recorder:
        with pytest.raises(ValueError, match="no luck"):
            fails("luck")
        with pytest.raises(KeyboardInterrupt), operation("stopped"):
            raise KeyboardInterrupt
    failed = only_operation(recorder, "fails")
    assert (failed.status, failed.error, failed.output_ids()) == ("error", "ValueError: no luck", [])
    assert [recorder.graph.variables[vid].value for vid in failed.input_ids("text")] == ["luck"]
    assert failed.ended is not None
    assert only_operation(recorder, "stopped").error == "KeyboardInterrupt"
    assert current_operation() is None


def test_arguments_are_recorded_as_they_were_before_the_call():
    @traced()
    def drain(queue):
        queue.clear()
        return len(queue)

    with trace() as recorder:
        drain(["a", {"b": 1}])
    (vid,) = only_operation(recorder, "drain").input_ids("queue")
    assert recorder.graph.variables[vid].value == ["a", {"b": 1}]


def test_traced_keeps_parameter_names_and_leaves_self_out():
    class Store:
        @traced()
        def add(self, entry, *rest, **options):
            return None

    with trace() as recorder:
        Store().add("entry", "one", "two", colour="red", empty=[])
    added = only_operation(recorder, "add")
    assert [(role, recorder.graph.variables[vid].value) for role, vid in added.inputs] == [
        ("entry", "entry"),
        ("rest", "one"),
        ("rest", "two"),
        ("colour", "red"),
        ("empty", []),
    ]


def test_a_wrong_call_of_a_traced_function_raises_what_the_function_would():
    with trace() as recorder, pytest.raises(TypeError, match="shout"):
        shout()
    assert recorder.graph.operations == {}


def test_values_are_linked_by_object_and_never_by_equal_content():
    first, second = "".join(["don't", " know"]), "".join(["don't", " know"])
    with trace() as recorder:
        made_first, made_second = (variable(text, name="reply") for text in (first, second))
        with operation("judge", inputs={"reply": second}) as op:
            op.use("other", first)
            op.use("new", "".join(["don't", " know"]))
    assert made_first.id != made_second.id
    judged = recorder.graph.operations[op.id]
    assert judged.input_ids("reply") == [made_second.id]
    assert judged.input_ids("other") == [made_first.id]
    assert judged.input_ids("new")[0] not in (made_first.id, made_second.id)


@pytest.mark.parametrize("value", [None, True, 0, 256, "", "x", b"", ()])
def test_values_the_interpreter_shares_are_never_linked(value):
    with trace() as recorder:
        made = variable(value, name="flag")
        with operation("use", inputs={"flag": value, "again": value} if value != () else {"flag": [made]}) as op:
            pass
    read = recorder.graph.operations[op.id].input_ids()
    if value == ():
        assert read == [made.id]
    else:
        assert len({made.id, *read}) == 3


def test_data_flows_from_the_result_of_one_traced_call_to_the_argument_of_the_next():
    with trace() as recorder:
        result = shout(shout("a long word"))
        end = variable("other", name="other")
    graph = recorder.graph
    (final,) = [one for one in graph.variables.values() if one.value == result]
    assert len(graph.backward_slice(final.id).operations) == 2
    assert end.id not in graph.backward_slice(final.id).variables


def test_a_result_passed_out_by_an_outer_call_stays_one_variable():
    @traced()
    def outer(text):
        return shout(text)

    with trace() as recorder:
        outer("hello")
    assert only_operation(recorder, "outer").output_ids() == only_operation(recorder, "shout").output_ids()


def test_an_object_changed_in_place_becomes_a_new_version():
    with trace() as recorder:
        entries = ["a"]
        first = variable(entries, name="store", kind="memory_entry")
        with operation("unchanged", inputs={"entries": entries}):
            pass
        entries.append("b")
        with operation("read", inputs={"entries": entries}) as op:
            entries.append("c")
            last = op.output("entries", entries, name="store", kind="memory_entry")
    assert only_operation(recorder, "unchanged").input_ids() == [first.id]
    assert [(one.version, one.value) for one in recorder.graph.versions(first.id)] == [
        (1, ["a"]),
        (2, ["a", "b"]),
        (3, ["a", "b", "c"]),
    ]
    assert recorder.graph.latest(first.id).id == last.id


def test_a_version_names_the_one_before_by_variable_or_id():
    with trace() as recorder:
        first = variable("Lima", name="m1", kind="memory_entry")
        with operation("store") as op:
            second = op.output("entry", "Oslo", name="m1", kind="memory_entry", previous=first)
            third = op.output("entry", "", name="m1", kind="delete_marker", previous=second.id)
        assert (second.version, second.previous, third.version) == (2, first.id, 3)
        assert recorder.graph.latest(first.id) == third
        elsewhere = variable("x", name="x", previous="another-v7")
    assert elsewhere.previous == "another-v7"
    assert recorder.graph.variables["another-v7"].is_reference


def test_what_is_not_json_is_named_by_type_and_repr():
    class Odd:
        def __repr__(self):
            raise RuntimeError

    cycle: list = [1]
    cycle.append(cycle)
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with trace() as recorder:
        values = [
            variable(value, name="v").value
            for value in (object(), float("nan"), {1: "a"}, Path("a"), {"b", "a"}, Odd(), cycle, (1, "a"), 10**5000)
        ]
        variable(deep, name="deep")
    assert values[0] == {"type": "object", "repr": "<object object>"}
    assert values[1] == {"type": "float", "repr": "nan"}
    assert values[2] == {"type": "dict", "repr": "{1: 'a'}"}
    assert values[3]["repr"] == "PosixPath('a')"
    assert values[4] == {"type": "set", "repr": "{'a', 'b'}"}
    assert values[5]["repr"] == "<repr raised RuntimeError>"
    assert values[6] == [1, {"type": "list", "repr": "…"}]
    assert values[7] == [1, "a"]
    assert values[8]["type"] == "int"
    assert graph_of(recorder.records()).variables == recorder.graph.variables


def test_async_tasks_keep_their_own_operation_and_session():
    async def answer(question):
        with session(question), operation("answer") as op:
            await shout_later(question)
            assert current_operation() is op
            return op.id

    async def main():
        with operation("all"):
            return await asyncio.gather(*(answer(f"question {n}") for n in range(20)))

    with trace() as recorder:
        answers = asyncio.run(main())
    root = only_operation(recorder, "all")
    inner = recorder.graph.find_operations(name="pause")
    assert [one.parent for one in recorder.graph.find_operations(name="answer")] == [root.id] * 20
    assert sorted(one.parent for one in inner) == sorted(answers)
    for one in inner:
        question = recorder.graph.variables[one.input_ids("text")[0]].value
        assert recorder.graph.sessions[one.session].name == question
        assert [recorder.graph.variables[vid].value for vid in one.output_ids()] == [question.upper()]


def test_threads_record_under_the_operation_they_were_bound_in_without_losing_or_mixing_anything(tmp_path: Path):
    def work(number):
        with operation("work", inputs={"n": f"item {number}"}) as op:
            shared.record_call(model="m", prompt_tokens=1)
            for part in range(5):
                op.output("part", f"{number}.{part}")
            shared.output("done", f"done {number}")

    path = tmp_path / "trace.jsonl"
    with (
        frequent_switches(),
        trace(path) as recorder,
        session("D1") as stage,
        operation("fan out") as shared,
        ThreadPoolExecutor(16) as pool,
    ):
        list(pool.map(bind(work), range(200)))
    for graph in (recorder.graph, load_trace(path).graph):
        done = graph.find_operations(name="work")
        assert len(done) == 200
        assert {one.parent for one in done} == {shared.id}
        assert {one.session for one in done} == {stage.id}
        for one in done:
            number = graph.variables[one.input_ids("n")[0]].value.removeprefix("item ")
            assert [graph.variables[vid].value for vid in one.output_ids()] == [f"{number}.{part}" for part in range(5)]
        assert graph.operations[shared.id].calls == graph.operations[shared.id].prompt_tokens == 200
        assert len(graph.operations[shared.id].outputs) == 200


def test_an_unbound_thread_records_nothing():
    with trace() as recorder:
        thread = threading.Thread(target=shout, args=("x",))
        thread.start()
        thread.join()
    assert recorder.graph.operations == {}


def test_a_variable_belongs_to_the_session_of_its_operation_whatever_thread_makes_it():
    with trace() as recorder, session("D1") as stage, operation("step") as op:
        thread = threading.Thread(target=op.output, args=("late", "value"))
        thread.start()
        thread.join()
    assert [one.session for one in recorder.graph.variables.values()] == [stage.id]


def test_an_inner_trace_keeps_the_outer_one_clean():
    with trace() as outer, operation("outside"):
        with trace(prefix="in-") as inner:
            assert current_operation() is None
            shout("x")
        assert current_recorder() is outer
    assert [one.name for one in outer.graph.operations.values()] == ["outside"]
    assert [one.name for one in inner.graph.operations.values()] == ["shout"]


def test_an_adopted_recording_can_be_built_on_under_the_same_prefix(tmp_path: Path):
    with trace() as build, session("D1"):
        entry = variable("Lima", name="m1", kind="memory_entry")
    path = tmp_path / "answers.jsonl"
    with trace(path) as answers:
        answers.adopt(build.records())
        with session("Q1"), operation("retrieve", inputs={"entries": [entry]}) as op:
            op.output("context", "Lima", kind="context", entry=entry.id)
        variable("Oslo", name="m1", previous=entry.id)
    graph = load_trace(path).graph
    assert [one.name for one in graph.consumers(entry.id)] == ["retrieve"]
    assert [one.value for one in graph.versions(entry.id)] == ["Lima", "Oslo"]
    assert [one.name for one in graph.sessions.values()] == ["D1", "Q1"]
    assert build.graph.merge(answers.graph).variables == graph.variables


def test_a_thread_that_records_during_an_adoption_gets_an_id_of_its_own():
    with trace() as build:
        entry = variable("Lima", name="m1")

    def slowly(records):
        thread.start()
        thread.join(timeout=0.2)
        yield from records

    with trace() as answers:
        thread = threading.Thread(target=bind(variable), args=("Oslo",), kwargs={"name": "m2"})
        answers.adopt(slowly(build.records()))
        thread.join()
    assert [one.value for one in answers.graph.variables.values()] == ["Lima", "Oslo"]
    assert entry.id in answers.graph.variables


def test_a_variable_of_another_trace_is_taken_over_and_an_id_for_two_things_refused(tmp_path: Path):
    with trace(prefix="b-"):
        old = variable("Lima", name="m1")
        entry = variable("Oslo", name="m1", previous=old)
    path = tmp_path / "t.jsonl"
    with trace(path, prefix="") as recorder:
        for _ in range(2):
            with operation("read", inputs={"entry": entry}):
                pass
        variable("x", name="x")
        with (
            pytest.raises(TraceError, match="prefix"),
            operation("read", inputs={"entry": Variable("v1", "e", "value", 1)}),
        ):
            pass
    assert [(one.id, one.value) for one in load_trace(path).graph.variables.values()] == [("b-v2", "Oslo"), ("v1", "x")]
    assert len(recorder.graph.consumers("b-v2")) == 2


def test_recording_after_the_end_is_refused_rather_than_lost():
    with trace() as recorder:
        with operation("step") as op:
            context_copy = bind(lambda: variable("late", name="late"))
        with pytest.raises(TraceError, match="has ended"):
            op.output("late", 1)
        with pytest.raises(TraceError, match="second time"), op:
            pass
        op.record_call(model="late")
    with pytest.raises(TraceError, match="trace has ended"):
        context_copy()
    assert only_operation(recorder, "step").calls == 0


def test_an_operation_still_open_at_the_end_is_written_as_open(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    with trace(path):
        lasting = operation("lasting")
        lasting.__enter__()
        lasting.output("x", "value")
    lasting.__exit__(None, None, None)
    assert current_recorder() is None
    (left,) = load_trace(path).graph.operations.values()
    assert (left.name, left.status, left.ended, len(left.outputs)) == ("lasting", "open", None, 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_write_into_its_parents_trace(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    with trace(path) as recorder:
        shout("parent")
        recorder.flush()
        before = path.read_bytes()
        child = os.fork()
        if child == 0:
            shout("child")
            os._exit(0 if current_recorder() is None else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert path.read_bytes() == before
