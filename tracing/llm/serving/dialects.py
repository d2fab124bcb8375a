"""Requests of OpenAI's Responses API and of Anthropic's Messages as those of chat completions, and their replies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tracing.errors import ModelError
from tracing.files.depth import structured
from tracing.interchange.agent_memory.requests import calls_in, results_in
from tracing.interchange.speech import REASONING, TOOL_CALLS, TOOL_RESULTS, role_of, speech_of
from tracing.llm.models import ChatReply

_ELSEWHERE = ("previous_response_id", "conversation", "background", "prompt", "mcp_servers", "container")
"""Fields by which a reply depends on what a server keeps or does."""
_FIELDS = {
    **{name: name for name in ("model", "temperature", "parallel_tool_calls", "max_tokens")},
    "max_output_tokens": "max_tokens",
    "stop_sequences": "stop",
}
_STOPS = {"length": "max_tokens", "tool_calls": "tool_use", "filtered": "refusal", "refused": "refusal"}
_ID = "msg_memtune"


def as_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    """The same request to chat completions.

    Raises:
        ModelError: it holds what the models of an access are not asked for.

    Example:
        >>> chat = as_chat({"model": "m", "system": "Be brief.", "messages": [{"role": "user", "content": "Hi"}]})
        >>> [message["role"] for message in chat["messages"]]
        ['system', 'user']
    """
    for name in (name for name in _ELSEWHERE if body.get(name)):
        raise ModelError(f"{name}: is not offered; send what the model needs in the request")
    said, rules = body.get("messages", body.get("input")), body.get("system") or body.get("instructions")
    told = [{"role": "system", "content": rules}] if rules else []
    asked = [{"role": "user", "content": said}] if isinstance(said, str) else said or []
    chat = {field: body[name] for name, field in _FIELDS.items() if body.get(name) is not None}
    chat["messages"] = list(_messages([*told, *asked]))
    form = (body.get("text") or body.get("output_config") or {}).get("format") or body.get("output_format")
    if form:
        schema = {"json_schema": {"name": "reply", "schema": form["schema"]}} if "schema" in form else {}
        chat["response_format"] = {"type": form["type"], **schema}
    if body.get("tools"):
        chat["tools"] = [_tool(tool) for tool in body["tools"]]
        choice = body.get("tool_choice")
        kind, tool = (choice.get("type"), choice.get("name")) if isinstance(choice, Mapping) else (choice, None)
        named = {"type": "function", "function": {"name": tool}} if tool else None
        chat |= {"tool_choice": named or ("required" if kind == "any" else kind)} if kind else {}
    return chat


def response_of(reply: ChatReply) -> dict[str, Any]:
    """A reply as one of the Responses API."""
    cut = reply.finish_reason == "length"
    text = {"type": "output_text", "text": reply.text, "annotations": []}
    message = {"id": _ID, "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    calls = [
        {"type": "function_call", "id": call["id"], "call_id": call["id"], **call["function"]}
        for call in reply.tool_calls
    ]
    usage = {"input_tokens": reply.prompt_tokens, "output_tokens": reply.completion_tokens}
    return {
        "id": "resp_memtune",
        "object": "response",
        "created_at": 0,
        "model": reply.model,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": [*([message] if reply.text or not calls else []), *calls],
        "usage": {
            **usage,
            "total_tokens": sum(usage.values()),
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
        **dict.fromkeys(("error", "instructions", "metadata", "temperature", "top_p")),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def response_events(reply: ChatReply) -> list[dict[str, Any]]:
    """The same as the events of a stream."""
    whole = response_of(reply)
    events: list[tuple[str, dict[str, Any]]] = [("created", {"response": {**whole, "output": []}})]
    for at, item in enumerate(whole["output"]):
        place = {"output_index": at, "item_id": item["id"]}
        empty = {**item, **({"content": []} if "content" in item else {"arguments": ""})}
        events.append(("output_item.added", {"output_index": at, "item": empty}))
        if "content" in item:
            (part,), here = item["content"], {**place, "content_index": 0}
            events.append(("content_part.added", {**here, "part": {**part, "text": ""}}))
            events.append(("output_text.delta", {**here, "delta": part["text"], "logprobs": []}))
            events.append(("output_text.done", {**here, "text": part["text"], "logprobs": []}))
            events.append(("content_part.done", {**here, "part": part}))
        else:
            events.append(("function_call_arguments.delta", {**place, "delta": item["arguments"]}))
            events.append(
                ("function_call_arguments.done", {**place, "name": item["name"], "arguments": item["arguments"]})
            )
        events.append(("output_item.done", {"output_index": at, "item": item}))
    events.append((whole["status"], {"response": whole}))
    return [{"type": f"response.{name}", **event, "sequence_number": at} for at, (name, event) in enumerate(events)]


def message_of(reply: ChatReply) -> dict[str, Any]:
    """A reply as one of Anthropic's Messages."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text or not reply.tool_calls else []
    for call in reply.tool_calls:
        arguments = structured(call["function"]["arguments"])
        blocks.append(
            {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": arguments or {}}
        )
    return {
        "id": _ID,
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": blocks,
        "stop_reason": "tool_use" if reply.tool_calls else _STOPS.get(reply.finish_reason, "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": reply.prompt_tokens, "output_tokens": reply.completion_tokens},
    }


def message_events(reply: ChatReply) -> list[dict[str, Any]]:
    """The same as the events of a stream."""
    whole = message_of(reply)
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}]
    for at, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty: dict[str, Any] = {"text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            empty = {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events.append({"type": "content_block_start", "index": at, "content_block": {**block, **empty}})
        events.append({"type": "content_block_delta", "index": at, "delta": delta})
        events.append({"type": "content_block_stop", "index": at})
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    return [*events, {"type": "message_delta", "delta": end, "usage": whole["usage"]}, {"type": "message_stop"}]


DIALECTS = {"/v1/responses": (response_of, response_events), "/v1/messages": (message_of, message_events)}
"""Path → what a reply becomes there, whole and as a stream."""


def _messages(said: list[Any]) -> Iterator[dict[str, Any]]:
    """Messages of either form: what one calls, and what its calls returned, have messages of their own in a chat."""
    calls: list[dict[str, Any]] = []
    for message in [*said, {}]:
        called = [
            {"id": name, "type": "function", "function": {"name": tool, "arguments": _as_json(arguments)}}
            for name, tool, arguments in calls_in(message)
        ]
        calls += called
        if calls and not called and message.get("type") != "reasoning":
            yield {"role": "assistant", "content": None, "tool_calls": calls}
            calls = []
        for name, result in results_in(message):
            yield {"role": "tool", "content": speech_of(result).text, "tool_call_id": name}
        speech = speech_of(message)
        unread = [noun for noun in speech.omitted if noun not in (TOOL_CALLS, TOOL_RESULTS, REASONING)]
        if unread:
            raise ModelError(f"messages: only text is accepted, not {', '.join(unread)}")
        if speech.text:
            yield {"role": role_of(message).replace("developer", "system"), "content": speech.text}


def _as_json(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    if tool.get("type", "custom") not in ("custom", "function"):
        raise ModelError(f"tools: {tool['type']!r} is run by a server that is not asked; offer functions alone")
    told = {key: tool[key] for key in ("name", "description", "strict") if tool.get(key) is not None}
    return {"type": "function", "function": {**told, "parameters": tool.get("input_schema", tool.get("parameters"))}}
