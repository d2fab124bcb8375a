"""One line records chains, retrievers and vector stores of LangChain, and what it records is attributed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("langchain_core", reason="langchain-core is not installed")
pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")

from chat_graph import model_of, script
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from planted_faults import QUESTION, TURNS, Fault, blamed, shown
from scripted_server import ScriptedServer
from streaming_server import streaming_server

from tracing import instrument, operation, session, trace, variable


class Faulty(Embeddings):
    """Embeds as a fault says."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [list(self.fault.embedded(text)) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return list(self.fault.embedded(text))


def remember(store: InMemoryVectorStore, server: ScriptedServer, fault: Fault) -> None:
    """A user's own extraction, around which the user has put an operation."""
    for turn, text in TURNS.items():
        message = variable(text, name=turn, kind="message")
        with operation("remember", inputs={"message": message}):
            reply = model_of(server).invoke(f"Extract the facts of: {text}")
            for fact in json.loads(str(reply.content)):
                store.add_documents([Document(fact, id="fact" if fault.overwritten else turn)])


def chain_of(model: Any, store: InMemoryVectorStore) -> Any:
    prompt = ChatPromptTemplate.from_messages([("system", "You know: {context}"), ("human", "{question}")])
    asked = {"context": store.as_retriever(search_kwargs={"k": 1}), "question": RunnablePassthrough()}
    return (asked | prompt | model | StrOutputParser()).with_config(run_name="answer")


@pytest.mark.parametrize("gold", [True, False], ids=["gold evidence", "no evidence"])
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault(forgotten=True), ("remember", "ExtractionError")),
        (Fault(overwritten=True), ("store", "UpdateError")),
        (Fault(misplaced=True), ("retrieve", "RetrievalError")),
        (Fault(ignored=True), ("answer", "ResponseError")),
    ],
)
def test_the_operation_with_the_planted_fault_is_blamed(
    scripted_server: ScriptedServer, fault: Fault, expected: tuple[str, str], gold: bool
) -> None:
    scripted_server.script = script(fault)
    store = InMemoryVectorStore(Faulty(fault))
    with instrument.langchain(), trace() as recorder:
        with session("D1"):
            remember(store, scripted_server, fault)
        with session("food"):
            chain_of(model_of(scripted_server), store).invoke(QUESTION)
    assert blamed(recorder.graph, gold=gold) == expected, shown(recorder.graph)


def test_a_vector_store_is_recorded_with_and_without_a_retriever(scripted_server: ScriptedServer) -> None:
    store = InMemoryVectorStore(Faulty(Fault()))
    with instrument.langchain(), trace() as recorder:
        store.add_texts(["Brisket eats radicchio."], ids=["a"])
        asyncio.run(store.aadd_documents([Document("The bus was late.", id="b")]))
        store.similarity_search(QUESTION, k=1)
        store.similarity_search_with_score(QUESTION, k=1)
        store.as_retriever(search_kwargs={"k": 1}).invoke(QUESTION)
        store.delete(["a"])
    graph = recorder.graph
    assert [one.name for one in graph.operations.values()] == ["store"] * 2 + ["retrieve"] * 3 + ["store"]
    first, *_, deleted = graph.find_operations(name="store")
    (entry,), (marker,) = first.output_ids(), deleted.output_ids()
    contexts = [graph.variables[vid] for one in graph.find_operations(name="retrieve") for vid in one.output_ids()]
    assert [one.attributes["entry"] for one in contexts] == [entry] * 3
    assert (graph.variables[marker].kind, graph.variables[marker].previous) == ("delete_marker", entry)


def test_a_vector_store_takes_its_arguments_by_name_and_reads_an_iterator_itself() -> None:
    embedding = Faulty(Fault())
    with instrument.langchain(), trace() as recorder:
        store = InMemoryVectorStore(embedding)
        store.add_texts(texts=["Brisket eats radicchio."])
        store.add_documents(documents=[Document("The bus was late.")])
        assert len(InMemoryVectorStore.from_texts(["It rained."], embedding).store) == 1
    kept = [variable.value for variable in recorder.graph.variables.values() if variable.kind == "memory_entry"]
    assert kept == ["Brisket eats radicchio.", "The bus was late.", "It rained."]


def test_a_streamed_chain_and_a_batch_are_recorded_as_one_answer_each(scripted_server: ScriptedServer) -> None:
    scripted_server.script = script(Fault())
    store = InMemoryVectorStore(Faulty(Fault()))
    with streaming_server() as base_url, instrument.langchain(), trace() as recorder:
        store.add_texts(["Brisket eats radicchio."], ids=["a"])
        server: Any = type("Server", (), {"base_url": base_url})
        assert "".join(chain_of(model_of(server), store).stream(QUESTION)) == "You are Mara."
        replies = chain_of(model_of(scripted_server), store).batch([QUESTION, "And Agata?"])
        with operation("after") as after:
            pass
    assert replies == ["radicchio", "radicchio"]
    graph = recorder.graph
    answers = graph.find_operations(name="answer")
    predictions = [graph.variables[vid].value for one in answers for vid in one.output_ids("prediction")]
    assert sorted(map(str, predictions)) == ["You are Mara.", "radicchio", "radicchio"]
    assert [(one.calls, len(one.input_ids("context"))) for one in answers] == [(1, 1)] * 3
    assert graph.operations[after.id].parent is None
