"""One line records a LangGraph with its stores, and what it records is attributed."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("langgraph", reason="langgraph is not installed")
pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")

import networkx
import openai
from chat_graph import ASKED, MEMORIES, chat_graph, converse, model_of, store_of, told, wired
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tracers import context as hooks
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import MessagesState
from langgraph.store.base import BaseStore
from langgraph.store.base.batch import AsyncBatchedBaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import interrupt
from planted_faults import KEY, QUESTION, TURNS, Fault, blamed, shown
from scripted_server import Reply, ScriptedServer
from streaming_server import streaming_server

from tracing import bind, instrument, operation, session, trace
from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph

FAULTS = [
    (Fault(forgotten=True), ("remember", "ExtractionError")),
    (Fault(overwritten=True), ("store", "UpdateError")),
    (Fault(misplaced=True), ("retrieve", "RetrievalError")),
    (Fault(ignored=True), ("answer", "ResponseError")),
]
ONE_CONVERSATION = ["remember", "store"] * 3 + ["retrieve", "answer"]


def names(graph: ExecutionGraph) -> list[str]:
    return [one.name for one in graph.operations.values()]


def inputs(graph: ExecutionGraph, one: Operation) -> list[tuple[str, str]]:
    return [(role, graph.variables[vid].kind) for role, vid in one.inputs]


def made(graph: ExecutionGraph, one: Operation, role: str) -> Variable:
    (found,) = (graph.variables[vid] for vid in one.output_ids(role))
    return found


def recorded(server: ScriptedServer, fault: Fault) -> ExecutionGraph:
    with instrument.langgraph(), trace() as recorder:
        converse(chat_graph(server, fault))
    return recorder.graph


@pytest.mark.parametrize("gold", [True, False], ids=["gold evidence", "no evidence"])
@pytest.mark.parametrize(("fault", "expected"), FAULTS)
def test_the_operation_with_the_planted_fault_is_blamed(
    scripted_server: ScriptedServer, fault: Fault, expected: tuple[str, str], gold: bool
) -> None:
    graph = recorded(scripted_server, fault)
    assert blamed(graph, gold=gold) == expected, shown(graph)


def test_the_answer_is_traced_to_the_message_and_every_step_says_what_it_read_and_made(
    scripted_server: ScriptedServer,
) -> None:
    with instrument.langgraph(), trace() as recorder:
        state = converse(chat_graph(scripted_server, Fault()))
    graph = recorder.graph
    assert state["messages"][-1].content == "radicchio"
    assert names(graph) == ONE_CONVERSATION
    remember, store, *_, retrieve, answer = graph.operations.values()
    assert inputs(graph, remember) == [("prompt", "prompt"), ("messages", "message")]
    assert inputs(graph, store) == [("fact", "reply")]
    assert inputs(graph, retrieve) == [("query", "query"), ("entries", "memory_entry")]
    assert inputs(graph, answer) == [("prompt", "prompt"), ("messages", "message"), ("context", "context")]
    assert (store.parent, remember.session, answer.session) == (remember.id, *graph.sessions)
    assert (answer.kind, answer.calls, answer.model, answer.prompt_tokens, answer.completion_tokens) == (
        *("llm", 1, "scripted"),
        *(13, 1),
    )
    prediction, entry = made(graph, answer, "prediction"), made(graph, store, "entry")
    assert (prediction.value, prediction.kind) == ("radicchio", "prediction")
    assert (entry.name, entry.value) == ("mara/memories/0", {"text": "Tortoise Brisket only eats radicchio."})
    behind = graph.backward_slice(prediction.id).variables
    assert entry.id in behind
    assert [one.name for one in behind.values() if one.kind == "message"] == ["D1:1", "asked"]
    assert KEY not in json.dumps(recorder.records())


def test_an_entry_is_known_by_store_namespace_and_key(scripted_server: ScriptedServer) -> None:
    store, other = InMemoryStore(), InMemoryStore()
    with instrument.langgraph(), trace() as recorder:
        store.put(("u",), "home", {"text": "Lima"})
        other.put(("u",), "home", {"text": "Rome"})
        store.put(("v",), "home", {"text": "Bonn"})
        store.put(("u",), "home", {"text": "Oslo"})
        found = store.get(("u",), "home")
        assert store.get(("u",), "none") is None
        store.delete(("u",), "home")
        store.put(("u",), "home", {"text": "Oslo again"})
    assert found is not None
    assert found.value == {"text": "Oslo"}
    graph = recorder.graph
    lima, rome, bonn, oslo, gone, again = (made(graph, one, "entry") for one in graph.find_operations(name="store"))
    assert [one.previous for one in (lima, rome, bonn, oslo, gone, again)] == [None] * 3 + [lima.id, oslo.id, None]
    assert (oslo.version, gone.kind) == (2, "delete_marker")
    context = made(graph, graph.find_operations(name="retrieve")[0], "context")
    assert context.attributes["entry"] == oslo.id


def test_what_a_store_held_before_is_known_when_it_is_found(scripted_server: ScriptedServer) -> None:
    store = InMemoryStore()
    store.put(("u",), "home", {"text": "Lima"})
    with instrument.langgraph(), trace() as recorder:
        assert [one.value for one in store.search(("u",))] == [{"text": "Lima"}]
        with instrument.langgraph():
            store.put(("u",), "home", {"text": "Oslo"})
    (entry,) = (recorder.graph.variables[vid] for vid in recorder.graph.find_operations(name="store")[0].output_ids())
    assert recorder.graph.variables[str(entry.previous)].value == {"text": "Lima"}


class Batched(AsyncBatchedBaseStore):
    """As LangGraph's asynchronous database stores: what is asked of it goes through a queue to another task."""

    def __init__(self, inner: InMemoryStore) -> None:
        super().__init__()
        self.inner = inner

    def batch(self, ops: Any) -> Any:
        return self.inner.batch(ops)

    async def abatch(self, ops: Any) -> Any:
        return self.inner.batch(ops)


