"""One line records LlamaIndex's memory, indices, engines and agents, and what it records is attributed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
pytest.importorskip("llama_index.llms.openai_like", reason="llama-index-llms-openai-like is not installed")

import openai
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.llms import ChatMessage, MockLLM
from llama_index.core.memory import BaseMemoryBlock, Memory, StaticMemoryBlock, VectorMemoryBlock
from planted_faults import KEY, QUESTION, TURNS, Fault, blamed, shown
from pydantic import Field
from remembering_index import FaultyEmbedding, TextStore, ask_index, converse, llm_of, memory_of, script, tell
from scripted_server import Reply, ScriptedServer
from streaming_server import streaming_server

from tracing import instrument, operation, trace
from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph

EVIDENCE = pytest.mark.parametrize("gold", [True, False], ids=["gold evidence", "no evidence"])


@EVIDENCE
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault(forgotten=True), ("extract_facts", "ExtractionError")),
        (Fault(overwritten=True), ("store", "DeletionError")),
        (Fault(ignored=True), ("answer", "ResponseError")),
    ],
)
def test_the_fault_planted_in_a_memory_is_found(
    scripted_server: ScriptedServer, fault: Fault, expected: tuple[str, str], gold: bool
) -> None:
    with instrument.llama_index(), trace() as recorder:
        converse(scripted_server, memory_of(scripted_server, fault))
    assert blamed(recorder.graph, gold=gold) == expected, shown(recorder.graph)


@EVIDENCE
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault(forgotten=True), ("remember", "ExtractionError")),
        (Fault(overwritten=True), ("store", "DeletionError")),
        (Fault(misplaced=True), ("retrieve", "RetrievalError")),
        (Fault(ignored=True), ("query", "ResponseError")),
    ],
)
def test_the_fault_planted_in_an_index_is_found(
    scripted_server: ScriptedServer, fault: Fault, expected: tuple[str, str], gold: bool
) -> None:
    with instrument.llama_index(), trace() as recorder:
        ask_index(scripted_server, fault)
    assert blamed(recorder.graph, gold=gold) == expected, shown(recorder.graph)


def names(graph: ExecutionGraph) -> list[str]:
    return [one.name for one in graph.operations.values()]


def made(graph: ExecutionGraph, one: Operation, role: str) -> Variable:
    (found,) = (graph.variables[vid] for vid in one.output_ids(role))
    return found


def messages_behind(graph: ExecutionGraph, vid: str) -> list[str]:
    behind = graph.backward_slice(vid).variables.values()
    return [one.name for one in behind if one.kind == "message"]


def test_an_answer_from_memory_is_traced_to_the_messages(scripted_server: ScriptedServer) -> None:
    with instrument.llama_index(), instrument.openai(), trace() as recorder:
        reply = converse(scripted_server, memory_of(scripted_server, Fault()))
    graph = recorder.graph
    assert reply == "radicchio"
    assert names(graph) == ["extract_facts", "store"] * 3 + ["retrieve", "answer"]
    extract, store, *_, retrieve, answer = graph.operations.values()
    assert (extract.calls, answer.calls, answer.model, answer.completion_tokens) == (1, 1, "scripted", 1)
    entry = made(graph, store, "entry")
    assert (entry.value, entry.kind, store.parent) == (
        "Tortoise Brisket only eats radicchio.",
        *("memory_entry", extract.id),
    )
    assert entry.id in retrieve.input_ids("entries")
    assert made(graph, retrieve, "context").id in answer.input_ids()
    assert {"D1:1", "D1:2", "D1:3"} <= set(messages_behind(graph, answer.output_ids("prediction")[0]))
    assert KEY not in json.dumps(recorder.records())


class Summary(BaseMemoryBlock[str]):
    """A user's own block, of which nothing is known."""

    seen: list[str] = Field(default_factory=list)

    async def _aget(self, messages: Any = None, **others: Any) -> str:
        return " / ".join(self.seen)

    async def _aput(self, messages: Any) -> None:
        self.seen += [str(one.content).upper() for one in messages]


def test_blocks_of_any_kind_give_back_what_they_made_of_their_messages(scripted_server: ScriptedServer) -> None:
    vectors = VectorMemoryBlock(vector_store=TextStore(), embed_model=FaultyEmbedding(fault=Fault()))
    blocks = [vectors, Summary(name="summary"), StaticMemoryBlock(name="about", static_content="Mara is a vet.")]
    memory = Memory.from_defaults(
        token_limit=500, chat_history_token_ratio=0.002, token_flush_size=1, memory_blocks=blocks
    )
    with instrument.llama_index(), trace() as recorder:
        tell(memory)
        memory.get()
        memory.get(input=QUESTION)
    graph = recorder.graph
    *_, before, after = graph.find_operations(name="retrieve")
    held = [graph.variables[vid] for vid in after.input_ids("entries")]
    by_name = {one.name: one for one in held}
    assert {by_name["about"].id, by_name["summary"].id} <= set(before.input_ids("entries"))
    assert by_name["about"].value == "Mara is a vet."
    assert by_name["summary"].value == f"{TURNS['D1:1']} / {TURNS['D1:2']}".upper()
    assert messages_behind(graph, by_name["summary"].id) == ["D1:1", "D1:2"]
    stored = [one for one in held if TURNS["D1:1"] in str(one.value)]
    assert [messages_behind(graph, one.id) for one in stored] == [["D1:1"]]


