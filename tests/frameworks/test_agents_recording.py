"""Agents that make OpenTelemetry's spans, or ask by a client of their own, are recorded by one line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from openai import OpenAI

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

from opentelemetry import trace as telemetry
from scripted_server import Reply, ScriptedServer

from tracing import instrument, operation, session, trace
from tracing.graph.elements import Operation
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.agent_memory import interpreted

TRACER = telemetry.get_tracer("companion")
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "scripted"}


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    scripted = ScriptedServer(lambda body: "Radicchio.")
    yield scripted
    scripted.close()


def named(graph: ExecutionGraph, name: str) -> Operation:
    (record,) = graph.find_operations(name=name)
    return record


def asked(server: ScriptedServer, *messages: dict[str, Any]) -> None:
    OpenAI(base_url=server.base_url, api_key="none").chat.completions.create(model="scripted", messages=list(messages))  # type: ignore[arg-type]


def test_a_span_is_an_operation_with_what_it_read_and_made() -> None:
    with (
        instrument.agents(),
        trace() as recorder,
        session("d1", user="mara"),
        TRACER.start_as_current_span("chat scripted", attributes=CHAT) as span,
    ):
        span.set_attribute("gen_ai.system_instructions", "You remember.")
        said = {"role": "user", "parts": [{"type": "text", "content": "What does Brisket eat?"}]}
        span.set_attribute("gen_ai.input.messages", json.dumps([said]))
        span.set_attribute("gen_ai.usage.input_tokens", 9)
    chat, graph = named(recorder.graph, "chat scripted"), recorder.graph
    assert (chat.kind, chat.model, chat.calls, chat.prompt_tokens, chat.status) == ("llm", "scripted", 1, 9, "ok")
    assert [(graph.variables[vid].kind, graph.variables[vid].value) for vid in chat.input_ids()] == [
        ("prompt", "You remember."),
        ("message", "What does Brisket eat?"),
    ]
    assert graph.sessions[str(chat.session)].attributes == {"user": "mara"}


def test_spans_lie_in_each_other_and_in_the_users_operations() -> None:
    with (
        instrument.agents(),
        trace() as recorder,
        operation("reply"),
        TRACER.start_as_current_span("agent"),
        TRACER.start_as_current_span("execute_tool recall"),
    ):
        pass
    graph = recorder.graph
    assert named(graph, "execute_tool recall").parent == named(graph, "agent").id
    assert named(graph, "agent").parent == named(graph, "reply").id


def test_spans_outside_of_a_session_share_one_with_their_trace() -> None:
    with instrument.agents(), trace() as recorder:
        for _ in range(2):
            with TRACER.start_as_current_span("agent"), TRACER.start_as_current_span("tool"):
                pass
    sessions = [record.session for record in recorder.graph.find_operations(name="tool")]
    assert [record.session for record in recorder.graph.find_operations(name="agent")] == sessions
    assert len(set(sessions)) == 2


def test_a_span_that_failed_is_an_operation_that_failed() -> None:
    with (
        instrument.agents(),
        trace() as recorder,
        pytest.raises(KeyError),
        TRACER.start_as_current_span("execute_tool recall"),
    ):
        raise KeyError("n7")
    record = named(recorder.graph, "execute_tool recall")
    assert (record.status, record.error) == ("error", "KeyError: 'n7'")


@pytest.mark.parametrize(("around", "calls"), [(CHAT, ["chat scripted"]), ({}, ["chat"])])
@pytest.mark.parametrize("told_late", [True, False])
def test_a_call_counts_once_whether_its_span_or_its_client_tells_of_it(
    server: ScriptedServer, around: dict[str, str], calls: list[str], told_late: bool
) -> None:
    with (
        instrument.agents(),
        trace() as recorder,
        TRACER.start_as_current_span("chat scripted", attributes=around) as span,
    ):
        asked(server, {"role": "user", "content": "What does Brisket eat?"})
        if told_late:  # as ADK has it, whose span tells what it is of once the model has replied
            span.set_attributes({**CHAT, "gen_ai.usage.input_tokens": 9})
    made = [record for record in recorder.graph.operations.values() if record.calls]
    assert [record.name for record in made] == calls
    assert server.count == 1
    if not around:
        outer = named(recorder.graph, "chat scripted")
        assert made[0].parent == outer.id
        assert outer.prompt_tokens == 0


def test_an_agent_that_tells_the_model_and_tokens_of_the_calls_inside_it_counts_none(server: ScriptedServer) -> None:
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "scripted"}
    with instrument.agents(), trace() as recorder, TRACER.start_as_current_span("agent", attributes=agent):  # noqa: SIM117
        with TRACER.start_as_current_span("step"):
            asked(server, {"role": "user", "content": "What does Brisket eat?"})
    assert [record.name for record in recorder.graph.operations.values() if record.calls] == ["chat"]


def test_spans_of_transport_and_after_the_end_are_not_recorded() -> None:
    instrumentation = instrument.agents()
    with trace() as recorder:
        with TRACER.start_as_current_span("POST", attributes={"http.request.method": "POST"}):
            pass
        instrumentation.undo()
        with TRACER.start_as_current_span("agent"):
            pass
    assert not recorder.graph.operations


def test_secrets_in_spans_do_not_get_into_the_trace() -> None:
    key = f"sk-{'a1B2' * 8}"
    with (
        instrument.agents(),
        trace() as recorder,
        TRACER.start_as_current_span("execute_tool call", attributes={"input.value": key, "note": f"by {key}"}),
    ):
        pass
    assert key not in json.dumps(recorder.records())


@pytest.mark.parametrize("spans", [True, False])
def test_a_tool_that_only_messages_tell_of_is_an_operation_of_the_memory(server: ScriptedServer, spans: bool) -> None:
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "save_memory", "arguments": '{"text": "Eats radicchio."}'},
    }

    def calling(reply: dict[str, Any]) -> dict[str, Any]:
        reply["choices"][0]["message"] |= {"content": None, "tool_calls": [call]}
        return reply

    said = [{"role": "system", "content": "You remember."}, {"role": "user", "content": "Brisket eats radicchio."}]
    with (
        instrument.agents(),
        trace() as recorder,
        session("d1", user="mara"),
        TRACER.start_as_current_span("agent") if spans else nullcontext(),
    ):
        server.script = lambda body: Reply(change=calling)
        asked(server, *said)
        server.script = lambda body: "Noted."
        returned = {
            "role": "tool",
            "tool_call_id": "call_1",
            "content": '{"id": "n1", "memory": "Eats radicchio."}',
        }
        asked(server, *said, {"role": "assistant", "content": None, "tool_calls": [call]}, returned)
    graph = interpreted(recorder.graph)
    (entry,) = graph.find_variables(kind="memory_entry")
    (message,) = graph.find_variables(kind="message")
    assert (entry.name, entry.value) == ("n1", "Eats radicchio.")
    assert named(graph, "save_memory").attributes["stage"] == "update"
    assert message.id in graph.backward_slice(entry.id).variables
    (prediction,) = graph.find_variables(kind="prediction")
    assert [v.value for v in graph.backward_slice(prediction.id).variables.values() if v.kind == "prompt"] == [
        "You remember."
    ]


def test_a_tool_that_tells_nothing_has_what_the_one_around_it_tells() -> None:
    outer = {
        "openinference.span.kind": "TOOL",
        "input.value": '{"text": "Brisket eats radicchio."}',
        "output.value": "kept as n1: Brisket eats",
    }
    with (
        instrument.agents(),
        trace() as recorder,
        TRACER.start_as_current_span("companion.save_memory", attributes=outer),
    ):
        inner = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "save_memory"}
        with TRACER.start_as_current_span("execute_tool save_memory", attributes=inner):
            pass
    (entry,) = interpreted(recorder.graph).find_variables(kind="memory_entry")
    assert (entry.name, entry.value) == ("n1", "Brisket eats")


@pytest.mark.parametrize("around", ["", "\n\nThis is the expected criteria for your final answer: One word."])
def test_what_crewai_writes_around_a_question_is_no_part_of_it(server: ScriptedServer, around: str) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "recall", "arguments": '{"about": "Brisket"}'}}
    with instrument.agents(), trace() as recorder, session("q1"):
        asked(
            server,
            {"role": "system", "content": "You are companion."},
            {"role": "user", "content": f"\nCurrent Task: What does Brisket eat?{around}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "n1: Eats radicchio."},
        )
    (query,) = interpreted(recorder.graph).find_variables(kind="query", name="dialogue 1:1")
    assert query.value == "What does Brisket eat?"
