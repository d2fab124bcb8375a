"""LangMem's managers and tools are recorded, and what is recorded is attributed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("langmem", reason="langmem is not installed")
pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")

from chat_graph import MEMORIES, model_of, store_of
from langchain_core.messages import HumanMessage
from langgraph.prebuilt import create_react_agent
from langmem import create_manage_memory_tool, create_memory_store_manager, create_search_memory_tool
from planted_faults import FACTS, QUESTION, TURNS, Fault, blamed, shown
from scripted_server import Reply, ScriptedServer

from tracing import instrument, operation, session, trace


def calling(*calls: tuple[str, dict[str, Any]]) -> Reply:
    """A reply that calls tools."""

    def change(answer: dict[str, Any]) -> dict[str, Any]:
        asked = [
            {"id": f"call-{len(str(args))}-{n}", "type": "function", "function": {"name": name, "arguments": args}}
            for n, (name, args) in enumerate((name, json.dumps(args)) for name, args in calls)
        ]
        answer["choices"][0]["message"] |= {"content": None, "tool_calls": asked}
        return answer

    return Reply(change=change)


def managing(fault: Fault) -> Any:
    def reply(body: dict[str, Any]) -> Reply | str:
        if not body.get("tools"):
            return fault.answered(body)
        facts = fault.extracted(body)
        return calling(*(("Memory", {"content": fact}) for fact in facts)) if facts else "Nothing to keep."

    return reply


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault(forgotten=True), ("manage_memory", "ExtractionError")),
        (Fault(misplaced=True), ("retrieve", "RetrievalError")),
        (Fault(ignored=True), ("answer", "ResponseError")),
    ],
)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_the_operation_with_the_planted_fault_is_blamed(
    scripted_server: ScriptedServer, fault: Fault, expected: tuple[str, str], is_async: bool
) -> None:
    scripted_server.script = managing(fault)
    model, store = model_of(scripted_server), store_of(fault)
    manager = create_memory_store_manager(model, namespace=MEMORIES, store=store)

    async def remember() -> None:
        for turn, text in TURNS.items():
            given = {"messages": [HumanMessage(text, id=turn)]}
            await manager.ainvoke(given) if is_async else manager.invoke(given)

    with instrument.langmem(manager), trace() as recorder:
        with session("D1"):
            asyncio.run(remember())
        with session("food"), operation("answer") as op:
            found = store.search(MEMORIES, query=QUESTION, limit=1)
            reply = model.invoke(f"{found[0].value['content']} {QUESTION}").content
            op.output("prediction", reply, kind="prediction")
    graph = recorder.graph
    names = [one.name for one in graph.operations.values()]
    assert set(names) == {"manage_memory", "store", "retrieve", "answer"}
    assert names.count("manage_memory") == 3
    assert blamed(graph) == expected, shown(graph)
    stored = [graph.variables[vid] for one in graph.find_operations(name="store") for vid in one.output_ids()]
    # The manager shows its model the memories that are there already.
    assert [messages_behind(graph, one.id)[-1] for one in stored] == [
        turn for turn in TURNS if not (fault.forgotten and turn == "D1:1")
    ]


def messages_behind(graph: Any, vid: str) -> list[str]:
    behind = graph.backward_slice(vid).variables.values()
    return [one.name for one in behind if one.kind == "message"]


def deciding(fault: Fault) -> Any:
    """An agent's model: it keeps what it is told, and searches before it answers."""

    def reply(body: dict[str, Any]) -> Reply | str:
        last = body["messages"][-1]
        if last["role"] == "tool":
            return fault.answered(body) if QUESTION in json.dumps(body["messages"]) else "Noted."
        if last["content"] == QUESTION:
            return calling(("search_memory", {"query": QUESTION, "limit": 1}))
        facts = [FACTS[turn] for turn, text in TURNS.items() if text == last["content"]]
        kept = [fact for fact in facts if not (fault.forgotten and fact == FACTS["D1:1"])]
        return calling(*(("manage_memory", {"content": fact, "action": "create"}) for fact in kept)) if kept else "Hm."

    return reply


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault(forgotten=True), ("store", "UpdateError")),
        (Fault(misplaced=True), ("retrieve", "RetrievalError")),
        (Fault(ignored=True), ("agent", "ResponseError")),
    ],
)
def test_an_agent_that_manages_its_memory_itself_is_attributed(
    scripted_server: ScriptedServer, fault: Fault, expected: tuple[str, str]
) -> None:
    scripted_server.script = deciding(fault)
    tools = [create_manage_memory_tool(namespace=MEMORIES), create_search_memory_tool(namespace=MEMORIES)]
    agent = create_react_agent(model_of(scripted_server), tools=tools, store=store_of(fault))
    with instrument.langgraph(), trace() as recorder:
        with session("D1"):
            for turn, text in TURNS.items():
                agent.invoke({"messages": [HumanMessage(text, id=turn)]})
        with session("food"):
            agent.invoke({"messages": [HumanMessage(QUESTION, id="asked")]})
    graph = recorder.graph
    stored = [graph.variables[vid] for one in graph.find_operations(name="store") for vid in one.output_ids()]
    assert [messages_behind(graph, one.id) for one in stored] == [
        [turn] for turn in TURNS if not (fault.forgotten and turn == "D1:1")
    ]
    assert blamed(graph) == expected, shown(graph)
