"""What was made, begun or bound in one trace is recorded there or nowhere: never in the trace that it is run in."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Callable, Iterator

import pytest

from tracing import (
    Recorder,
    TraceError,
    bind,
    change,
    current_operation,
    current_recorder,
    hand_over,
    operation,
    paused,
    take_over,
    trace,
    traced,
    variable,
)

SECRET = "the first one's"


@traced()
def inner(text):
    return text + "!"


@traced()
def words(text):
    """Two items, each of a step of its own."""
    for number in range(2):
        yield inner(f"{text} {number}")


@traced()
async def words_later(text):
    for number in range(2):
        yield inner(f"{text} {number}")


@traced()
async def fetched(text):
    return inner(text)


@traced()
def stream(text):
    return (inner(f"{text} {number}") for number in range(2))


@traced()
def stream_later(text):
    return words_later.__wrapped__(text)


@traced()
def promise(text):
    return fetched.__wrapped__(text)


async def _all_of(items):
    return [item async for item in items]


def _run_later(items):
    return asyncio.run(_all_of(items))


MADE: dict[str, tuple[Callable[[str], object], Callable[[object], object]]] = {
    "generator": (words, list),
    "async generator": (words_later, _run_later),
    "coroutine": (fetched, asyncio.run),
    "generator of a plain function": (stream, list),
    "async generator of a plain function": (stream_later, _run_later),
    "coroutine of a plain function": (promise, asyncio.run),
}
"""What a call gives → the function, and what runs its result."""


@pytest.fixture(autouse=True)
def _nothing_stays_current() -> Iterator[None]:
    yield
    assert current_recorder() is None, "what was recorded last is recorded still"


def _said(recorder: Recorder) -> str:
    """All that a recorder took down, as one text."""
    return json.dumps(recorder.records())


@pytest.mark.parametrize("how", MADE)
@pytest.mark.parametrize("still_open", [False, True])
def test_what_is_made_in_one_trace_and_run_in_another_leaves_nothing_in_that(how: str, still_open: bool):
    make, run = MADE[how]
    if still_open:
        with trace(prefix="a") as first:
            made = make(SECRET)
            with trace(prefix="b") as second:
                run(made)
        assert SECRET in _said(first), "its own trace is open and has nothing of it"
        ids = [one.id for one in (*first.graph.variables.values(), *first.graph.operations.values())]
        assert ids
        assert all(one.startswith("a") for one in ids)
        assert {one.status for one in first.graph.operations.values()} == {"ok"}
    else:
        with trace() as first:
            made = make(SECRET)
        with trace() as second:
            run(made)
    assert _said(second) == "[]"


@pytest.mark.parametrize("how", ["generator", "async generator", "generator of a plain function"])
def test_what_is_begun_in_one_trace_and_run_on_in_another_leaves_nothing_in_that(how: str):
    make, _ = MADE[how]
    loop = asyncio.new_event_loop()

    def step(items):
        return next(items) if isinstance(items, Iterator) else loop.run_until_complete(anext(items))

    with trace() as first:
        items = make(SECRET)
        step(items)
    with trace() as second:
        assert step(items) == f"{SECRET} 1!"
    assert _said(second) == "[]"
    assert len(first.graph.find_operations(name="inner")) == 1
    loop.close()


@pytest.mark.parametrize("how", ["generator", "async generator", "coroutine"])
def test_what_is_made_outside_of_any_trace_is_recorded_where_it_runs(how: str):
    make, run = MADE[how]
    made = make("mine")
    with trace() as recorder:
        run(made)
    assert recorder.graph.find_operations(name=make.__name__)
    assert {one.parent for one in recorder.graph.find_operations(name="inner")} <= set(recorder.graph.operations)


def test_what_is_made_in_a_trace_and_run_where_nothing_is_recorded_is_recorded_nowhere():
    with trace() as recorder:
        made = [make(SECRET) for make in (words, words_later, fetched)]
        with paused():
            for one, run in zip(made, (list, _run_later, asyncio.run), strict=True):
                run(one)
    assert _said(recorder) == "[]"


def test_one_trace_runs_what_it_made_in_whatever_operation_asks_for_it():
    """The operation that asks for the first item is the one around it, as before."""
    with trace() as recorder:
        items = words("mine")
        with operation("reader") as reader:
            list(items)
    (made,) = recorder.graph.find_operations(name="words")
    assert made.parent == reader.id


def test_decorated_functions_stay_what_they_were():
    assert inspect.isgeneratorfunction(words)
    assert inspect.isasyncgenfunction(words_later)
    assert inspect.iscoroutinefunction(fetched)
    assert asyncio.iscoroutinefunction(fetched)
    made = [words("x"), words_later("x"), fetched("x")]
    assert [inspect.isgenerator(made[0]), inspect.isasyncgen(made[1]), inspect.iscoroutine(made[2])] == [True] * 3
    assert [one.__name__ for one in made] == ["words", "words_later", "fetched"]
    made[2].close()


def test_a_bound_callable_records_in_its_own_trace_and_is_refused_after_its_end():
    with trace(prefix="a") as first:
        bound = bind(inner)
        with trace(prefix="b") as second:
            bound(SECRET)
    with trace(prefix="c") as third, pytest.raises(TraceError, match="the trace has ended"):
        bound(SECRET)
    assert len(first.graph.operations) == 1
    assert _said(second) == _said(third) == "[]"


def test_a_thread_that_outlives_its_trace_is_refused_and_leaves_nothing_in_the_next():
    go_on, refused = threading.Event(), []

    def work():
        go_on.wait(10)
        try:
            inner(SECRET)
        except TraceError as error:
            refused.append(str(error))

    with trace():
        thread = threading.Thread(target=bind(work))
        thread.start()
    with trace() as second:
        go_on.set()
        thread.join()
    assert "wait for threads" in refused[0]
    assert _said(second) == "[]"


def test_an_operation_records_nothing_more_once_its_trace_has_ended():
    """Neither in memory, where a file of the trace would not have it, nor in the trace that follows."""
    with trace(prefix="a") as first:
        op = operation("step")
        op.__enter__()
        given = variable("mine", name="mine")
    before = _said(first)
    with trace(prefix="b") as second:
        of_the_second = variable("another's", name="x")
        for record in (
            lambda: op.output("late", SECRET),
            lambda: op.output("late", {"text": SECRET}),
            lambda: op.output("late", given),
            lambda: op.output("late", of_the_second),
            lambda: op.use("late", SECRET),
            lambda: op.annotate(late=SECRET),
        ):
            with pytest.raises(TraceError, match="the trace has ended"):
                record()
        op.finish(SECRET)
        op.record_call(model="m")
        op.__exit__(None, None, None)
        assert current_recorder() is second
    assert _said(first) == before
    assert SECRET not in _said(second)


def test_nothing_is_adopted_once_the_trace_has_ended():
    with trace() as first:
        given = hand_over()
    with take_over(given) as child:
        inner(SECRET)
    with pytest.raises(TraceError, match="the trace has ended"):
        first.adopt(child.records())
    assert _said(first) == "[]"


def test_an_operation_left_inside_another_trace_does_not_change_what_that_records():
    """A generator that is no traced one holds its operation open over a `yield`."""

    def held():
        with operation("held"):
            yield

    with trace() as first:
        items = held()
        next(items)
        with trace() as second:
            next(items, None)
            assert current_recorder() is second
            inner("the second's")
    assert [one.name for one in first.graph.operations.values()] == ["held"]
    assert [one.name for one in second.graph.operations.values()] == ["inner"]


def test_an_operation_left_inside_another_one_is_not_returned_to():
    def held():
        with operation("held"):
            yield

    with trace():
        items = held()
        next(items)
        with operation("reader"):
            items.close()
        assert current_operation() is None
        with operation("outer") as outer:
            with operation("asker"):
                items = held()
                next(items)
            items.close()
            assert current_operation() is outer


def test_what_a_task_records_after_its_operation_ended_stays_inside_that():
    async def work(ended):
        await ended.wait()
        for _ in range(2):
            inner("late")

    async def main():
        ended = asyncio.Event()
        with operation("answer"):
            task = asyncio.create_task(work(ended))
            await asyncio.sleep(0)
        ended.set()
        await task

    with trace() as recorder:
        asyncio.run(main())
    answer, *late = recorder.graph.operations.values()
    assert [one.parent for one in late] == [answer.id] * 2


def test_a_trace_left_inside_another_does_not_end_that():
    def held():
        with trace():
            yield

    items = held()
    next(items)
    with trace() as recorder:
        items.close()
        assert current_recorder() is recorder
        inner("the second's")
    assert len(recorder.graph.operations) == 1


def test_what_changes_over_the_end_of_a_trace_is_left_alone():
    store = {"city": "Lima"}
    with trace() as first:
        changing = change(store, name="store")
        changing.__enter__()
    before = _said(first)
    with trace() as second:
        store["city"] = SECRET
        changing.__exit__(None, None, None)
    assert _said(first) == before
    assert _said(second) == "[]"


def test_a_variable_of_another_trace_given_as_input_brings_its_value_and_nothing_of_its_past():
    with trace(prefix="a") as first:
        old = variable(SECRET, name="x")
        new = variable("new", name="x", previous=old)
    with trace(prefix="b") as second, operation("step", inputs={"x": new}):
        pass
    assert len(first.graph.variables) == 2
    (taken,) = second.graph.variables.values()
    assert (taken.value, taken.previous) == ("new", None)
    assert SECRET not in _said(second)
