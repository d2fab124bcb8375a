"""What a model thought is no part of its answer, in whatever form an endpoint sends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from scripted_server import Reply, ScriptedServer
from test_strict_replies import chat_body

from tracing.errors import CallFailedError, ReplyCutShortError
from tracing.interchange.thinking import split_thinking
from tracing.llm.access import ModelAccess
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace

Open = Callable[..., ModelAccess]
HELLO = [{"role": "user", "content": "hello"}]

TEXTS = {
    "<think>It was Oslo.</think>\n\nOslo": ("Oslo", "It was Oslo."),
    "\n<THINKING>hm</THINKING>Oslo": ("Oslo", "hm"),
    "It was Oslo.\n</think>\nOslo": ("Oslo", "It was Oslo."),
    "<think>It was Os": ("", "It was Os"),
    "<think></think>Oslo": ("Oslo", ""),
    "[THINK]hm[/THINK]Oslo": ("Oslo", "hm"),
    "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Oslo<|END_RESPONSE|>": ("Oslo", "hm"),
    "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Oslo": (
        "Oslo",
        "hm",
    ),
    "<|channel|>analysis<|message|>hm": ("", "hm"),
    "Oslo": ("Oslo", ""),
    "<think>\nA ```draft``` first.\n</think>\n\nThe prompt": ("The prompt", "A ```draft``` first."),
    "<Reasoning>A draft": ("", "A draft"),
    "<think>a</think><think>is a tag</think>": ("<think>is a tag</think>", "a"),
    "Show <think>your thoughts</think> like that": ("Show <think>your thoughts</think> like that", ""),
    "She said <think> and left": ("She said <think> and left", ""),
    "x < y > z": ("x < y > z", ""),
}


@pytest.mark.parametrize(("text", "parts"), TEXTS.items())
def test_thinking_is_taken_apart(text: str, parts: tuple[str, str]) -> None:
    assert tuple(split_thinking(text)) == parts


THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
MESSAGES: dict[str, dict[str, Any]] = {
    "reasoning_content": {"content": "Oslo", "reasoning_content": "hm"},
    "reasoning": {"content": "Oslo", "reasoning": "hm"},
    "parts": {"content": [THOUGHT, {"type": "text", "text": "Oslo"}]},
    "tags": {"content": "<think>hm</think>Oslo"},
}


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
def test_a_reply_is_the_answer_and_keeps_what_was_thought(
    open_access: Open, scripted_server: ScriptedServer, message: dict[str, Any]
) -> None:
    scripted_server.script = lambda body: Reply(raw=chat_body(message=message))
    reply = open_access().task.chat(HELLO, max_tokens=9)
    assert (reply.text, reply.thinking) == ("Oslo", "hm")
    with trace() as recorder, operation("answer", kind="llm") as op:
        open_access().task.chat(HELLO, max_tokens=9)
    assert recorder.graph.operations[op.id].attributes["thinking"] == "hm"
    again = open_access().task.chat(HELLO, max_tokens=9)
    assert (again.text, again.thinking, again.cached) == ("Oslo", "hm", True)


@pytest.mark.parametrize("reason", ["max_tokens", "MAX_TOKENS", "model_length", "length"])
def test_a_reply_that_hit_its_limit_is_cut_whatever_the_word(
    open_access: Open, scripted_server: ScriptedServer, reason: str
) -> None:
    scripted_server.script = lambda body: Reply(raw=chat_body(content="Os", finish_reason=reason))
    assert open_access().task.chat(HELLO, max_tokens=9, whole=False).finish_reason == "length"


BROKEN: dict[str, dict[str, Any]] = {
    "finish reason": {"content": "Os", "finish_reason": "error"},
    "an error beside it": {"content": "Os", "error": {"code": 502, "message": "upstream is gone"}},
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_an_error_in_a_reply_is_asked_again_and_never_kept(
    open_access: Open, scripted_server: ScriptedServer, change: dict[str, Any]
) -> None:
    scripted_server.script = lambda body: Reply(raw=chat_body(**change))
    with pytest.raises(CallFailedError, match="after 2 attempts"):
        open_access(retries=1).task.chat(HELLO, max_tokens=9)
    scripted_server.script = lambda body: "Oslo"
    assert open_access().task.chat(HELLO, max_tokens=9).text == "Oslo"


def test_a_call_of_a_tool_that_is_cut_short_is_no_thinking(open_access: Open, scripted_server: ScriptedServer) -> None:
    called = {"id": "c", "type": "function", "function": {"name": "save", "arguments": '{"text": "Mar'}}
    message = {"role": "assistant", "content": None, "tool_calls": [called]}
    scripted_server.script = lambda body: Reply(raw=chat_body(message=message, finish_reason="length"))
    access = open_access()
    tools = {"tools": [{"type": "function", "function": {"name": "save", "parameters": {"type": "object"}}}]}
    with pytest.raises(ReplyCutShortError):
        access.task.chat(HELLO, max_tokens=9, tools=tools)
    assert [body["max_tokens"] for body in scripted_server.requests] == [9]
    assert access.accepted()["task"].sentence == ""
