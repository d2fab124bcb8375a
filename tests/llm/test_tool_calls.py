"""Calls of tools behind the gateway: they reach the model, and its wishes the client, by cache, budget and trace."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any

import openai
import pytest
from scripted_server import Reply, ScriptedServer

from tracing.errors import CallFailedError, ReplyCutShortError
from tracing.llm.access import ModelAccess
from tracing.llm.serving.gateway import Gateway
from tracing.llm.settings import Limits
from tracing.recording.trace_context import trace

SAVE = {"type": "function", "function": {"name": "save", "parameters": {"type": "object", "properties": {}}}}
CALL = {"id": "call_7", "type": "function", "function": {"name": "save", "arguments": '{"text": "tea — ok"}'}}
SAID = {"role": "user", "content": "I like tea."}
HISTORY: Any = [
    SAID,
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_7", "content": "saved"},
]


def calling(*calls: dict[str, Any], text: str | None = None, finish_reason: str = "tool_calls") -> Reply:
    """A reply that wants these calls."""

    def change(answer: dict[str, Any]) -> dict[str, Any]:
        answer["choices"][0]["message"] = {"role": "assistant", "content": text, "tool_calls": [*calls]}
        return answer

    return Reply(text or "", finish_reason=finish_reason, change=change)


@pytest.fixture
def access(open_access: Callable[..., ModelAccess], scripted_server: ScriptedServer) -> ModelAccess:
    scripted_server.script = lambda body: calling(CALL) if "tools" in body else "ok"
    return open_access()


@pytest.fixture
def client(access: ModelAccess) -> Iterator[openai.OpenAI]:
    gateway = access.gateway()
    with openai.OpenAI(base_url=gateway.base_url, api_key=gateway.key, max_retries=0) as made:
        yield made


def ask(client: openai.OpenAI, messages: Any = (SAID,), **options: Any) -> Any:
    return client.chat.completions.create(model="scripted", messages=messages, tools=[SAVE], **options)


def test_tools_and_their_calls_pass_in_both_directions_and_are_paid_once(
    access: ModelAccess, client: openai.OpenAI, scripted_server: ScriptedServer
) -> None:
    chosen = {"tool_choice": "required", "parallel_tool_calls": False}
    replies = [ask(client, HISTORY, **chosen) for _ in range(2)]
    assert scripted_server.count == 1
    (sent,) = scripted_server.requests
    assert {name: sent[name] for name in ("tools", "tool_choice", "parallel_tool_calls")} == {"tools": [SAVE], **chosen}
    assert sent["messages"] == HISTORY
    for reply in replies:
        (choice,) = reply.choices
        assert choice.finish_reason == "tool_calls"
        assert choice.message.content is None
        assert [call.model_dump() for call in choice.message.tool_calls] == [CALL]


@pytest.mark.parametrize("text", [None, "I keep that."])
def test_a_stream_carries_the_calls_and_what_is_said_beside_them(
    client: openai.OpenAI, scripted_server: ScriptedServer, text: str | None
) -> None:
    second = {**CALL, "id": "call_8"}
    scripted_server.script = lambda body: calling(CALL, second, text=text)
    chunks = [chunk.choices[0] for chunk in ask(client, stream=True)]
    calls = [call for chunk in chunks for call in chunk.delta.tool_calls or ()]
    assert [(call.index, call.id, call.function.arguments) for call in calls] == [
        (0, "call_7", CALL["function"]["arguments"]),  # type: ignore[index]
        (1, "call_8", CALL["function"]["arguments"]),  # type: ignore[index]
    ]
    assert "".join(chunk.delta.content or "" for chunk in chunks) == (text or "")
    assert chunks[-1].finish_reason == "tool_calls"


def test_other_tools_are_another_request(client: openai.OpenAI, scripted_server: ScriptedServer) -> None:
    ask(client)
    ask(client, tool_choice={"type": "function", "function": {"name": "save"}})
    client.chat.completions.create(model="scripted", messages=[SAID])  # type: ignore[list-item]
    assert scripted_server.count == 3


def test_a_budget_counts_them(open_access: Callable[..., ModelAccess]) -> None:
    gateway = open_access(limits=Limits(calls=1)).gateway()
    with openai.OpenAI(base_url=gateway.base_url, api_key=gateway.key, max_retries=0) as client:
        ask(client)
        with pytest.raises(openai.APIStatusError, match="budget"):
            ask(client, HISTORY)


def test_a_trace_has_the_tools_and_the_calls(access: ModelAccess) -> None:
    with trace() as recorder:
        gateway = Gateway(access, context=copy_context())
        gateway.start()
        with openai.OpenAI(base_url=gateway.base_url, api_key=gateway.key) as client:
            ask(client, HISTORY)
        gateway.close()
    (call,) = recorder.graph.operations.values()
    values = {role: recorder.graph.variables[vid].value for role, vid in (*call.inputs, *call.outputs)}
    assert values == {
        "messages": HISTORY,
        "tools": [SAVE],
        "result": {"content": "", "tool_calls": [CALL]},
    }


def test_a_call_that_was_not_asked_for_or_is_incomplete_is_no_reply(
    open_access: Callable[..., ModelAccess], scripted_server: ScriptedServer
) -> None:
    access = open_access(retries=0)
    scripted_server.script = lambda body: calling(CALL)
    with pytest.raises(CallFailedError, match="none was offered"):
        access.task.chat([SAID], max_tokens=9)
    scripted_server.script = lambda body: calling(finish_reason="tool_calls")
    with pytest.raises(CallFailedError, match="none was named"):
        access.task.chat([SAID], max_tokens=9, tools={"tools": [SAVE]})
    scripted_server.script = lambda body: calling(CALL, finish_reason="length")
    with pytest.raises(ReplyCutShortError):
        access.task.chat([SAID], max_tokens=8, whole=False, tools={"tools": [SAVE]})


def test_langmem_keeps_memories_by_way_of_the_gateway(
    open_access: Callable[..., ModelAccess], scripted_server: ScriptedServer
) -> None:
    pytest.importorskip("langmem")
    from langchain.chat_models import init_chat_model
    from langmem import create_memory_manager

    def script(body: dict[str, Any]) -> Reply | str:
        names = [tool["function"]["name"] for tool in body["tools"]]
        if len(body["messages"]) > 2 or "Memory" not in names:
            return "That is all."
        call = {"name": "Memory", "arguments": json.dumps({"content": "Ada likes tea."})}
        return calling({"id": "call_1", "type": "function", "function": call})

    scripted_server.script = script
    gateway = open_access().gateway()
    model = init_chat_model("openai:scripted", base_url=gateway.base_url, api_key=gateway.key, max_retries=0)
    manager = create_memory_manager(model, instructions="Keep what Ada likes.")
    (memory,) = manager.invoke({"messages": [{"role": "user", "content": "Ada: I like tea."}]})
    assert memory.content.content == "Ada likes tea."
    assert scripted_server.count == 1