def test_async_nodes_and_stores_are_recorded_as_others_are(scripted_server: ScriptedServer) -> None:
    async def main() -> None:
        fault = Fault()
        chat_graph(scripted_server, fault)  # its script
        model = model_of(scripted_server)

        async def remember(state: MessagesState, *, store: BaseStore) -> dict[str, Any]:
            reply = await model.ainvoke([SystemMessage("Extract the facts as a JSON list."), state["messages"][-1]])
            for fact in json.loads(str(reply.content)):
                await store.aput(MEMORIES, fact[:3], {"text": fact})
            return {}

        async def answer(state: MessagesState, *, store: BaseStore) -> dict[str, Any]:
            found = await store.asearch(MEMORIES, query=str(state["messages"][-1].content), limit=1)
            asked = [SystemMessage(f"You know: {found[0].value['text']}"), state["messages"][-1]]
            return {"messages": [await model.ainvoke(asked)]}

        graph = wired(remember, answer).compile(store=Batched(store_of(fault)))
        for turn in TURNS:
            await graph.ainvoke(told(turn)[0])
        await graph.ainvoke(ASKED)

    with instrument.langgraph(), trace() as recorder:
        asyncio.run(main())
        with operation("after") as after:
            pass
    graph = recorder.graph
    assert names(graph) == [*ONE_CONVERSATION, "after"]
    assert after.settled().parent is None  # type: ignore[union-attr]
    prediction = made(graph, graph.find_operations(name="answer")[0], "prediction")
    behind = graph.backward_slice(prediction.id).variables.values()
    assert [one.name for one in behind if one.kind == "message"] == ["D1:1", "asked"]


def test_conversations_in_many_threads_do_not_mix(scripted_server: ScriptedServer) -> None:
    graph_of = chat_graph(scripted_server, Fault(), checkpointer=InMemorySaver())

    def one(number: int) -> None:
        with session(f"c{number}"):
            thread = {"configurable": {"thread_id": str(number)}}
            graph_of.invoke(*told("D1:1", thread))
            graph_of.invoke(ASKED, thread)

    with instrument.langgraph(), trace() as recorder, ThreadPoolExecutor(4) as pool:
        list(pool.map(bind(one), range(6)))
    graph = recorder.graph
    answers = graph.find_operations(name="answer")
    assert len(answers) == 6
    for answer in answers:
        said = [graph.variables[vid] for vid in answer.input_ids("messages")]
        assert [(one.name, one.session) for one in said] == [("asked", answer.session)]
    # The messages of a thread come back from its checkpoints as other objects.
    assert len(graph.find_variables(kind="message")) == 12