def test_a_chat_engine_and_an_agent_answer_with_what_they_found(scripted_server: ScriptedServer) -> None:
    scripted_server.script = script(Fault())
    index = VectorStoreIndex([], embed_model=FaultyEmbedding(fault=Fault()))
    memory = memory_of(scripted_server, Fault())

    async def ask_agent() -> str:
        agent = FunctionAgent(llm=llm_of(scripted_server, is_function_calling_model=True), streaming=False, tools=[])
        return str(await agent.run(QUESTION, memory=memory))

    with instrument.llama_index(), trace() as recorder:
        index.insert_nodes([TextStore.node("Brisket is a tortoise.")])
        chat = index.as_chat_engine(chat_mode="context", llm=llm_of(scripted_server))
        assert str(chat.chat(QUESTION)) == "lettuce"
        tell(memory)
        assert asyncio.run(ask_agent()) == "radicchio"
    graph = recorder.graph
    (chatted,), (ran,) = graph.find_operations(name="chat"), graph.find_operations(name="FunctionAgent")
    assert (chatted.calls, ran.calls) == (1, 1)
    assert made(graph, chatted, "prediction").value == "lettuce"
    assert made(graph, ran, "prediction").value == "radicchio"
    assert "D1:1" in messages_behind(graph, ran.output_ids("prediction")[0]), shown(graph)


def test_a_model_that_answers_by_way_of_another_method_of_its_own_is_counted_once() -> None:
    with instrument.llama_index(), trace() as recorder, operation("answer") as answer:
        MockLLM(max_tokens=1).chat([ChatMessage(role="user", content="Hello.")])
        asyncio.run(MockLLM(max_tokens=1).achat([ChatMessage(role="user", content="Hello again.")]))
    assert recorder.graph.operations[answer.id].calls == 2
    assert len(recorder.graph.find_variables(kind="reply")) == 2


def test_a_streamed_answer_is_recorded_once_it_is_complete() -> None:
    with streaming_server() as base_url:
        server: Any = type("Server", (), {"base_url": base_url})
        index = VectorStoreIndex([], embed_model=FaultyEmbedding(fault=Fault()))
        with instrument.llama_index(), trace() as recorder:
            index.insert_nodes([TextStore.node("Brisket eats radicchio.")])
            answer = index.as_query_engine(llm=llm_of(server), streaming=True).query(QUESTION)
            assert "".join(answer.response_gen) == "You are Mara."

            async def later() -> str:
                answer = await index.as_query_engine(llm=llm_of(server), streaming=True).aquery(QUESTION)
                return "".join([piece async for piece in answer.response_gen])

            assert asyncio.run(later()) == "You are Mara."
    for query in recorder.graph.find_operations(name="query"):
        assert (query.calls, query.status, len(query.input_ids("context"))) == (1, "ok", 1)
        assert made(recorder.graph, query, "prediction").value == "You are Mara."
    assert len(recorder.graph.find_operations(name="query")) == 2


def test_a_failure_is_raised_as_before_and_ends_its_step(scripted_server: ScriptedServer) -> None:
    scripted_server.script = lambda body: Reply("no such model", status=400)
    index = VectorStoreIndex([], embed_model=FaultyEmbedding(fault=Fault()))
    index.insert_nodes([TextStore.node("Brisket eats radicchio.")])
    with instrument.llama_index(), trace() as recorder:
        with pytest.raises(openai.BadRequestError, match="no such model"):
            index.as_query_engine(llm=llm_of(scripted_server)).query(QUESTION)
        with pytest.raises(openai.BadRequestError), operation("own"):
            llm_of(scripted_server).chat([ChatMessage(role="user", content="hello")])
    retrieve, query, own = recorder.graph.operations.values()
    assert [one.status for one in (retrieve, query, own)] == ["ok", "error", "error"]
    assert "no such model" in str(query.error)
    assert len(own.attributes["failed_calls"]) == 1


def test_an_index_and_a_memory_take_their_arguments_by_name() -> None:
    index = VectorStoreIndex.from_documents([Document(text="Brisket eats.", id_="d")], embed_model=MockEmbedding(8))
    memory = Memory.from_defaults(session_id="s", tokenizer_fn=str.split)
    with instrument.llama_index(), trace():
        index.delete_nodes(node_ids=[])
        index.delete_ref_doc(ref_doc_id="d")
        asyncio.run(memory.aput(message=ChatMessage(role="user", content="hello there")))
    assert [message.content for message in memory.get_all()] == ["hello there"]


def test_it_can_be_done_twice_and_undone(scripted_server: ScriptedServer) -> None:
    root = get_dispatcher()
    spans, events, plain = list(root.span_handlers), list(root.event_handlers), dict(vars(Memory))
    adding, block = (
        TextStore.async_add,
        VectorMemoryBlock(vector_store=TextStore(), embed_model=FaultyEmbedding(fault=Fault())),
    )
    first, second = instrument.llama_index(), instrument.llama_index()
    with trace() as recorder:
        converse(scripted_server, memory_of(scripted_server, Fault()))
        asyncio.run(block.aput([ChatMessage(role="user", content="hello there")]))
    assert names(recorder.graph) == ["extract_facts", "store"] * 3 + ["retrieve", "answer", "store"]
    assert recorder.graph.find_operations(name="answer")[0].calls == 1
    for one in (second, first, first):
        one.undo()
    assert (root.span_handlers, root.event_handlers) == (spans, events)
    assert {name: vars(Memory)[name] for name in ("aput", "aget")} == {name: plain[name] for name in ("aput", "aget")}
    assert TextStore.async_add is adding
    with trace() as recorder:
        ask_index(scripted_server, Fault())
    assert names(recorder.graph) == ["remember"] * 3
