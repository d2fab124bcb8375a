"""Events come from our recorder, from OpenTelemetry GenAI spans and from OpenAI messages, each once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tracing import operation, session, trace, variable
from tracing.errors import DataError, MemtuneError
from tracing.trace_memory import TraceMemory


@pytest.fixture
def memory() -> Iterator[TraceMemory]:
    with TraceMemory(":memory:", entity="acme", process="planner", session="run-7", clock=lambda: 1000.0) as memory:
        yield memory


def recorded(path: Path | None = None) -> Any:
    with trace(path) as recorder, session("Monday"):
        said = variable("Ingrid: How many bearings are left?", name="T1", kind="message")
        with operation("plan", inputs={"said": said}) as plan:
            with operation("get_stock", kind="tool", inputs={"part": "HX-20"}) as tool:
                tool.output("result", {"left": 3})
            with pytest.raises(KeyError), operation("get_price", kind="tool", inputs={"part": "none"}):
                raise KeyError("none")
            with operation("order", kind="decision", inputs={"left": 3}, confidence=0.7) as decision:
                decision.output("outcome", "order forty")
            plan.output("plan", "order", kind="value")
    return recorder.graph


def test_the_recorder_feeds_it(memory: TraceMemory) -> None:
    graph = recorded()
    memory.add_graph(graph)
    stock, price = memory.recall(type="tool_call")
    assert (stock.key, stock.metadata["arguments"], stock.value) == ("get_stock", {"part": "HX-20"}, {"left": 3})
    assert stock.session == "Monday"
    assert stock.time == next(op.started for op in graph.operations.values() if op.name == "get_stock")
    assert stock.metadata["seconds"] >= 0
    assert (price.metadata["status"], price.value) == ("error", "KeyError: 'none'")
    (decision,) = memory.recall(type="decision")
    assert (decision.key, decision.value, decision.metadata["confidence"]) == ("order", "order forty", 0.7)
    (step,) = memory.recall(type="step")
    assert (step.key, step.value) == ("plan", {"plan": "order"})
    (message,) = memory.recall(type="message")
    assert message.value == "Ingrid: How many bearings are left?"


def test_a_graph_or_file_that_was_read_already_adds_nothing(memory: TraceMemory, tmp_path: Path) -> None:
    graph = recorded(tmp_path / "t.jsonl")
    memory.add_graph(graph)
    before = memory.recall()
    memory.add_graph(graph)
    memory.add_trace(tmp_path / "t.jsonl")
    assert memory.recall() == before
    memory.add_graph(recorded())
    assert len(memory.recall(type="tool_call")) == 4, "another recording has ids of the same form and was left out"


def span(number: int, name: str, facts: dict[str, Any], **more: Any) -> dict[str, Any]:
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in facts.items()]
    times = {"startTimeUnixNano": str(number * 10**9), "endTimeUnixNano": str(number * 10**9 + 5 * 10**8)}
    return {"traceId": "a" * 32, "spanId": f"{number:016x}", "name": name, "attributes": attributes, **times, **more}


def otlp_file(path: Path) -> Path:
    chat = [{"role": "user", "parts": [{"type": "text", "content": "Is it raining in Bergen?"}]}]
    spans = [
        span(1000, "invoke_agent weather", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "weather"}),
        span(1001, "chat m", {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(chat)}),
        span(
            1002,
            "execute_tool get_rain",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "get_rain",
                "gen_ai.tool.call.id": "call_1",
                "gen_ai.tool.call.arguments": '{"city": "Bergen"}',
                "gen_ai.tool.call.result": '{"mm": 12}',
                "gen_ai.conversation.id": "c-9",
            },
        ),
        span(
            1003,
            "execute_tool get_wind",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "get_wind",
                "gen_ai.tool.call.arguments": "{}",
                "gen_ai.conversation.id": "c-9",
            },
            status={"code": 2, "message": "no such city"},
        ),
        span(1004, "chat m", {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps(chat)}),
    ]
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    return path


def test_opentelemetry_tool_spans_feed_it(memory: TraceMemory, tmp_path: Path) -> None:
    path = otlp_file(tmp_path / "spans.json")
    memory.add_trace(path)
    memory.add_trace(path)
    rain, wind = memory.recall(type="tool_call")
    assert (rain.key, rain.metadata["arguments"], rain.value) == ("get_rain", {"city": "Bergen"}, {"mm": 12})
    assert (rain.time, rain.metadata["seconds"], rain.session) == (1002.0, 0.5, "c-9")
    assert (wind.key, wind.metadata["arguments"], wind.metadata["status"]) == ("get_wind", {}, "error")
    assert wind.value == "no such city"
    assert [event.value for event in memory.recall(type="message")] == ["Is it raining in Bergen?"]
    agents = memory.recall(type="step", key="invoke_agent weather")
    assert agents[0].metadata["agent"] == "weather"


def test_a_file_that_is_no_trace_is_refused(memory: TraceMemory, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    for path in (tmp_path / "x.json", tmp_path / "missing"):
        with pytest.raises(MemtuneError):
            memory.add_trace(path)


CALL = {"id": "call_1", "type": "function", "function": {"name": "get_rain", "arguments": '{"city": "Bergen"}'}}
CHAT: list[Any] = [
    {"role": "system", "content": "You are helpful."},
    {"role": "user", "content": "Is it raining?"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": '{"mm": 12}'},
    {"role": "assistant", "content": "Yes, 12 mm."},
]


def said(memory: TraceMemory) -> list[tuple[str, Any]]:
    return [(event.key, event.value) for event in memory.recall(type="message")]


def test_openai_messages_feed_it_as_the_list_grows(memory: TraceMemory) -> None:
    for length in range(1, len(CHAT) + 1):
        memory.add_messages(CHAT[:length])
        assert len(memory.recall(type="tool_call")) == (length >= 4), "a call belongs to its result"
    (call,) = memory.recall(type="tool_call")
    assert (call.key, call.metadata["arguments"], call.value) == ("get_rain", {"city": "Bergen"}, {"mm": 12})
    assert call.time == 1000.0
    assert said(memory) == [("user", "Is it raining?"), ("assistant", "Yes, 12 mm.")]
    again = {**CALL, "id": "call_2"}
    longer = [
        *CHAT,
        {"role": "user", "content": [{"type": "text", "text": "Is it raining?"}]},
        {"role": "assistant", "tool_calls": [again]},
        {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "no reply"}]},
    ]
    memory.add_messages(longer, time="2026-03-02T09:00")
    assert [event.value for event in memory.recall(type="tool_call")] == [{"mm": 12}, "no reply"]
    assert said(memory)[-1] == ("user", "Is it raining?"), "the same words said again are another event"
    assert len(said(memory)) == 3


def test_objects_of_the_openai_package_feed_it(memory: TraceMemory) -> None:
    chat = pytest.importorskip("openai.types.chat")
    message = chat.ChatCompletionMessage.model_validate({"role": "assistant", "content": None, "tool_calls": [CALL]})
    memory.add_messages([message, {"role": "tool", "tool_call_id": "call_1", "content": "12"}])
    assert memory.recall(type="tool_call")[0].value == "12"


def test_items_of_the_responses_api_feed_it(memory: TraceMemory) -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "Is it raining?"}]},
        {"type": "function_call", "call_id": "c1", "name": "get_rain", "arguments": '{"city": "Bergen"}'},
        {"type": "function_call_output", "call_id": "c1", "output": '{"mm": 12}'},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
    ]
    memory.add_messages(items)
    (call,) = memory.recall(type="tool_call")
    assert (call.key, call.metadata["arguments"], call.value) == ("get_rain", {"city": "Bergen"}, {"mm": 12})
    assert said(memory) == [("user", "Is it raining?"), ("assistant", "Yes.")]


def test_equal_lists_of_two_sessions_are_two(memory: TraceMemory) -> None:
    memory.add_messages(CHAT)
    memory.session = "run-8"
    memory.add_messages(CHAT)
    assert len(memory.recall(type="tool_call")) == 2


def test_what_is_no_message_is_refused(memory: TraceMemory) -> None:
    with pytest.raises(DataError, match="not an OpenAI message"):
        memory.add_messages(["hello"])
    assert memory.recall() == []
