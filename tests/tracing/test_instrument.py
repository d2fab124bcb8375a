"""One line records the calls of other people's clients, and changes nothing of what they do."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor, wait

import anthropic
import httpx2
import openai
import pytest
from mem0_model import Mem0Model, decide
from scripted_server import Reply, ScriptedServer
from streaming_server import streaming_server

from tracing import answered, attributes, bind, instrument, operation, paused, session, trace, traced, variable
from tracing.errors import ConfigError

KEY = "sk-abcdefgh12345678"
ASKED = [{"role": "user", "content": f"Who am I? My key is {KEY}."}]


@pytest.fixture
def client(scripted_server: ScriptedServer) -> openai.OpenAI:
    scripted_server.script = lambda body: "You are Mara."
    return openai.OpenAI(base_url=scripted_server.base_url, api_key=KEY, max_retries=0)


def ask(client, **more):
    return client.chat.completions.create(model="scripted", messages=ASKED, **more)


def values(graph, ids):
    return [graph.variables[vid].value for vid in ids]


def test_a_call_is_part_of_the_operation_that_makes_it(client: openai.OpenAI):
    with instrument.openai(prices={"scripted": (1e6, 2e6)}), trace() as recorder, operation("answer") as op:
        text = ask(client, temperature=0.5).choices[0].message.content
        op.output("answer", "short")
        with operation("judge", inputs={"reply": text}) as judge:
            pass
    assert text == "You are Mara."
    graph = recorder.graph
    answer = graph.operations[op.id]
    assert (answer.calls, answer.model, answer.prompt_tokens, answer.completion_tokens) == (1, "scripted", 7, 3)
    assert answer.cost == 7 + 6
    (request,) = (graph.variables[vid] for vid in answer.input_ids())
    (reply,) = (graph.variables[vid] for vid in answer.output_ids("reply"))
    assert request.value == [{"role": "user", "content": "Who am I? My key is [redacted]."}]
    assert request.attributes == {"model": "scripted", "temperature": 0.5}
    assert (reply.value, reply.attributes) == ("You are Mara.", {"finish_reason": "stop"})
    # The reply is linked where its text goes on, by object.
    assert graph.operations[judge.id].input_ids() == [reply.id]
    assert KEY not in json.dumps(recorder.records())


def test_a_call_outside_of_any_operation_is_one_of_its_own(client: openai.OpenAI):
    with instrument.openai(client), trace() as recorder, session("D1") as stage, attributes(user="ann"):
        ask(client)
        client.embeddings.create(model="scripted", input=["a", "b"], encoding_format="float")
        client.models.list()
    chat, embed = recorder.graph.operations.values()
    assert (chat.name, chat.kind, chat.calls, chat.session, chat.status) == ("chat", "llm", 1, stage.id, "ok")
    assert (embed.name, embed.prompt_tokens, embed.attributes) == ("embed", 2, {"user": "ann"})
    assert values(recorder.graph, embed.output_ids()) == [{"embeddings": 2, "dimensions": 64}]


def test_a_call_that_fails_raises_as_before_and_is_told(client: openai.OpenAI, scripted_server: ScriptedServer):
    scripted_server.script = lambda body: Reply("no such thing", status=400)
    with instrument.openai(), trace() as recorder:
        for _ in range(2):
            with pytest.raises(openai.BadRequestError):
                ask(client)
        with operation("answer"):
            for _ in range(2):
                with pytest.raises(openai.BadRequestError):
                    ask(client)
    first, second, answer = recorder.graph.operations.values()
    assert [one.status for one in (first, second, answer)] == ["error", "error", "ok"]
    assert "no such thing" in first.error
    assert len(answer.attributes["failed_calls"]) == 2
    assert all("no such thing" in said for said in answer.attributes["failed_calls"])
    assert answer.calls == 0


def test_async_calls_in_many_tasks_belong_each_to_their_own(scripted_server: ScriptedServer):
    scripted_server.script = lambda body: body["messages"][0]["content"].upper()

    async def one(client, number):
        with operation("answer", number=number):
            await client.chat.completions.create(
                model="scripted", messages=[{"role": "user", "content": f"question {number}"}]
            )

    async def main():
        async with openai.AsyncOpenAI(base_url=scripted_server.base_url, api_key=KEY) as client:
            await asyncio.gather(*(one(client, number) for number in range(12)))

    with instrument.openai(), trace() as recorder:
        asyncio.run(main())
    for answer in recorder.graph.operations.values():
        assert values(recorder.graph, answer.output_ids()) == [f"QUESTION {answer.attributes['number']}"]
        assert answer.calls == 1


def test_a_call_of_a_task_that_outlives_its_operation_is_one_of_its_own_inside_it(scripted_server: ScriptedServer):
    scripted_server.script = lambda body: "You are Mara."

    async def main():
        async with openai.AsyncOpenAI(base_url=scripted_server.base_url, api_key=KEY) as client:
            ended = asyncio.Event()

            async def save():
                await ended.wait()
                return await ask(client)

            with operation("answer") as op:
                saving = asyncio.create_task(save())
                op.output("answer", "short")
            ended.set()
            return (await saving).choices[0].message.content

    with instrument.openai(), trace() as recorder:
        assert asyncio.run(main()) == "You are Mara."
    answer, chat = recorder.graph.operations.values()
    assert (answer.name, answer.calls, answer.input_ids()) == ("answer", 0, [])
    assert (chat.name, chat.calls, chat.parent, chat.status) == ("chat", 1, answer.id, "ok")


@pytest.fixture
def streaming():
    with streaming_server() as base_url:
        yield base_url


def test_a_streamed_reply_is_recorded_when_it_ends_whoever_reads_it(streaming: str):
    async def later(client):
        with operation("async") as op:
            stream = await client.chat.completions.create(model="m", messages=ASKED, stream=True)
            return op.id, [chunk async for chunk in stream]

    client = openai.OpenAI(base_url=streaming, api_key=KEY)
    with instrument.openai(), trace() as recorder:
        with operation("read inside") as inside:
            assert len(list(ask(client, stream=True))) == 5
        alone = ask(client, stream=True)
        list(alone)
        with operation("read after") as after:
            stream = ask(client, stream=True)
        list(stream)
        with operation("left early") as early, ask(client, stream=True) as stream:
            next(iter(stream))
        later_id, chunks = asyncio.run(later(openai.AsyncOpenAI(base_url=streaming, api_key=KEY)))
        assert len(chunks) == 5
    graph = recorder.graph
    for oid in (inside.id, later_id):
        found = graph.operations[oid]
        assert values(graph, found.output_ids("reply")) == ["You are Mara."]
        assert (found.calls, found.prompt_tokens, found.completion_tokens, found.cost) == (1, 5, 3, 0.25)
    own, late = graph.find_operations(name="chat")
    assert values(graph, own.output_ids()) == values(graph, late.output_ids()) == ["You are Mara."]
    assert (late.parent, late.input_ids()) == (after.id, graph.operations[after.id].input_ids())
    assert graph.operations[after.id].calls == 0
    assert values(graph, graph.operations[early.id].output_ids("reply")) == ["You "]


def test_a_streamed_reply_keeps_its_tool_calls_and_its_choices_apart(streaming: str):
    client = openai.OpenAI(base_url=streaming, api_key=KEY)
    tools = [{"type": "function", "function": {"name": "find"}}]
    with instrument.openai(), trace() as recorder, operation("answer") as answer:
        list(ask(client, stream=True, tools=tools))
    ((first, second),) = (
        one["choices"] for one in values(recorder.graph, recorder.graph.operations[answer.id].output_ids("reply"))
    )
    assert first["tool_calls"] == [{"id": "t1", "name": "find", "arguments": '{"q": "x"}'}]
    assert second["content"] == "or else"


def test_it_can_be_undone_and_done_twice_without_counting_twice(client: openai.OpenAI):
    plain = openai.OpenAI.request
    first, second, third = instrument.openai(), instrument.openai(), instrument.openai(client)
    with trace() as recorder, operation("answer") as op:
        ask(client)
    assert recorder.graph.operations[op.id].calls == 1
    for one in (third, second, first, first):
        one.undo()
    assert openai.OpenAI.request is plain
    assert "request" not in vars(openai.OpenAI)
    with trace() as recorder, operation("answer") as op:
        ask(client)
    assert recorder.graph.operations[op.id].calls == 0


def test_raw_replies_and_calls_without_a_trace_are_left_as_they_are(client: openai.OpenAI):
    with instrument.openai(), trace() as recorder, operation("answer") as op:
        raw = client.chat.completions.with_raw_response.create(model="scripted", messages=ASKED)
        with client.chat.completions.with_streaming_response.create(model="scripted", messages=ASKED) as streamed:
            assert streamed.parse().choices[0].message.content == "You are Mara."
    assert raw.parse().choices[0].message.content == "You are Mara."
    answer = recorder.graph.operations[op.id]
    assert (answer.calls, answer.prompt_tokens) == (2, 7)
    with instrument.openai():
        assert ask(client).choices[0].message.content == "You are Mara."


def test_calls_through_memtunes_own_access_and_gateway_are_counted_once(open_access):
    access = open_access(cache=False)
    gateway = access.gateway()
    through = openai.OpenAI(base_url=gateway.base_url, api_key=gateway.key)
    with instrument.openai(), trace() as recorder:
        with operation("direct") as direct:
            access.task.chat([{"role": "user", "content": "a"}], max_tokens=5)
        with operation("through") as op, gateway.attached() as attached:
            ask(through.with_options(default_headers=attached.headers))
    calls = {one.name: one.calls for one in recorder.graph.operations.values()}
    assert calls == {"direct": 1, "through": 1}
    assert direct.id != op.id


# --- threads ---------------------------------------------------------------------------------------------------------


@traced()
def shout(text):
    return text.upper()


def test_threads_and_pools_record_where_they_were_started():
    with instrument.threads(), trace() as recorder, operation("outer") as op:
        thread = threading.Thread(target=shout, args=("thread",))
        thread.start()
        thread.join()
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(shout, [f"text {n}" for n in range(8)])) == [f"TEXT {n}" for n in range(8)]
    assert [one.parent for one in recorder.graph.find_operations(name="shout")] == [op.id] * 9
    with trace() as recorder, ThreadPoolExecutor(1) as pool:
        pool.submit(shout, "unbound").result()
    assert recorder.graph.operations == {}


def test_a_pool_that_was_first_used_in_a_trace_records_nothing_of_work_from_elsewhere():
    with instrument.threads(), ThreadPoolExecutor(1) as pool:
        with trace() as recorder:
            pool.submit(shout, "seen").result()
            with paused():
                pool.submit(shout, "unseen").result()
        assert pool.submit(shout, "after the trace").result() == "AFTER THE TRACE"
    assert [one.value for one in recorder.graph.variables.values()] == ["seen", "SEEN"]


# --- mem0 ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def own_memory(scripted_server: ScriptedServer):
    """A Mem0 as somebody else would set it up."""
    from experiments.systems.mem0 import library

    made = []

    def open_it(cls: str = "Memory"):
        scripted_server.script = Mem0Model(update=decide("UPDATE"))
        settings = {"api_key": KEY, "openai_base_url": scripted_server.base_url}
        memory = getattr(library.load(), cls).from_config(
            {
                "llm": {"provider": "openai", "config": {**settings, "model": "scripted"}},
                "embedder": {"provider": "openai", "config": {**settings, "model": "scripted", "embedding_dims": 64}},
                "vector_store": {
                    "provider": "qdrant",
                    "config": {"path": ":memory:", "collection_name": cls, "embedding_model_dims": 64},
                },
                "history_db_path": ":memory:",
            }
        )
        made.append(memory)
        return memory

    yield open_it
    for memory in made:
        library.close(memory)


def check_mem0(recorder, after):
    graph = recorder.graph
    names = [one.name for one in graph.operations.values()]
    assert names == [
        *("add", "extract_facts", "update_memory", "decide_update", "store"),
        *("add", "extract_facts", "update_memory", "decide_update", "store"),
        "retrieve",
    ]
    adds, stores = graph.find_operations(name="add"), graph.find_operations(name="store")
    assert [one.parent for one in stores] == [one.id for one in adds]
    assert [one.calls for one in graph.find_operations(kind="llm")] == [1, 1, 1, 1]
    first, second = (graph.variables[one.output_ids("entry")[0]] for one in stores)
    assert (first.value, second.value) == ("I live in Lima.", "I live in Oslo.")
    assert (second.previous, second.version, second.kind) == (first.id, 2, "memory_entry")
    (context,) = (graph.variables[vid] for vid in graph.find_operations(name="retrieve")[0].output_ids("context"))
    assert (context.value, context.attributes["entry"], context.attributes["rank"]) == (after, second.id, 1)
    behind = graph.backward_slice(context.id)
    assert {one.kind for one in behind.variables.values()} >= {"message", "fact", "memory_entry", "query", "prompt"}
    assert KEY not in json.dumps(recorder.records())


def test_one_line_records_a_mem0_as_memtunes_own_system_is_recorded(own_memory):
    memory, beside = own_memory(), own_memory()
    with instrument.mem0(memory), trace() as recorder:
        memory.add("I live in Lima.", user_id="u")
        memory.add([{"role": "user", "content": "I live in Oslo."}], user_id="u")
        found = memory.search("Where?", user_id="u")["results"]
        beside.add("I am not recorded.", user_id="u")
    check_mem0(recorder, found[0]["memory"])
    assert not [one for one in recorder.graph.variables.values() if "not recorded" in str(one.value)]
    with trace() as recorder:
        memory.add("I live in Rome.", user_id="u")
    assert recorder.graph.operations == {}


def test_an_async_mem0_is_recorded_alike(own_memory):
    memory = own_memory("AsyncMemory")

    async def main():
        await memory.add("I live in Lima.", user_id="u")
        await memory.add([{"role": "user", "content": "I live in Oslo."}], user_id="u")
        return (await memory.search("Where?", user_id="u"))["results"]

    with instrument.mem0(memory), trace() as recorder:
        found = asyncio.run(main())
    check_mem0(recorder, found[0]["memory"])


def test_whose_memory_a_mem0_is_told_is_recorded_unless_the_program_says_it(own_memory):
    memory = own_memory()
    with instrument.mem0(memory), trace() as recorder:
        memory.add("I live in Lima.", user_id="u", run_id="r")
        memory.search("Where?", agent_id="v")
        with attributes(user="mara"):
            memory.search("Where?", user_id="u", run_id="r")
    graph = recorder.graph
    assert {one.attributes["user_id"] for one in graph.find_variables(kind="memory_entry")} == {"u"}
    assert {one.attributes["run_id"] for one in graph.find_variables(kind="message")} == {"r"}
    assert [one.attributes for one in graph.find_operations(name="retrieve")] == [
        {"agent_id": "v"},
        {"user": "mara", "run_id": "r"},
    ]


def test_what_a_mem0_is_given_by_name_is_recorded_alike(own_memory):
    memory, beside = own_memory(), own_memory("AsyncMemory")

    async def beside_as_well():
        await beside.add(messages="I live in Lima.", user_id="u")
        return await beside.search(query="Where?", user_id="u")

    def all_of_it():
        memory.add(messages="I live in Lima.", user_id="u")
        return memory.search(query="Where?", user_id="u"), asyncio.run(beside_as_well())

    with instrument.mem0(memory), instrument.mem0(beside):
        with trace() as recorder:
            found = all_of_it()
        assert [hit["memory"] for one in found for hit in one["results"]] == ["I live in Lima."] * 2
        all_of_it()
    for name, takes, given in (("add", "messages", "I live in Lima."), ("retrieve", "query", "Where?")):
        recorded = recorder.graph.find_operations(name=name)
        assert [values(recorder.graph, one.input_ids(takes)) for one in recorded] == [[given]] * 2


def test_a_recorded_mem0_refuses_what_it_refuses_alone(own_memory):
    from mem0.exceptions import ValidationError

    memory = own_memory()
    with instrument.mem0(memory), trace() as recorder:
        with pytest.raises(TypeError, match=r"add\(\) missing 1 required positional argument: 'messages'"):
            memory.add(user_id="u")
        with pytest.raises(ValidationError, match="messages must be"):
            memory.add(None, user_id="u")
    assert [one.status for one in recorder.graph.operations.values()] == ["error", "error"]


def test_a_recorded_mem0_does_what_it_does_alone_and_what_it_held_before_is_known(own_memory):
    memory, alone = own_memory(), own_memory()
    for one in (memory, alone):
        one.add("I live in Lima.", user_id="u")
    with instrument.mem0(memory), trace() as recorder:
        memory.add("I live in Oslo.", user_id="u")
        memory.add("We met.", user_id="v", infer=False)
        kept = memory.get_all(user_id="u")["results"]
        memory.delete(kept[0]["id"])
    alone.add("I live in Oslo.", user_id="u")
    assert [one["memory"] for one in kept] == [one["memory"] for one in alone.get_all(user_id="u")["results"]]
    assert memory.get_all(user_id="u")["results"] == []
    graph = recorder.graph
    updated, raw, deleted = graph.find_operations(name="store")
    assert values(graph, [graph.variables[updated.output_ids()[0]].previous]) == ["I live in Lima."]
    assert values(graph, raw.input_ids("fact")) == values(graph, raw.output_ids()) == ["We met."]
    (marker,) = (graph.variables[vid] for vid in deleted.output_ids())
    assert (marker.kind, marker.previous) == ("delete_marker", updated.output_ids()[0])


def used_by_one_at_a_time(store):
    """Let only one thread use a vector store: the one that keeps everything in memory is not made for several."""
    lock = threading.Lock()

    def locked(function):
        def call(*args, **kwargs):
            with lock:
                return function(*args, **kwargs)

        return call

    for name in ("insert", "search", "list"):
        setattr(store, name, locked(getattr(store, name)))


def test_a_request_of_mem0_that_asks_for_a_text_is_neither_extraction_nor_update(own_memory, scripted_server):
    memory, model = own_memory(), scripted_server.script
    memory.config.llm.config["enable_vision"] = True
    seen = "A boat on a beach."
    scripted_server.script = lambda body: model(body) if "response_format" in body else seen
    image = {"role": "user", "content": {"type": "image_url", "image_url": {"url": "https://example.org/boat.png"}}}
    with instrument.mem0(memory):
        with trace() as recorder:
            memory.add([{"role": "user", "content": "Sort them."}], agent_id="a", memory_type="procedural_memory")
        add, store = recorder.graph.operations.values()
        assert (add.name, store.name) == ("add", "store")
        assert values(recorder.graph, store.output_ids()) == [seen]
        with trace() as recorder:
            memory.add([image], user_id="u")
    names = [one.name for one in recorder.graph.operations.values()]
    assert names == ["add", "extract_facts", "update_memory", "decide_update", "store"]
    (extract,) = recorder.graph.find_operations(name="extract_facts")
    assert values(recorder.graph, extract.output_ids("facts")) == [seen]


def test_what_is_not_recorded_is_in_nobody_elses_trace(own_memory):
    memory = own_memory()
    used_by_one_at_a_time(memory.vector_store)
    begun, go = threading.Event(), threading.Event()

    class Held(dict):
        """Metadata that Mem0 is slow to copy, before it goes on in its own thread."""

        def __deepcopy__(self, memo):
            begun.set()
            go.wait(10)
            return dict(self)

    def recorded():
        with trace() as recorder:
            memory.add("I live in Lima.", user_id="a", metadata=Held(kept="yes"))
        return recorder

    with instrument.mem0(memory), ThreadPoolExecutor(2) as pool:
        first = pool.submit(recorded)
        assert begun.wait(10)
        second = pool.submit(memory.add, "I live in Oslo.", user_id="b")
        wait([second], timeout=0.5)
        go.set()
        told = json.dumps(first.result().records())
        second.result()
    assert "Lima" in told
    assert "Oslo" not in told
    assert [one["memory"] for one in memory.get_all(user_id="b")["results"]] == ["I live in Oslo."]


def test_many_conversations_of_one_mem0_do_not_mix(own_memory, scripted_server: ScriptedServer):
    memory = own_memory()
    used_by_one_at_a_time(memory.vector_store)
    scripted_server.script = Mem0Model()

    def converse(number):
        with session(f"c{number}"), attributes(conversation=number):
            memory.add(f"I am number {number}.", user_id=f"u{number}")

    with instrument.mem0(memory), trace() as recorder, ThreadPoolExecutor(8) as pool:
        list(pool.map(bind(converse), range(16)))
    graph = recorder.graph
    stores = graph.find_operations(name="store")
    assert len(stores) == 16
    for one in stores:
        number = one.attributes["conversation"]
        assert values(graph, one.output_ids()) == [f"I am number {number}."]
        assert graph.sessions[one.session].name == f"c{number}"
        assert values(graph, one.input_ids("fact")) == [f"I am number {number}."]


def test_messages_that_were_recorded_before_are_those_that_are_added(own_memory, scripted_server: ScriptedServer):
    memory = own_memory()
    scripted_server.script = Mem0Model()
    said = {"D1:1": "Mara: I live in Oslo.", "D1:2": "Theo: Ok.", "D1:3": "Theo: Ok.", "D1:4": "Mara: I like tea."}
    with instrument.mem0(memory), trace() as recorder:
        recorded = {name: variable(text, name=name, kind="message") for name, text in said.items()}
        memory.add([{"role": "user", "content": "I live in Oslo."}, {"role": "user", "content": "Ok."}], user_id="u")
        memory.add([{"role": "user", "content": "Ok."}], user_id="u")
        memory.add([{"role": "user", "content": "Tea, please.", "id": "D1:4"}], user_id="u")
        memory.add([{"role": "user", "content": "Tea!", "id": recorded["D1:4"].id}], user_id="u")
        memory.add("Mara: I live in Oslo.\nBen: Hello.", user_id="u")
        memory.add([{"role": "user", "content": "I am new."}], user_id="u")
        memory.add([{"role": "user", "content": "I am new, too."}], user_id="u")
    graph = recorder.graph
    extractions = graph.find_operations(name="extract_facts")
    read = [[graph.variables[vid].name for vid in one.input_ids("messages")] for one in extractions]
    assert read == [["D1:1", "D1:2"], ["D1:3"], ["D1:4"], ["D1:4"], ["D1:1", "message1"], ["user1"], ["user2"]]
    assert len(graph.find_variables(kind="message")) == 4 + 3


def test_a_fact_that_mem0_dropped_is_the_extractions_fault(own_memory, scripted_server: ScriptedServer):
    from attribution.failures import complaint
    from attribution.methods import survival
    from attribution.recordings import recording_of

    memory, model = own_memory(), Mem0Model()
    dropped = json.dumps({"facts": []})
    scripted_server.script = lambda body: dropped if "harbour" in str(body["messages"][-1]["content"]) else model(body)
    with instrument.mem0(memory), trace() as recorder:
        for name, text in (("D1:1", "I live in Oslo."), ("D1:2", "My sister Ines works at the harbour office.")):
            variable(f"Mara: {text}", name=name, kind="message")
            memory.add([{"role": "user", "content": text}], user_id="u")
        question = "Where does Ines work?"
        found = memory.search(question, user_id="u")["results"]
        reply = answered(question, "In Oslo.")
    assert [one["memory"] for one in found] == ["I live in Oslo."]
    recording = recording_of(recorder.graph, "mara")
    (answer,) = recorder.graph.find_operations(name="answer")
    kinds = [recorder.graph.variables[vid].kind for vid in answer.input_ids()]
    assert kinds == ["query", "context"]
    said = survival(recording).attribute(complaint(recording, question, right=["the harbour office"]))
    assert (said.main.operation, said.main.error_type) == ("extract_facts", "ExtractionError")
    assert "D1:2" in said.main.reason
    assert said.case.prediction == reply.id


def test_an_answer_is_recorded_in_one_call_with_what_it_was_made_of():
    with trace() as recorder:
        first = answered("Where?", "In Oslo.", context=["Mara lives in Oslo."], name="q1", channel="web")
        second = answered("Who?", "Mara.")
    one, two = recorder.graph.find_operations(name="answer")
    assert (one.output_ids(), two.output_ids()) == ([first.id], [second.id])
    assert values(recorder.graph, one.input_ids()) == ["Where?", "Mara lives in Oslo."]
    assert values(recorder.graph, two.input_ids()) == ["Who?"]
    assert one.attributes == {"channel": "web"}
    assert answered("Where?", "untraced").value == "untraced"


@pytest.mark.parametrize("release", ["0.2.0", "1.1.0", "3.0.0", None])
def test_a_release_of_mem0_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch, release):

    monkeypatch.setattr("experiments.systems.libraries.installed_version", lambda package: release)
    with pytest.raises(ConfigError, match=r"0\.1\.x, 1\.0\.x, 2\.x, but .* is installed; .* mem0ai==0\.1\.118"):
        instrument.mem0(object())


def test_a_client_of_mem0s_hosted_service_is_refused():
    class MemoryClient:
        pass

    with pytest.raises(ConfigError, match=r"MemoryClient is no mem0\.Memory"):
        instrument.mem0(MemoryClient())


@pytest.mark.parametrize(
    "message",
    [{"content": "<think>a secret sk-test-key-1234567</think>Oslo"}, {"content": "Oslo", "reasoning_content": "hm"}],
    ids=["tags", "apart"],
)
def test_what_a_model_thought_is_told_beside_its_reply(
    client: openai.OpenAI, scripted_server: ScriptedServer, message: dict[str, str]
) -> None:
    scripted_server.script = lambda body: Reply(
        change=lambda made: made["choices"][0]["message"].update(message) or made
    )
    with instrument.openai(), trace() as recorder, operation("answer") as op:
        ask(client)
    done = recorder.graph.operations[op.id]
    assert values(recorder.graph, done.output_ids("reply")) == ["Oslo"]
    assert done.attributes["thinking"]
    assert "1234567" not in json.dumps(recorder.records())


def test_a_reply_that_was_filtered_is_told_in_its_operation(
    client: openai.OpenAI, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = lambda body: Reply("Mara li", finish_reason="content_filter")
    with instrument.openai(), trace() as recorder, operation("answer") as op:
        ask(client)
    assert recorder.graph.operations[op.id].attributes["unusable"] == "filtered"


def test_a_recording_that_ends_first_leaves_the_other_its_methods(scripted_server):
    client = openai.OpenAI(base_url=scripted_server.base_url, api_key=KEY)
    original = openai.OpenAI.post
    first, second = instrument.openai(), instrument.openai()
    with trace() as recorder:
        first.undo()
        ask(client)
    assert len(recorder.graph.operations) == 1
    second.undo()
    with trace() as recorder:
        ask(client)
    assert not recorder.graph.operations
    assert openai.OpenAI.post is original


def anthropic_stream(*events):
    usage = {"input_tokens": 50, "output_tokens": 1}
    body = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "content": [], "usage": usage}
    end = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 15}}
    told = [{"type": "message_start", "message": body}, *events, end, {"type": "message_stop"}]
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in told)
    headers = {"content-type": "text/event-stream"}
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, text=text, headers=headers))
    client = anthropic.Anthropic(api_key=KEY, http_client=httpx2.Client(transport=transport))
    with instrument.anthropic(), trace() as recorder:
        list(client.messages.create(model="claude", max_tokens=9, messages=ASKED, stream=True))
    (call,) = recorder.graph.operations.values()
    return call, recorder.graph.variables[call.output_ids()[-1]].value


def test_a_streamed_reply_of_anthropic_has_its_tool_calls_and_what_was_read():
    block = {"type": "tool_use", "id": "t1", "name": "save_memory", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": '{"text": "Mara lives in Oslo"}'}
    call, reply = anthropic_stream(
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
    )
    assert (call.prompt_tokens, call.completion_tokens) == (50, 15)
    called = {"id": "t1", "name": "save_memory", "arguments": '{"text": "Mara lives in Oslo"}'}
    assert reply["choices"] == [{"tool_calls": [called], "finish_reason": "tool_use"}]


def test_what_anthropics_model_thinks_is_no_part_of_its_streamed_reply():
    _, reply = anthropic_stream(
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hmm"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Oslo"}},
    )
    assert reply == "Oslo"
