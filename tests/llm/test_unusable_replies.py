"""A reply that could not be used is counted by operation and reason, told in its operation, and asked for once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from scripted_server import Reply, ScriptedServer
from test_strict_replies import chat_body

from tracing.errors import CallFailedError
from tracing.llm.access import ModelAccess
from tracing.llm.booking import note_malformed
from tracing.llm.forwarding.forwarded_access import ForwardedAccess
from tracing.llm.forwarding.forwarded_calls import answered, described
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace

Open = Callable[..., ModelAccess]
HELLO = [{"role": "user", "content": "hello there"}]


def error(message: str, **fields: Any) -> bytes:
    return json.dumps({"error": {"message": message, **fields}}).encode()


def refusal(made: dict[str, Any]) -> dict[str, Any]:
    made["choices"][0]["message"] = {"content": None, "refusal": "I cannot help with that."}
    return made


REPLIES: dict[str, tuple[str, Reply]] = {
    "a cut answer": ("cut short", Reply("As far as I can tell", finish_reason="length")),
    "an empty answer": ("empty", Reply("")),
    "a refusal": ("refused", Reply(change=refusal)),
    "a stop for refusal": ("refused", Reply("I", finish_reason="refusal")),
    "a filter's end": ("filtered", Reply("Mara li", finish_reason="content_filter")),
    "a filter's end without a message": ("filtered", Reply(raw=b'{"choices": [{"finish_reason": "content_filter"}]}')),
    "Gemini's end": ("filtered", Reply("", finish_reason="PROHIBITED_CONTENT")),
    "Gemini's blocked prompt": (
        "filtered",
        Reply(raw=b'{"choices": [], "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}'),
    ),
    "Azure's filter": (
        "filtered",
        Reply(status=400, raw=error("The response was filtered", code="content_filter", param="prompt")),
    ),
    "LiteLLM's of Azure": (
        "filtered",
        Reply(status=400, raw=error("litellm.ContentPolicyViolationError: AzureException", code="400")),
    ),
    "DeepSeek's": ("filtered", Reply(status=400, raw=error("Content Exists Risk", code="invalid_request_error"))),
    "OpenAI's of reasoning models": (
        "filtered",
        Reply(
            status=400, raw=error("Invalid prompt: your prompt was flagged as potentially violating our usage policy.")
        ),
    ),
    "OpenRouter's": ("filtered", Reply(status=403, raw=error("m requires moderation on p. Your input was flagged."))),
}


@pytest.mark.parametrize(("reason", "reply"), REPLIES.values(), ids=REPLIES)
def test_it_is_counted_for_its_operation_and_not_tried_again(
    open_access: Open, scripted_server: ScriptedServer, reason: str, reply: Reply
) -> None:
    scripted_server.script = lambda body: reply
    access = open_access(retries=3)
    with trace() as recorder, operation("answer", kind="llm") as op:
        answer = access.task.chat(HELLO, max_tokens=9, whole=False)
    assert answer.text == (reply.text if reason == "cut short" else "")
    assert access.meter.unusable() == {"answer": {reason: 1}}
    assert recorder.graph.operations[op.id].attributes["unusable"] == reason
    # An empty one may be an accident of the endpoint.
    assert scripted_server.asked == (2 if reason == "empty" else 1)


@pytest.mark.parametrize("status", [400, 403])
def test_another_refusal_of_a_request_is_a_failure(
    open_access: Open, scripted_server: ScriptedServer, status: int
) -> None:
    scripted_server.script = lambda body: Reply(status=status, raw=error("your account has been blocked"))
    with pytest.raises(CallFailedError, match="account has been blocked"):
        open_access().task.chat(HELLO, max_tokens=9)


def test_what_was_refused_is_asked_again_by_another_run_and_not_by_this(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = lambda body: REPLIES["Azure's filter"][1]
    access = open_access()
    for _ in range(2):
        assert access.task.chat(HELLO, max_tokens=9).finish_reason == "filtered"
    assert scripted_server.asked == 1
    scripted_server.script = lambda body: "Oslo"
    assert access.task.chat(HELLO, max_tokens=9).finish_reason == "filtered"
    assert open_access().task.chat(HELLO, max_tokens=9).text == "Oslo"
    assert scripted_server.asked == 2


def test_a_malformed_reply_to_a_worker_is_counted_where_its_calls_are(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = lambda body: Reply(raw=chat_body(message={"content": "<think>hm</think>no JSON"}))
    access = open_access()
    forwarded = ForwardedAccess(lambda request: answered(access, request), described(access))
    with forwarded.watch(), trace() as recorder, operation("extract", kind="llm") as op:
        reply = forwarded.task.chat(HELLO, max_tokens=9)
        note_malformed(reply.text)
    assert access.meter.unusable() == {"extract": {"malformed": 1}}
    attributes = recorder.graph.operations[op.id].attributes
    assert (attributes["unusable"], attributes["thinking"]) == ("malformed", "hm")
