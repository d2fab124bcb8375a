"""The Responses API and Anthropic's Messages at the gateway: the clients of both get what a chat would be replied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import openai
import pytest
from scripted_server import Reply, ScriptedServer

from tracing.llm.access import ModelAccess

SCHEMA: Any = {"type": "object", "properties": {"a": {"type": "string"}}}
CALL = {"id": "call_7", "type": "function", "function": {"name": "save", "arguments": '{"text": "tea"}'}}
WRITTEN = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "I like tea."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": "saved", "tool_call_id": "call_7"},
    {"role": "user", "content": "And?"},
]
"""What a model is asked, in the form of chat completions."""


def calling(body: dict[str, Any]) -> Reply | str:
    def change(answer: dict[str, Any]) -> dict[str, Any]:
        answer["choices"][0]["message"] |= {"content": "Well.", "tool_calls": [CALL]}
        return answer

    return Reply("", finish_reason="tool_calls", change=change) if "tools" in body else "ok"


@pytest.fixture
def access(open_access: Callable[..., ModelAccess], scripted_server: ScriptedServer) -> ModelAccess:
    scripted_server.script = calling
    return open_access()


@pytest.fixture
def sdk(access: ModelAccess) -> Iterator[openai.OpenAI]:
    gateway = access.gateway()
    with openai.OpenAI(base_url=gateway.base_url, api_key=gateway.key) as client:
        yield client


@pytest.fixture
def claude(access: ModelAccess) -> Iterator[anthropic.Anthropic]:
    gateway = access.gateway()
    base = gateway.base_url.removesuffix("/v1")
    with anthropic.Anthropic(base_url=base, auth_token=gateway.key, api_key=None) as client:
        yield client


def test_responses_are_those_of_a_chat(
    access: ModelAccess, sdk: openai.OpenAI, scripted_server: ScriptedServer
) -> None:
    items: Any = [
        {"role": "user", "content": [{"type": "input_text", "text": "I like tea."}]},
        {"type": "function_call", "call_id": "call_7", "name": "save", "arguments": '{"text": "tea"}'},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call_output", "call_id": "call_7", "output": "saved"},
        {"type": "message", "role": "user", "content": "And?"},
    ]
    form: Any = {"format": {"type": "json_schema", "name": "f", "schema": SCHEMA}}
    reply = sdk.responses.create(
        model="scripted", instructions="Be brief.", input=items, text=form, max_output_tokens=40, temperature=0
    )
    assert (reply.output_text, reply.status) == ("ok", "completed")
    assert reply.usage is not None
    assert reply.usage.output_tokens == 1
    (sent,) = scripted_server.requests
    assert sent["messages"] == WRITTEN
    assert sent["response_format"]["json_schema"]["schema"] == SCHEMA
    # A chat of the same texts is the same request, so it is not asked again.
    access.task.chat(WRITTEN, max_tokens=40, schema=SCHEMA, temperature=0)
    assert scripted_server.count == 1


def test_messages_are_those_of_a_chat(
    access: ModelAccess, claude: anthropic.Anthropic, scripted_server: ScriptedServer
) -> None:
    said: Any = [
        {"role": "user", "content": "I like tea."},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "call_7", "name": "save", "input": {"text": "tea"}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "call_7", "content": [{"type": "text", "text": "saved"}]},
                {"type": "text", "text": "And?"},
            ],
        },
    ]
    reply = claude.messages.create(
        model="scripted",
        max_tokens=40,
        system=[{"type": "text", "text": "Be brief."}],
        messages=said,
        stop_sequences=["END"],
    )
    assert [block.text for block in reply.content if block.type == "text"] == ["ok"]
    assert (reply.stop_reason, reply.usage.output_tokens) == ("end_turn", 1)
    (sent,) = scripted_server.requests
    assert (sent["messages"], sent["max_tokens"], sent["stop"]) == (WRITTEN, 40, ["END"])
    access.task.chat(WRITTEN, max_tokens=40, stop=["END"])
    assert scripted_server.count == 1


def test_both_stream_what_they_reply_whole(sdk: openai.OpenAI, claude: anthropic.Anthropic) -> None:
    with sdk.responses.stream(model="scripted", input="Hi") as events:
        assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "ok"
        assert events.get_final_response().output_text == "ok"
    with claude.messages.stream(model="scripted", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]) as stream:
        assert "".join(stream.text_stream) == "ok"
        assert stream.get_final_message().stop_reason == "end_turn"


def test_tools_are_called_in_the_form_of_each(
    sdk: openai.OpenAI, claude: anthropic.Anthropic, scripted_server: ScriptedServer
) -> None:
    function: Any = {"type": "function", "name": "save", "parameters": SCHEMA}
    with sdk.responses.stream(model="scripted", input="Hi", tools=[function], tool_choice="required") as events:
        streamed = list(events)
        called = events.get_final_response().output[-1]
    assert (called.type, called.call_id, called.name) == ("function_call", "call_7", "save")
    assert "response.function_call_arguments.done" in [event.type for event in streamed]
    tool: Any = {"name": "save", "input_schema": SCHEMA}
    asked: Any = [{"role": "user", "content": "Hi"}]
    chosen: Any = {"type": "any"}
    with claude.messages.stream(
        model="scripted", max_tokens=1024, messages=asked, tools=[tool], tool_choice=chosen
    ) as stream:
        message = stream.get_final_message()
    assert message.stop_reason == "tool_use"
    text, block = message.content
    assert (text.type, block.type) == ("text", "tool_use")
    assert (block.name, block.input) == ("save", {"text": "tea"})
    offered = {"type": "function", "function": {"name": "save", "parameters": SCHEMA}}
    (sent,) = scripted_server.requests  # both are the same request
    assert (sent["tools"], sent["tool_choice"]) == ([offered], "required")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id: is not offered"),
        ({"tools": [{"type": "web_search"}]}, "'web_search' is run by a server"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
            "only text is accepted",
        ),
        ({"max_output_tokens": -1}, "max_tokens"),
    ],
)
def test_what_is_not_offered_is_refused(
    sdk: openai.OpenAI, options: dict[str, Any], said: str, scripted_server: ScriptedServer
) -> None:
    with pytest.raises(openai.BadRequestError, match=said):
        sdk.responses.create(**{"model": "scripted", "input": "Hi", **options})
    assert scripted_server.count == 0


def test_a_cut_reply_is_told_as_such(
    sdk: openai.OpenAI, claude: anthropic.Anthropic, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = lambda body: Reply("ok ok", finish_reason="length")
    reply = sdk.responses.create(model="scripted", input="Hi", max_output_tokens=2)
    assert reply.incomplete_details is not None
    assert (reply.status, reply.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    asked: Any = [{"role": "user", "content": "Hi"}]
    assert claude.messages.create(model="scripted", max_tokens=2, messages=asked).stop_reason == "max_tokens"
