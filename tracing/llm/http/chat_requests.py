"""A chat-completions request, as programs with their own client write it, in the terms of `ChatModel.chat`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracing.errors import ModelError

DEFAULT_MAX_TOKENS = 1024
"""Maximum length of a reply if a program with its own client gives none: budgets must reserve the most."""

_ABOUT_TOOLS = ("tools", "tool_choice", "parallel_tool_calls")
_OF_MESSAGES = ("name", "tool_calls", "tool_call_id")
"""What a message may have besides its role and content."""


def chat_messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages of a request; a `ModelError` if one holds more than text."""
    return [_message(message) for message in body["messages"]]


def chat_options(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a request says of the reply; fields that do not change its form (`top_p`, `user`) are left out.

    `seed` is the number of an independent sample.

    Raises:
        ModelError: it allows no reply.

    Example:
        >>> options = chat_options({"max_tokens": 40, "stop": "END"})
        >>> options["max_tokens"], options["stop"], options["whole"]
        (40, ['END'], False)
    """
    most = int(body.get("max_completion_tokens") or body.get("max_tokens") or DEFAULT_MAX_TOKENS)
    if most < 1:
        raise ModelError(f"max_tokens: {most} allows no reply; give 1 or more")
    form = body.get("response_format") or {"type": "text"}
    tools = {name: body[name] for name in _ABOUT_TOOLS if body.get(name) is not None} if body.get("tools") else None
    return {
        "max_tokens": most,
        "schema": form["json_schema"]["schema"] if form["type"] == "json_schema" else None,
        "json_object": form["type"] == "json_object",
        "temperature": body.get("temperature"),
        "sample": int(body.get("seed") or 0),
        "stop": [body["stop"]] if isinstance(body.get("stop"), str) else list(body.get("stop") or ()),
        "whole": form["type"] != "text",
        "tools": tools,
    }


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    further = {name: message[name] for name in _OF_MESSAGES if message.get(name)}
    # An assistant that only calls tools says nothing, which is not the same as an empty text to every endpoint.
    content = None if "tool_calls" in further and not message.get("content") else _text_of(message.get("content"))
    return {"role": str(message["role"]), "content": content, **further}


def _text_of(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not all(part.get("type") == "text" for part in content):
        raise ModelError("messages: only text is accepted")
    return "\n".join(part["text"] for part in content)