def test_a_user_s_own_operation_and_a_client_of_openai_inside_a_node_are_kept(scripted_server: ScriptedServer) -> None:
    client = openai.OpenAI(base_url=scripted_server.base_url, api_key=KEY)

    def remember(state: MessagesState, *, store: BaseStore) -> dict[str, Any]:
        asked = [{"role": "user", "content": f"Extract {state['messages'][-1].content}"}]
        reply = client.chat.completions.create(model="scripted", messages=asked)  # type: ignore[call-overload]
        store.put(MEMORIES, "0", {"text": str(reply.choices[0].message.content).strip()})
        with operation("note"):
            store.put(MEMORIES, "1", {"text": "noted"})
        return {}

    with instrument.langgraph(), instrument.openai(), trace() as recorder:
        graph_of = wired(remember, lambda state: {}).compile(store=InMemoryStore())
        graph_of.invoke(told("D1:1")[0])
        model_of(scripted_server).invoke("hello")
    graph = recorder.graph
    assert names(graph) == ["remember", "store", "note", "store", "chat"]
    step, first, note, second, alone = graph.operations.values()
    assert (step.calls, alone.calls, first.parent, second.parent) == (1, 1, step.id, note.id)
    assert ("messages", "message") in inputs(graph, step)
    assert inputs(graph, first) == [("fact", "reply")]


def test_a_node_that_reads_back_what_it_wrote_is_recorded_without_a_cycle(scripted_server: ScriptedServer) -> None:
    model = model_of(scripted_server)

    def remember(state: MessagesState, *, store: BaseStore) -> dict[str, Any]:
        store.put(MEMORIES, "0", {"text": str(model.invoke(state["messages"]).content)})
        (item,) = store.search(MEMORIES)
        store.put(MEMORIES, "1", {"text": str(model.invoke(f"Improve {item.value['text']}").content)})
        return {}

    with instrument.langgraph(), trace() as recorder:
        wired(remember, lambda state: {}).compile(store=InMemoryStore()).invoke(told("D1:1")[0])
    graph = recorder.graph
    assert names(graph) == ["remember", "store", "retrieve", "remember", "store"]
    assert networkx.is_directed_acyclic_graph(graph.nx)
    first, second = (made(graph, one, "entry") for one in graph.find_operations(name="store"))
    assert first.id in graph.backward_slice(second.id).variables


def test_the_tasks_of_an_entry_point_are_steps_whose_results_it_uses(scripted_server: ScriptedServer) -> None:
    model, store = model_of(scripted_server), InMemoryStore()
    scripted_server.script = lambda body: "radicchio" if "Brisket" in json.dumps(body["messages"]) else "lettuce"

    @task
    def extract(messages: list[HumanMessage]) -> str:
        return str(model.invoke([SystemMessage("Extract the food."), *messages]).content)

    @task
    def recall(about: str) -> str:
        return "; ".join(item.value["text"] for item in store.search(MEMORIES))

    @entrypoint(store=store)
    def talk(messages: list[HumanMessage]) -> Any:
        store.put(MEMORIES, "0", {"text": extract(messages).result()})
        return model.invoke([SystemMessage(f"You know: {recall('food').result()}"), *messages])

    with instrument.langgraph(), trace() as recorder:
        talk.invoke([HumanMessage(TURNS["D1:1"], id="D1:1")])
    graph = recorder.graph
    assert names(graph) == ["extract", "store", "retrieve", "recall", "talk"], shown(graph)
    (prediction,) = graph.find_variables(kind="prediction")
    (entry,) = graph.find_variables(kind="memory_entry")
    assert [one.name for one in graph.producers(prediction.id)] == ["talk"]
    assert entry.id in graph.backward_slice(prediction.id).variables
    assert "extract" in {one.name for one in graph.backward_slice(entry.id).operations.values()}


def test_what_a_task_replied_is_the_answer_where_the_entrypoint_returns_it(scripted_server: ScriptedServer) -> None:
    store, model = InMemoryStore(), model_of(scripted_server)

    @task
    def reply(question: str) -> str:
        (known,) = store.search(MEMORIES)
        return model.invoke([SystemMessage(f"You know: {known.value['text']}"), HumanMessage(question)]).text

    @entrypoint(store=store)
    def ask(question: str) -> str:
        return reply(question).result()

    @entrypoint(store=store)
    def find(question: str) -> str:
        return store.search(MEMORIES)[0].value["text"]

    with instrument.langgraph(), trace() as recorder:
        store.put(MEMORIES, "0", {"text": TURNS["D1:1"]})
        find.invoke(QUESTION)
        said = ask.invoke(QUESTION)
    graph = recorder.graph
    (prediction,) = graph.find_variables(kind="prediction")
    assert prediction.value == said
    (entry,) = graph.find_variables(kind="memory_entry")
    assert entry.id in graph.backward_slice(prediction.id).variables, shown(graph)


