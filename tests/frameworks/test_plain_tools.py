"""An agent whose memory are plain tools: they are operations, and attribution says what it cannot see."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
pytest.importorskip("langchain.agents", reason="langchain is not installed")

from chat_graph import model_of
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from scripted_server import Reply, ScriptedServer

from attribution.cases import Attribution, Case
from attribution.judging.words import judge
from attribution.methods import survival
from attribution.recordings import recording_of
from tracing import instrument, operation, session, trace
from tracing.graph.execution_graph import ExecutionGraph
from tracing.systems.conversations import Question

TURNS = ("I moved to Oslo, and my sister Ines works at the harbour office.", "Where does Ines work?")


def calling(name: str, **arguments: str) -> Reply:
    """A reply that calls a tool."""
    call = {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}

    def change(answer: dict[str, Any]) -> dict[str, Any]:
        answer["choices"][0]["message"] |= {"content": None, "tool_calls": [call]}
        return answer

    return Reply(change=change)


def script(body: dict[str, Any]) -> Reply | str:
    last = body["messages"][-1]
    if last["role"] == "tool":
        return "Noted." if last["content"] == "saved" else "I do not know."
    said = str(last["content"])
    return calling("search_memory", query=said) if said.endswith("?") else calling("save_memory", text=said)


def chatted(server: ScriptedServer, *, keeps: slice = slice(1), threads: int = 2) -> ExecutionGraph:
    """Two turns with an agent, whose saving tool keeps only some parts of a sentence."""
    kept: list[str] = []

    @tool
    def save_memory(text: str) -> str:
        """Save what the user said."""
        kept.extend(text.split(", ")[keeps])
        return "saved"

    @tool
    def search_memory(query: str) -> str:
        """Find what is known."""
        return "\n".join(kept)

    server.script = script
    agent = create_agent(model_of(server), [save_memory, search_memory])
    with instrument.langgraph(), trace() as recorder:
        for number, said in enumerate(TURNS):
            with session(f"S{number}"):
                agent.invoke({"messages": [HumanMessage(said)]})
    return recorder.graph


def attributed(graph: ExecutionGraph) -> Attribution:
    prediction = graph.find_variables(kind="prediction")[-1]
    question = Question(id="q", question=TURNS[1], answers=("the harbour office",))
    case = Case("c", question, str(prediction.value), judge(str(prediction.value), question.answers), prediction.id)
    return survival(recording_of(graph, "c")).attribute(case)


def test_tools_are_operations_with_what_they_were_called_with_and_what_they_returned(
    scripted_server: ScriptedServer,
) -> None:
    graph = chatted(scripted_server)
    names = [(one.name, one.kind) for one in graph.operations.values()]
    model = ("model", "llm")
    assert names == [model, ("save_memory", "tool"), model, model, ("search_memory", "tool"), model]
    save, search = graph.find_operations(kind="tool")
    asked, answer = (graph.find_operations(name="model")[at] for at in (2, 3))
    assert search.input_ids("call") == asked.output_ids("reply")
    assert [graph.variables[vid].value for vid in save.output_ids("result")] == ["saved"]
    (found,) = search.output_ids("result")
    assert graph.variables[found].value == "I moved to Oslo"
    assert found in answer.input_ids()


def test_a_fact_that_the_saving_tool_drops_is_nobodys_proven_fault(scripted_server: ScriptedServer) -> None:
    said = attributed(chatted(scripted_server))
    assert said.decisive == ()
    assert "no operation that writes a memory" in str(said.abstained)


def test_a_fact_that_the_tool_gave_and_the_model_left_out_is_the_models_fault(scripted_server: ScriptedServer) -> None:
    said = attributed(chatted(scripted_server, keeps=slice(None)))
    assert said.main is not None
    assert (said.main.operation, said.main.error_type) == ("model", "ResponseError")


def test_a_tool_that_is_called_without_a_model_or_fails_is_an_operation_too() -> None:
    @tool
    def divide(number: int) -> Any:
        """Divide."""
        return {"half": 10 / number}

    with instrument.langchain(), trace() as recorder:
        with operation("mine"):
            divide.invoke({"number": 2})
        with pytest.raises(ZeroDivisionError):
            divide.invoke({"number": 0})
        divide.invoke({"name": "divide", "args": {"number": 5}, "id": "c1", "type": "tool_call"})
    graph = recorder.graph
    mine, first, failed, third = graph.operations.values()
    assert first.parent == mine.id
    assert [graph.variables[vid].value for vid in (*first.input_ids(), *first.output_ids())] == [
        {"number": 2},
        {"half": 5.0},
    ]
    assert failed.status == "error"
    assert ToolMessage.__name__ not in str(graph.variables[third.output_ids()[0]].value)
