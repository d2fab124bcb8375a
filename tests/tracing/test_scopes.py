"""Contexts, changes and links: what is recorded belongs where it happened, and only there."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import itertools
import json
import multiprocessing
import pickle
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from tracing import (
    Redaction,
    TraceError,
    attributes,
    bind,
    change,
    current_operation,
    hand_over,
    link,
    load_trace,
    operation,
    paused,
    session,
    take_over,
    trace,
    traced,
    variable,
)


@traced()
def shout(text):
    return text.upper() + "!"


def only(recorder, name):
    (found,) = recorder.graph.find_operations(name=name)
    return found


def values(graph, ids):
    return [graph.variables[vid].value for vid in ids]


# --- generators ------------------------------------------------------------------------------------------------------


@traced()
def words(text):
    for word in text.split():
        shout(word)
        yield word
    return "the end"


@traced()
async def words_later(text):
    for word in text.split():
        await asyncio.sleep(0)
        shout(word)
        yield word


async def all_of(items):
    return [item async for item in items]


def test_what_a_generator_yields_and_returns_is_recorded_and_what_it_does_is_inside_it():
    returned = []

    def outer():
        returned.append((yield from words("one two three")))

    with trace() as recorder:
        made = []
        for word in outer():
            made.append(word)
            assert current_operation() is None
    assert returned == ["the end"]
    run = only(recorder, "words")
    assert made == values(recorder.graph, run.output_ids("item")) == ["one", "two", "three"]
    assert values(recorder.graph, run.output_ids("result")) == ["the end"]
    assert values(recorder.graph, run.input_ids("text")) == ["one two three"]
    assert run.status == "ok"
    assert {one.parent for one in recorder.graph.find_operations(name="shout")} == {run.id}


def test_what_a_step_inside_a_generator_made_keeps_its_variable_when_it_is_yielded():
    @traced()
    def steps():
        store = ["a"]
        yield shout("made inside")
        yield store
        store.append("b")
        yield store

    with trace() as recorder:
        made = list(steps())
    run = only(recorder, "steps")
    first, second, third = run.output_ids("item")
    assert first == only(recorder, "shout").output_ids()[0]
    assert [recorder.graph.variables[vid].version for vid in (second, third)] == [1, 2]
    assert recorder.graph.variables[second].value == ["a"]
    assert made[1] is made[2]


def test_a_generator_of_very_many_items_is_settled_in_linear_time():
    def seconds(count):
        with trace() as recorder:
            for _ in many(count):
                pass
        begun = time.process_time()
        assert len(only(recorder, "many").outputs) == count
        return time.process_time() - begun

    @traced()
    def many(count):
        yield from (f"item {number}" for number in range(count))

    seconds(100)
    assert seconds(32_000) < 100 * max(seconds(2_000), seconds(2_000))


def test_an_async_generator_is_recorded_alike():
    async def main():
        assert current_operation() is None
        made = await all_of(words_later("one two"))
        assert current_operation() is None
        return made

    with trace() as recorder:
        assert asyncio.run(main()) == ["one", "two"]
    run = only(recorder, "words_later")
    assert values(recorder.graph, run.output_ids("item")) == ["one", "two"]
    assert {one.parent for one in recorder.graph.find_operations(name="shout")} == {run.id}
    assert (run.status, run.ended is not None) == ("ok", True)


def test_a_generator_left_early_ends_well_and_one_that_raises_ends_in_error():
    cleaned = []

    @traced()
    def steps():
        try:
            yield "first"
            raise ValueError("no second")
        finally:
            cleaned.append(True)

    @traced()
    async def steps_later():
        try:
            yield "first"
            raise ValueError("no second")
        finally:
            cleaned.append(True)

    async def early():
        items = steps_later()
        assert await anext(items) == "first"
        await items.aclose()

    with trace() as recorder:
        next(items := steps())
        items.close()
        with pytest.raises(ValueError, match="no second"):
            list(steps())
        asyncio.run(early())
        with pytest.raises(ValueError, match="no second"):
            asyncio.run(all_of(steps_later()))
    assert len(cleaned) == 4
    ended = [(one.status, one.error) for one in recorder.graph.operations.values()]
    assert ended == [("ok", None), ("error", "ValueError: no second")] * 2


def test_values_and_exceptions_sent_into_a_generator_reach_it():
    @traced()
    def echo():
        sent = yield "ready"
        try:
            sent = yield f"got {sent}"
        except KeyError:
            yield "caught"

    @traced()
    async def echo_later():
        sent = yield "ready"
        try:
            sent = yield f"got {sent}"
        except KeyError:
            yield "caught"

    async def talk():
        items = echo_later()
        return [await items.asend(None), await items.asend("x"), await items.athrow(KeyError())]

    def both():
        items = echo()
        return [items.send(None), items.send("x"), items.throw(KeyError())], asyncio.run(talk())

    with trace():
        recorded = both()
    assert recorded == both() == (["ready", "got x", "caught"],) * 2


def test_a_generator_that_outlives_its_trace_goes_on():
    with trace() as recorder:
        items = words("one two")
        next(items)
    assert list(items) == ["two"]
    assert only(recorder, "words").status == "open"


def test_several_futures_that_are_returned_are_recorded_by_their_results():
    def say(text):
        time.sleep(0.02 if text == "slow" else 0)
        return int(text) if text == "no" else text

    with ThreadPoolExecutor(2) as pool, trace() as recorder:

        @traced()
        def listed(*texts):
            return [pool.submit(say, text) for text in texts]

        @traced()
        def named(*texts):
            return {text: pool.submit(say, text) for text in texts}

        @traced()
        async def tasks(*texts):
            return tuple(asyncio.ensure_future(asyncio.to_thread(say, text)) for text in texts)

        def made_by(name):
            operation = recorder.graph.find_operations(name=name)[-1]
            return operation.status, [recorder.graph.variables[vid].value for vid in operation.output_ids()]

        async def work():
            assert [await task for task in await tasks("slow", "c")] == ["slow", "c"]
            assert made_by("tasks") == ("ok", [["slow", "c"]])

        assert [future.result() for future in listed("slow", "b")] == ["slow", "b"]
        assert made_by("listed") == ("ok", [["slow", "b"]])
        assert [future.result() for future in named("slow", "d").values()] == ["slow", "d"]
        assert made_by("named") == ("ok", [{"slow": "slow", "d": "d"}])
        wait(listed("slow", "no"))
        assert made_by("listed") == ("error", [])
        assert listed() == []
        assert made_by("listed")[0] == "ok"
        asyncio.run(work())


def test_a_future_that_is_returned_is_recorded_by_its_result_before_who_waits_for_it_goes_on():
    def slow_elsewhere():
        time.sleep(0.05 if threading.current_thread() is not threading.main_thread() else 0)
        return 0.0

    with ThreadPoolExecutor(1) as pool, trace(clock=slow_elsewhere) as recorder:

        def say(text):
            with operation("said"):
                return int(text) if text == "no" else text

        @traced()
        def thread(text):
            return pool.submit(bind(say), text)

        @traced()
        def at_once(text):
            future = Future()
            future.set_result(text)
            return future

        @traced()
        def task(text):
            return asyncio.ensure_future(asyncio.to_thread(say, text))

        @traced()
        async def later(text):
            return task.__wrapped__(text)

        def made_by(name):
            operation = recorder.graph.find_operations(name=name)[-1]
            values = [recorder.graph.variables[vid].value for vid in operation.output_ids()]
            return operation.status, values, operation.error

        async def work():
            await task("a")
            assert made_by("task") == ("ok", ["a"], None)
            await (await later("b"))
            assert made_by("later") == ("ok", ["b"], None)
            told = []
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context["message"]))
            task("no")
            while not told:
                await asyncio.sleep(0.01)
                gc.collect()
            assert (made_by("task")[0], told) == ("error", ["Task exception was never retrieved"])

        at_once("c")
        assert made_by("at_once") == ("ok", ["c"], None)
        assert thread("d").result() == "d"
        assert made_by("thread") == ("ok", ["d"], None)
        with pytest.raises(ValueError, match="invalid literal"):
            thread("no").result()
        assert made_by("thread")[:2] == ("error", [])
        gate = threading.Event()
        pool.submit(gate.wait)
        assert made_by("thread")[0] == "error"
        waiting = thread("e")
        assert made_by("thread") == ("open", [], None)
        waiting.cancel()
        gate.set()
        assert made_by("thread") == ("error", [], "CancelledError")
        asyncio.run(work())
    inner = {one.parent for one in recorder.graph.find_operations(name="said")}
    assert inner <= {one.id for one in recorder.graph.operations.values() if one.name in ("thread", "task", "later")}


def test_what_a_plain_function_returns_to_be_run_later_is_recorded_while_it_runs():
    @traced()
    def word_stream(text):
        return (shout(word) for word in text.split())

    @traced()
    def later_stream(text):
        return words_later(text)

    @traced()
    def promise(text):
        return broken(text) if text == "no" else all_of(words_later(shout(text)))

    async def broken(text):
        raise ValueError(text)

    async def work():
        assert [word async for word in later_stream("c d")] == ["c", "d"]
        with pytest.raises(ValueError, match="no"):
            await promise("no")
        return await promise("e")

    @traced()
    def passed_on(stream):
        return stream

    given = iter(shout(word) for word in ("x", "y"))
    with trace() as recorder:
        assert list(word_stream("a b")) == ["A!", "B!"]
        assert asyncio.run(work()) == ["E!"]
        for _ in passed_on(given):
            break
        assert list(given) == ["Y!"], "a stream that belongs to somebody else was closed"
    graph = recorder.graph
    names = {one.name: one for one in graph.operations.values()}
    outputs = {name: [(role, graph.variables[vid].value) for role, vid in one.outputs] for name, one in names.items()}
    assert outputs["word_stream"] == [("item", "A!"), ("item", "B!")]
    assert outputs["later_stream"] == [("item", "c"), ("item", "d")]
    assert [one.error for one in graph.find_operations(name="promise")] == ["ValueError: no", None]
    inside = {graph.operations[one.parent].name for one in graph.find_operations(name="shout") if one.parent}
    assert inside == {"word_stream", "promise", "words_later"}


def test_a_decorator_without_its_brackets_is_told_so():
    with pytest.raises(TypeError, match=r"write @traced\(\) with its brackets above tell"):

        @traced
        def tell(text): ...

    @operation
    def say(text): ...

    with pytest.raises(TypeError, match=r'write @operation\("name"\) above say'):
        say("x")


def test_what_has_no_name_of_its_own_can_be_decorated():
    with trace() as recorder:
        assert traced()(functools.partial(pow, 2))(5) == 32
    assert [one.name for one in recorder.graph.operations.values()] == ["pow"]


def test_decorated_generators_stay_generators():
    import inspect

    assert inspect.isgeneratorfunction(words)
    assert inspect.isasyncgenfunction(words_later)


# --- decorating ------------------------------------------------------------------------------------------------------


def test_class_and_static_methods_and_an_operation_as_decorator_are_recorded():
    class Store:
        @traced()
        @classmethod
        def make(cls, name):
            return name

        @classmethod
        @traced()
        def make_too(cls, name):
            return name

        @traced()
        @staticmethod
        def check(name, strictly=False):
            return name

    @operation("tidy", kind="llm", step=1)
    def clean(text):
        return text

    with trace() as recorder:
        Store.make("a name")
        Store().make_too("a name")
        Store.check("a name", strictly=True)
        clean(text="a text")
    given = [[role for role, _ in one.inputs] for one in recorder.graph.operations.values()]
    assert given == [["name"], ["name"], ["name", "strictly"], ["text"]]
    tidied = only(recorder, "tidy")
    assert (tidied.kind, tidied.attributes) == ("llm", {"step": 1})


def test_a_list_of_variables_returned_is_one_result_each():
    @traced()
    def extract():
        return [current_operation().output("fact", text) for text in ("tea", "milk")]

    with trace() as recorder:
        facts = extract()
    made = only(recorder, "extract")
    assert made.output_ids("fact") == made.output_ids("result") == [fact.id for fact in facts]


# --- changes and links -----------------------------------------------------------------------------------------------


def test_a_change_in_place_is_a_new_version_with_the_operation_that_made_it_between():
    with trace() as recorder, operation("update") as op:
        store = {"city": "Lima"}
        with change(store, name="store", kind="memory_entry", by="move", reason="moved"):
            store["city"] = "Oslo"
        with change(store):
            pass
        with contextlib.suppress(RuntimeError), change(store):
            store["city"] = "Rome"
            raise RuntimeError
    graph = recorder.graph
    moved = only(recorder, "move")
    first, second = graph.variables[moved.input_ids("before")[0]], graph.variables[moved.output_ids("after")[0]]
    assert (first.value, second.value) == ({"city": "Lima"}, {"city": "Oslo"})
    assert (second.version, second.previous, second.name, second.kind) == (2, first.id, "store", "memory_entry")
    assert (moved.parent, moved.kind, moved.attributes) == (op.id, "change", {"reason": "moved"})
    unchanged, failed = graph.find_operations(name="change")
    assert (unchanged.input_ids(), unchanged.outputs) == ([second.id], ())
    assert failed.status == "error"
    assert [one.value["city"] for one in graph.versions(first.id)] == ["Lima", "Oslo", "Rome"]
    (last,) = failed.output_ids()
    assert {one.name for one in graph.backward_slice(last).operations.values()} == {"move", "change"}


def test_a_link_connects_two_variables_and_nothing_else():
    text = "some long text"
    with trace() as recorder:
        source, target = variable(text, name="a"), variable("other", name="b")
        link(source, target, why="seen")
        link(text, [1, 2], name="counted")
    (linked,) = recorder.graph.find_operations(kind="link", name="link")
    assert (linked.input_ids(), linked.output_ids(), linked.attributes) == ([source.id], [target.id], {"why": "seen"})
    assert recorder.graph.producers(target.id) == [linked]
    assert only(recorder, "counted").input_ids() == [source.id]


def test_without_a_trace_changes_links_and_attributes_do_nothing():
    store = []
    with attributes(user="ann"), paused(), change(store) as op:
        store.append(1)
        link("a", "b")
    assert (store, op.id, hand_over()) == ([1], "", None)
    with take_over(None) as recorder:
        assert recorder is None


def test_strict_recording_refuses_what_changed_unseen_and_shows_the_difference():
    with trace(strict=True) as recorder:
        store = {"city": "Lima", "key": "api_key", "api_key": "hidden"}
        made = variable(store, name="store")
        with operation("read", inputs={"store": store}):
            pass
        with change(store):
            store["age"] = 3
        with operation("read", inputs={"store": store}):
            store["city"] = "Rome"
            op2_out = current_operation().output("store", store)
        store["city"] = "Oslo"
        with pytest.raises(TraceError, match="changed since it was recorded") as caught:
            shout(store)
        with pytest.raises(TraceError), operation("read", inputs={"store": [store, made]}):
            pass
    assert f"'store' ({op2_out.id})" in str(caught.value)
    assert '-  "city": "Rome"' in str(caught.value)
    assert '+  "city": "Oslo"' in str(caught.value)
    assert "hidden" not in str(caught.value)
    assert only(recorder, "change").status == "ok"


# --- attributes, pauses, folding -------------------------------------------------------------------------------------


def test_attributes_are_inherited_by_what_is_recorded_inside_in_tasks_and_bound_threads():
    async def later():
        await asyncio.sleep(0)
        with operation("task"):
            pass

    def in_thread():
        with operation("thread"):
            pass

    with trace() as recorder:
        with (
            attributes(tenant="t", user="outer"),
            attributes(user="ann", token="sk-abcdefgh12345"),
            session("D1", user="own"),
        ):
            shout("text")
            asyncio.run(later())
            thread = threading.Thread(target=bind(in_thread))
            thread.start()
            thread.join()
            with operation("own", user="bo") as op:
                op.output("x", "a value", extra=1)
        variable("outside", name="outside")
    inherited = {"tenant": "t", "user": "ann", "token": "[redacted]"}
    graph = recorder.graph
    assert [one.attributes for one in graph.operations.values()] == [*[inherited] * 3, {**inherited, "user": "bo"}]
    assert [one.attributes for one in graph.sessions.values()] == [{**inherited, "user": "own"}]
    *made, own, outside = (one.attributes for one in graph.variables.values())
    assert made == [inherited, inherited]
    assert own == {**inherited, "extra": 1}
    assert outside == {}
    only(recorder, "task").attributes["mine"] = 1
    assert "mine" not in only(recorder, "thread").attributes


def test_nothing_is_recorded_while_paused_and_everything_after():
    async def later():
        shout("task")

    with trace() as recorder, operation("outer") as op:
        with paused():
            shout("unseen")
            asyncio.run(later())
            assert current_operation() is None
            with session("D1"), change([]):
                pass
        assert current_operation() is op
        shout("seen")
    assert [one.name for one in recorder.graph.operations.values()] == ["outer", "shout"]
    assert recorder.graph.sessions == {}


def test_one_operation_covers_its_steps_with_what_they_read_from_outside_and_what_they_make():
    with trace() as recorder:
        text = "a long message"
        message = variable(text, name="m")
        with operation("ingest", fold=True) as whole:
            with operation("extract", inputs={"message": message}) as step:
                fact = step.output("fact", "a fact")
                step.record_call(model="m", prompt_tokens=3)
                assert step.id == whole.id
            with operation("store", inputs={"fact": fact}) as step, operation("inner", inputs={"again": text}):
                step.output("entry", "an entry")
            shout("aside")
        shout("outside")
    ingest = only(recorder, "ingest")
    graph = recorder.graph
    assert [one.name for one in graph.operations.values()] == ["ingest", "shout"]
    assert ingest.inputs[0] == ("message", message.id)
    assert values(graph, ingest.input_ids()) == ["a long message", "aside"]
    assert [(role, graph.variables[vid].value) for role, vid in ingest.outputs] == [
        ("fact", "a fact"),
        ("entry", "an entry"),
        ("result", "ASIDE!"),
    ]
    assert ingest.attributes == {"steps": ["extract", "store", "inner", "shout"]}
    assert (ingest.calls, ingest.prompt_tokens, ingest.status) == (1, 3, "ok")
    assert list(graph.backward_slice(ingest.output_ids("entry")[0]).operations) == [ingest.id]


@pytest.mark.parametrize("given", [3, "train", ["first"]])
def test_the_steps_of_a_folded_operation_take_the_place_of_an_attribute_of_that_name(given: object, tmp_path: Path):
    path = tmp_path / "t.jsonl"
    with trace(path), attributes(steps=given):
        for _ in range(2):
            with operation("ingest", fold=True):
                shout("text")
        with operation("own", steps=given, fold=True):
            shout("text")
    assert [one.attributes for one in load_trace(path).graph.operations.values()] == [{"steps": ["shout"]}] * 3


# --- many at once ----------------------------------------------------------------------------------------------------


def converse(number):
    with attributes(conversation=number), session(f"conversation {number}"), operation("turn") as op:
        for turn in range(3):
            shout(f"text {turn} of {number}")
        return op.id


async def converse_later(number):
    with attributes(conversation=number), session(f"conversation {number}"), operation("turn") as op:
        for turn in range(3):
            await asyncio.sleep(0)
            await asyncio.to_thread(shout, f"text {turn} of {number}")
        return op.id


def check_unmixed(graph, ids):
    assert len(graph.operations) == 64 * 4
    for number, oid in enumerate(ids):
        turn = graph.operations[oid]
        assert turn.attributes == {"conversation": number}
        assert graph.sessions[turn.session].name == f"conversation {number}"
        inside = [one for one in graph.operations.values() if one.parent == oid]
        assert len(inside) == 3
        for one in inside:
            assert (one.session, one.attributes) == (turn.session, turn.attributes)
            (text,) = values(graph, one.input_ids())
            assert text.endswith(f" of {number}")
            assert values(graph, one.output_ids()) == [text.upper() + "!"]
            made = [graph.variables[vid] for vid in (*one.input_ids(), *one.output_ids())]
            assert {(each.session, each.attributes["conversation"]) for each in made} == {(turn.session, number)}


@pytest.mark.parametrize("how", ["threads", "asyncio"])
def test_sixty_four_conversations_at_once_do_not_mix(how: str, tmp_path: Path):
    path = tmp_path / "t.jsonl"
    with trace(path) as recorder:
        if how == "threads":
            with ThreadPoolExecutor(64) as pool:
                ids = list(pool.map(bind(converse), range(64)))
        else:

            async def main():
                return await asyncio.gather(*(converse_later(number) for number in range(64)))

            ids = asyncio.run(main())
    check_unmixed(recorder.graph, ids)
    check_unmixed(load_trace(path).graph, ids)


def work_elsewhere(given, item):
    given = json.loads(json.dumps(given))
    with take_over(given) as recorder, operation("work", inputs={"item": item}) as op:
        shout(f"text {item.value}")
        op.output("done", f"done {item.value}", previous=item)
    return recorder.records()


def test_a_variable_can_be_pickled_before_anybody_has_looked_at_it():
    with trace():
        item = variable("text", name="item")
        assert pickle.loads(pickle.dumps(item)) == item  # noqa: S301


def test_a_process_pool_records_as_part_of_the_place_that_handed_over(tmp_path: Path):
    path = tmp_path / "t.jsonl"
    with (
        trace(path, prefix="x") as recorder,
        attributes(user="ann"),
        session("D1") as stage,
        operation("fan out") as op,
        ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool,
    ):
        items = [variable(number, name="item", kind="given") for number in range(4)]
        for done in [pool.submit(work_elsewhere, hand_over(), item) for item in items]:
            recorder.adopt(done.result())
    for graph in (recorder.graph, load_trace(path).graph):
        works = graph.find_operations(name="work", session="D1")
        assert [one.parent for one in works] == [op.id] * 4
        assert [one.input_ids() for one in works] == [[item.id] for item in items]
        assert {one.session for one in graph.variables.values()} == {stage.id}
        assert {one.attributes["user"] for one in graph.operations.values() if one.id != op.id} == {"ann"}
        assert [graph.variables[vid].value for item in items for vid in [graph.latest(item.id).id]] == [
            f"done {number}" for number in range(4)
        ]
    with pytest.raises(TraceError, match="not the values of a hand_over"), take_over({"prefix": "x"}):
        pass


@pytest.mark.parametrize("prefix", ["", "x"])
def test_work_handed_over_in_a_recording_that_is_built_on_gets_ids_of_its_own(prefix: str):
    def recorded(earlier, text):
        with trace(prefix=prefix) as recorder:
            recorder.adopt(earlier)
            with take_over(hand_over()) as child:
                shout(text)
            recorder.adopt(child.records())
        return recorder

    first = recorded([], "first")
    second = recorded(first.records(), "second")
    assert [one.value for one in second.graph.variables.values()] == ["first", "FIRST!", "second", "SECOND!"]


# --- redaction -------------------------------------------------------------------------------------------------------


def test_keys_patterns_and_a_function_take_out_what_may_not_be_recorded_before_anything_is_kept(tmp_path: Path):
    def names(text):
        if "explode" in text:
            raise ValueError
        return text.replace("Ann", "<name>")

    path = tmp_path / "t.jsonl"
    rules = Redaction(keys=("ssn",), patterns=(r"\d{3}-\d{4}",), function=names, longest=50, most_items=3)
    with trace(path, redaction=rules) as recorder, session("with Ann"):
        variable({"SSN": "12", "note": "call 555-1234", "list": [1, 2, 3, 4, 5]}, name="Ann's")
        with pytest.raises(ValueError, match="Ann"), operation("step", who="Ann"):
            raise ValueError("Ann said no")
        variable("explode, Ann", name="x")
        variable("long " * 100, name="long")
        variable(dict.fromkeys("abcde", 1), name="wide")
        shout("Ann has sk-abcdefgh12345")
        with trace() as inner:
            variable("Ann, elsewhere", name="e")
        recorder.adopt([{**record, "id": "e1"} for record in inner.records()])
    first, exploded, long, wide, *_ = (one.value for one in recorder.graph.variables.values())
    assert first == {"SSN": "[redacted]", "note": "call [redacted]", "list": [1, 2, 3, "… [2 more]"]}
    assert exploded == "[redacted]"
    assert long == ("long " * 10) + "… [450 more characters]"
    assert wide == {"a": 1, "b": 1, "c": 1, "…": "2 more"}
    for text in (path.read_text(), json.dumps(recorder.records())):
        assert not any(secret in text for secret in ("Ann", "555-1234", "abcdefgh"))
    assert load_trace(path).graph.variables == recorder.graph.variables


def test_what_is_named_like_a_secret_is_hidden_whatever_it_is_and_wherever_it_was_recorded():
    with trace(prefix="e") as elsewhere:
        made = variable("123456789", name="ssn")
    with trace(redaction=Redaction(keys=("ssn",))) as recorder:
        with operation("login", inputs={"user": "ann", "password": b"hunter2"}) as op:
            op.output("ssn", 123456789)
        variable([], name="password")
        with take_over(hand_over()) as child:
            variable("123456789", name="ssn")
        recorder.adopt(child.records())
        with operation("check", inputs={"given": made}):
            pass
    found = [(one.name, one.value) for one in recorder.graph.variables.values()]
    hidden = ("ssn", "[redacted]")
    assert found == [("user", "ann"), ("password", "[redacted]"), hidden, ("password", []), hidden, hidden]
    assert elsewhere.graph.variables[made.id].value == "123456789"


def test_a_secret_object_is_one_variable_and_no_refusal_shows_it():
    with trace(strict=True) as recorder:
        words, later = ["hunter2"], []
        variable(later, name="password")
        with operation("choose") as op:
            op.output("password", words)
            op.output("x", later, name="password")
        with operation("use", inputs={"it": words}) as op:
            op.use("again", words)
        later.append("hunter3")
        with pytest.raises(TraceError, match="changed since") as refused, operation("use", inputs={"it": later}):
            pass
    assert "hunter" not in f"{refused.value} {recorder.records()}"
    assert len(set(only(recorder, "use").input_ids())) == 1


def test_a_variable_handed_out_shows_no_secret_even_before_anybody_looked_at_the_graph():
    with trace() as recorder:
        made = variable("use sk-abcdefgh12345", name="v")
        with operation("step") as op:
            output = op.output("x", "use sk-abcdefgh12345")
        assert made.value == output.value == "use [redacted]"
        assert made == recorder.graph.variables[made.id]
        assert "sk-" not in repr(made)


def test_a_variable_is_whole_for_whoever_reads_it_while_another_thread_settles():
    settling, go_on = threading.Event(), threading.Event()

    def slow(text):
        settling.set()
        go_on.wait(10)
        return text

    with trace(redaction=Redaction(function=slow)) as recorder, ThreadPoolExecutor(2) as pool:
        made = variable("text", name="v")
        pool.submit(recorder.settle)
        assert settling.wait(10)
        reading = pool.submit(lambda: made.value)
        wait([reading], timeout=0.1)
        go_on.set()
        assert reading.result(10) == "text"


def test_an_interrupt_while_the_graph_grows_is_raised_and_nothing_is_lost():
    def recorded(interrupted_at):
        texts = itertools.count()

        def clean(text):
            if next(texts) == interrupted_at:
                raise KeyboardInterrupt
            return text

        with trace(redaction=Redaction(function=clean)) as recorder:
            given = variable("a message", name="m", by="ann")
            with operation("outer"), operation("ingest", fold=True, inputs={"it": [given], "how": "well"}):
                with operation("extract", inputs={"it": given}) as op:
                    op.output("fact", ["a fact"], at="noon")
                shout("aside")
            if interrupted_at is not None:
                with pytest.raises(KeyboardInterrupt):
                    _ = recorder.graph
            graph = recorder.graph
        names = {vid: (one.name, one.value, one.attributes) for vid, one in graph.variables.items()}
        return (
            list(names.values()),
            [
                (
                    *(one.name, one.status, dict(one.attributes), one.parent is not None),
                    *((role, names[vid]) for role, vid in (*one.inputs, *one.outputs)),
                )
                for one in graph.operations.values()
            ],
            next(texts),
        )

    *undisturbed, count = recorded(None)
    for at in range(count):
        *found, _ = recorded(at)
        assert found == undisturbed, at


def test_a_redaction_function_that_is_traced_itself_ends():
    @traced()
    def clean(text):
        return text.upper()

    with trace(redaction=Redaction(function=clean)) as recorder:
        variable("text", name="v")
    assert [one.value for one in recorder.graph.variables.values()] == ["TEXT"]
    assert recorder.graph.operations == {}
