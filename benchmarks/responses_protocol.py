"""OpenAI's Responses protocol over a script for chats: requests as chat requests, chat replies as responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def chat_request(body: Mapping[str, Any]) -> dict[str, Any]:
    """The chat request that a request for a response amounts to."""
    asked = body["input"]
    items = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
    system = [{"role": "system", "content": body["instructions"]}] if body.get("instructions") else []
    return {"model": body.get("model"), "messages": [*system, *map(_message, items)]}


def _message(item: Mapping[str, Any]) -> dict[str, Any]:
    kind = item.get("type", "message")
    if kind == "function_call":
        called = {"name": item["name"], "arguments": item["arguments"]}
        call = {"id": item["call_id"], "type": "function", "function": called}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if kind == "function_call_output":
        return {"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]}
    return {"role": item["role"], "content": item["content"]}


def response_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """A chat reply as a response."""
    usage = answer["usage"]
    return {
        "id": "resp_scripted",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": answer["model"],
        "output": list(_output(answer["choices"][0]["message"])),
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["total_tokens"],
        },
    }


def _output(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for call in message.get("tool_calls") or ():
        asked = {"name": call["function"]["name"], "arguments": call["function"]["arguments"]}
        yield {"type": "function_call", "id": f"fc_{call['id']}", "call_id": call["id"], "status": "completed", **asked}
    if message.get("content"):
        text = {"type": "output_text", "text": message["content"], "annotations": []}
        yield {
            "type": "message",
            "id": "msg_scripted",
            "role": "assistant",
            "status": "completed",
            "content": [text],
        }
