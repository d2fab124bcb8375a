"""What an endpoint refuses of a request is learnt, kept, and left out or asked for otherwise."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from scripted_server import Reply, ScriptedServer
from test_strict_replies import chat_body

from tracing.errors import CallFailedError
from tracing.llm.access import ModelAccess
from tracing.llm.capabilities import THINKING_TOKENS

Open = Callable[..., ModelAccess]
HELLO = [{"role": "user", "content": "Is it red?"}]
SCHEMA = {"type": "object", "properties": {"red": {"type": "boolean"}}, "required": ["red"]}

NEW_LIMIT = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
TEMPERATURE = (
    "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is supported."
)


def refusing(field: str, text: str, **how: Any) -> Callable[[dict[str, Any]], Reply | str]:
    """Refuses each request that has the field, and says nothing else but this text."""
    raw = json.dumps(how.pop("raw")).encode() if "raw" in how else None

    def script(body: dict[str, Any]) -> Reply | str:
        refused = Reply(text, status=how.get("status", 400), raw=raw)
        return refused if field in body else "yes"

    return script


REFUSALS: dict[str, tuple[str, Callable[[dict[str, Any]], Reply | str]]] = {
    "another name of the limit": ("max_tokens", refusing("max_tokens", NEW_LIMIT)),
    "no temperature": ("temperature", refusing("temperature", TEMPERATURE)),
    "no temperature, as Mistral says it": (
        "temperature",
        refusing(
            "temperature", "", status=422, raw={"detail": [{"type": "extra_forbidden", "loc": ["body", "temperature"]}]}
        ),
    ),
    "no schema": ("response_format", refusing("response_format", "response_format is not supported by this model")),
    "no stop": ("stop", refusing("stop", "Unsupported parameter: 'stop' is not supported with this model.")),
    "no log-probabilities": (
        "logprobs",
        refusing("logprobs", "You are not allowed to request logprobs from this model"),
    ),
}


@pytest.mark.parametrize(("field", "script"), REFUSALS.values(), ids=REFUSALS)
def test_a_refused_field_is_left_out_and_not_sent_again(
    open_access: Open, scripted_server: ScriptedServer, field: str, script: Callable[[dict[str, Any]], Reply | str]
) -> None:
    scripted_server.script = script
    asked: dict[str, Any] = {"max_tokens": 9, "schema": SCHEMA, "stop": ["."], "alternatives": 2}
    with open_access(retries=0) as access:
        assert access.task.chat(HELLO, **asked).text == "yes"
        spent = access.budget.spent.calls
        assert spent == 1
        before = scripted_server.count
        access.task.chat(HELLO, **asked, sample=1)
        assert scripted_server.count == before + 1
    with open_access(retries=0) as again:
        assert again.task.chat(HELLO, **asked).cached
        again.task.chat(HELLO, **asked, sample=2)
        assert scripted_server.count == before + 2
    assert field not in scripted_server.requests[-1]


def test_where_no_schema_is_enforced_an_object_is_and_then_words_ask_for_it(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    taken: list[str] = []

    def script(body: dict[str, Any]) -> Reply | str:
        kind = body.get("response_format", {}).get("type", "none")
        if kind in taken:
            return '{"red": true}'
        return Reply(f"'response_format.type' : value {kind} is not supported", status=400)

    scripted_server.script = script
    for kind in ("json_object", "none"):
        taken[:] = [kind]
        name = f"model-{kind}"
        reply = open_access(model=name, retries=0).task.chat(HELLO, max_tokens=9, schema=SCHEMA)
        assert reply.text == '{"red": true}'
        said = scripted_server.requests[-1]["messages"][-1]["content"]
        assert said.startswith("Is it red?")
        assert '"boolean"' in said


def test_a_model_that_thinks_gets_room_for_it(open_access: Open, scripted_server: ScriptedServer) -> None:
    def script(body: dict[str, Any]) -> Reply:
        enough = body["max_tokens"] > 1000
        message = {"content": "yes" if enough else "", "reasoning_content": "hm"}
        return Reply(raw=chat_body(message=message, finish_reason="stop" if enough else "length"))

    scripted_server.script = script
    with open_access(retries=0) as access:
        assert access.task.chat(HELLO, max_tokens=9).text == "yes"
        assert [body["max_tokens"] for body in scripted_server.requests] == [9, 9 + THINKING_TOKENS]
    with open_access(retries=0) as again:
        assert again.task.chat(HELLO, max_tokens=9).cached


def test_a_refusal_that_is_about_something_else_is_told(open_access: Open, scripted_server: ScriptedServer) -> None:
    long = "This model's maximum context length is 8192 tokens. Please reduce the length of the messages or max_tokens."
    scripted_server.script = lambda body: Reply(long, status=400)
    with pytest.raises(CallFailedError, match="maximum context length"):
        open_access(retries=0).task.chat(HELLO, max_tokens=9)
    assert scripted_server.count == 1


def test_the_check_finds_out_what_is_refused_without_a_word_of_it(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = lambda body: Reply("Bad Request", status=400) if "response_format" in body else "hello"
    with open_access(retries=0) as access:
        access.check()
        access.task.chat(HELLO, max_tokens=9, schema=SCHEMA)
    assert "response_format" not in scripted_server.requests[-1]