def test_a_node_that_waits_for_a_person_has_not_failed(scripted_server: ScriptedServer) -> None:
    def remember(state: MessagesState) -> dict[str, Any]:
        model_of(scripted_server).invoke(state["messages"])
        interrupt("May I keep this?")
        return {}

    thread: Any = {"configurable": {"thread_id": "1"}}
    with instrument.langgraph(), trace() as recorder:
        wired(remember, lambda state: {}).compile(checkpointer=InMemorySaver()).invoke(told("D1:1")[0], thread)
    (one,) = recorder.graph.operations.values()
    assert (one.name, one.status, one.calls) == ("remember", "ok", 1)


def test_each_call_of_a_user_s_own_operation_keeps_its_request(scripted_server: ScriptedServer) -> None:
    with instrument.langgraph(), trace() as recorder, operation("own") as own:
        for text in ("first", "second"):
            model_of(scripted_server).invoke([SystemMessage(f"Be {text}."), HumanMessage(f"The {text}.")])
    one = recorder.graph.operations[own.id]
    said = [recorder.graph.variables[vid].value for vid in one.input_ids()]
    assert said == ["Be first.", "The first.", "Be second.", "The second."]
    assert one.calls == 2


def test_what_one_trace_leaves_open_hides_nothing_of_the_next(scripted_server: ScriptedServer) -> None:
    client = openai.OpenAI(base_url=scripted_server.base_url, api_key=KEY)
    with streaming_server() as base_url, instrument.langgraph(), instrument.openai():
        with trace() as recorder:
            stream = model_of(type("Server", (), {"base_url": base_url})()).stream("Who am I?")
            next(stream)
        with trace() as later:
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}])
        stream.close()
        assert names(later.graph) == ["chat"]
        gone = weakref.ref(recorder)
        del recorder, stream
        gc.collect()
        assert gone() is None


def test_what_is_known_of_a_trace_goes_with_it(scripted_server: ScriptedServer) -> None:
    with instrument.langgraph():
        with trace() as recorder, operation("own"):
            converse(chat_graph(scripted_server, Fault()))
            model_of(scripted_server).invoke("hello")
        gone = weakref.ref(recorder)
        del recorder
        gc.collect()
        assert gone() is None


def test_a_streamed_answer_is_recorded_once_it_is_complete() -> None:
    with streaming_server() as base_url:
        model = model_of(type("Server", (), {"base_url": base_url})(), streaming=True)

        def answer(state: MessagesState) -> dict[str, Any]:
            return {"messages": [model.invoke(state["messages"])]}

        graph_of = wired(answer, answer).compile()
        with instrument.langgraph(), trace() as recorder:
            pieces = [piece.content for piece, _ in graph_of.stream(ASKED, stream_mode="messages")]
    assert "".join(pieces) == "You are Mara."
    (one,) = recorder.graph.operations.values()
    assert made(recorder.graph, one, "prediction").value == "You are Mara."
    assert (one.calls, one.model, one.completion_tokens) == (1, "m" if one.model == "m" else "scripted", 3)


def test_a_failure_is_raised_as_before_and_ends_its_step(scripted_server: ScriptedServer) -> None:
    graph_of = chat_graph(scripted_server, Fault())
    scripted_server.script = lambda body: Reply("no such model", status=400)
    with instrument.langgraph(), trace() as recorder, pytest.raises(openai.BadRequestError, match="no such model"):
        graph_of.invoke(told("D1:1")[0])
    (one,) = recorder.graph.operations.values()
    assert (one.name, one.status, one.calls) == ("remember", "error", 0)
    assert "no such model" in str(one.error)
    assert len(one.attributes["failed_calls"]) == 1


def test_it_can_be_done_twice_and_undone(scripted_server: ScriptedServer) -> None:
    plain, listening = BaseStore.put, list(hooks._configure_hooks)
    graph_of = chat_graph(scripted_server, Fault())
    first, second = instrument.langgraph(), instrument.langchain()
    with trace() as recorder:
        converse(graph_of)
    assert names(recorder.graph) == ONE_CONVERSATION
    assert recorder.graph.find_operations(name="answer")[0].calls == 1
    for one in (second, first, first):
        one.undo()
    assert BaseStore.put is plain
    assert hooks._configure_hooks == listening
    with trace() as recorder:
        converse(graph_of)
    assert recorder.graph.operations == {}


def test_without_a_trace_nothing_changes(scripted_server: ScriptedServer) -> None:
    with instrument.langgraph():
        state = converse(chat_graph(scripted_server, Fault()))
    assert [one.content for one in state["messages"]] == [QUESTION, "radicchio"]
    assert isinstance(state["messages"][0], HumanMessage)
