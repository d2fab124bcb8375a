"""What users say of their endpoint reaches it: limits, further fields and headers, a key's command, a pace."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Reply, ScriptedServer

from tracing.errors import CallFailedError, ConfigError
from tracing.llm.access import ModelAccess
from tracing.recording.operations import operation
from tracing.recording.trace_context import trace

Open = Callable[..., ModelAccess]
HELLO = [{"role": "user", "content": "hello"}]


def test_limits_fields_and_effort_are_in_the_request_and_in_the_key(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    own = {"max_tokens": {"answer": 100}, "extra_body": {"top_k": 5}, "reasoning_effort": "low"}
    with open_access(**own) as access, trace():
        with operation("answer", kind="llm"):
            access.task.chat(HELLO, max_tokens=9)
        access.task.chat(HELLO, max_tokens=9)
    first, second = scripted_server.requests
    assert (first["max_tokens"], second["max_tokens"]) == (100, 9)
    assert (first["top_k"], first["reasoning_effort"]) == (5, "low")
    with open_access() as other:
        assert not other.task.chat(HELLO, max_tokens=9).cached


def test_a_command_gives_the_key_and_is_asked_again_when_it_is_refused(
    open_access: Open, scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    keys = tmp_path / "key"
    keys.write_text("first-key-4711-4711")
    printing = f"{sys.executable} -c \"print(open(r'{keys}').read())\""
    with open_access(key_command=printing, retries=0) as access:
        assert access.task.chat(HELLO, max_tokens=9).text == "ok"
        keys.write_text("second-key-4711-4711")
        scripted_server.script = lambda body: (
            "ok" if scripted_server.keys[-1] == "second-key-4711-4711" else Reply("expired", status=401)
        )
        assert access.task.chat(HELLO, max_tokens=10).text == "ok"
        keys.write_text("second-key-4711-4711")
        scripted_server.script = lambda body: Reply("expired", status=401)
        with pytest.raises(CallFailedError, match="401"):
            access.task.chat(HELLO, max_tokens=11)


@pytest.mark.parametrize("command", ["no-such-program-4711", f"{sys.executable} -c 'raise SystemExit(3)'"])
def test_a_command_that_gives_no_key_is_told(open_access: Open, command: str) -> None:
    with pytest.raises(ConfigError, match="key_command"):
        open_access(key_command=command).task.chat(HELLO, max_tokens=9)


def test_requests_keep_to_a_minute_and_to_what_is_allowed_after_a_429(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    with open_access(requests_per_minute=600) as access:
        started = time.monotonic()
        for sample in range(4):
            access.task.chat(HELLO, max_tokens=9, sample=sample)
        assert time.monotonic() - started >= 0.3
    refused = iter([True, True, False])
    scripted_server.script = lambda body: Reply("slow down", status=429) if next(refused, False) else "ok"
    assert open_access(cache=False).task.chat(HELLO, max_tokens=9).text == "ok"


EVERYTHING = "takes max_tokens, json_schema, temperature, seed, logprobs, top_logprobs; tells usage"


def refusing(*fields: str, **how: Any) -> Callable[[dict[str, Any]], Reply | str]:
    """Refuses each request that has any of these fields, without a word of it."""
    answer = Reply("ok", first_token={"ok": -0.1}, **how)
    return lambda body: Reply("Bad Request", status=400) if set(fields) & set(body) else answer


def without_usage(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "usage"}


@pytest.mark.parametrize(
    ("script", "most", "description"),
    [
        (refusing(), 1, EVERYTHING),
        (
            refusing("seed", "response_format"),
            9,
            "takes max_tokens, temperature, logprobs, top_logprobs; not json_schema, json_object, seed; tells usage",
        ),
        (
            lambda body: "ok",
            1,
            "takes max_tokens, json_schema, temperature, seed; not logprobs, top_logprobs; tells usage",
        ),
        (refusing(change=without_usage), 1, EVERYTHING.replace("tells", "tells no")),
    ],
    ids=["everything", "two fields without a word", "log-probabilities ignored", "no usage"],
)
def test_one_small_request_learns_what_the_endpoint_of_a_role_takes(
    open_access: Open, scripted_server: ScriptedServer, script: Callable[..., Any], most: int, description: str
) -> None:
    scripted_server.script = script
    access = open_access(retries=0)
    access.check(alternatives=3)
    taken = access.accepted()
    assert taken["task"].description == description
    assert taken["embedding"].description == "takes encoding_format; tells usage"
    assert scripted_server.count <= most
    assert len(scripted_server.embedding_requests) == 1


def test_log_probabilities_are_tried_where_the_run_asks_for_them(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    open_access().check()
    assert "logprobs" not in scripted_server.requests[-1]


def test_what_is_learnt_changes_the_key_of_requests_that_have_it_alone(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    with open_access(retries=0) as access:
        access.task.chat(HELLO, max_tokens=9)
        access.task.chat(HELLO, max_tokens=9, temperature=0.5)
    scripted_server.script = refusing("seed")
    with open_access(retries=0) as access:
        access.check()
        assert access.accepted()["task"].without == ("seed",)
        assert access.task.chat(HELLO, max_tokens=9).cached
        assert not access.task.chat(HELLO, max_tokens=9, temperature=0.5).cached


def test_a_model_that_takes_no_temperature_samples(open_access: Open, scripted_server: ScriptedServer) -> None:
    scripted_server.script = refusing("temperature")
    access = open_access(retries=0)
    assert not access.task.samples
    access.check()
    assert access.task.samples


def test_an_own_field_that_is_refused_is_told_before_the_run(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = lambda body: Reply("Unknown parameter: 'top_k'", status=400) if "top_k" in body else "ok"
    with pytest.raises(CallFailedError, match=r"top_k.*leave out top_k"):
        open_access(extra_body={"top_k": 5}, retries=0).check()


def test_own_fields_are_in_requests_for_embeddings_and_in_what_memories_depend_on(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    plain, own = open_access(), open_access(extra_body={"dimensions": 8})
    own.embedding.embed(["a"])
    assert scripted_server.embedding_requests[-1]["dimensions"] == 8
    assert plain.identities().keys() == {
        role for role, identity in own.identities().items() if identity != plain.identities()[role]
    }
    secret = open_access(extra_body={"dimensions": 8, "api_key": "a-key-4711-4711-4711"})
    renewed = open_access(extra_body={"dimensions": 8, "api_key": "another-key-4711-4711"})
    secret.task.chat(HELLO, max_tokens=9)
    assert renewed.task.chat(HELLO, max_tokens=9).cached
    assert renewed.identities() == secret.identities()


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("pass", "printed nothing"),
        ("print('a key'); print('of lines')", "printed 2 lines"),
        ("import subprocess; subprocess.run(['sleep', '60'])", "no key within 0.5 s"),
    ],
)
def test_a_command_that_prints_no_key_or_none_in_time_is_told(
    open_access: Open, monkeypatch: pytest.MonkeyPatch, program: str, problem: str
) -> None:
    monkeypatch.setattr("tracing.llm.settings._KEY_COMMAND_S", 0.5 if "sleep" in program else 60)
    started = time.monotonic()
    with pytest.raises(ConfigError, match=rf"key_command .*{problem}.*run it in a terminal"):
        open_access(key_command=f'{sys.executable} -c "{program}"').task.chat(HELLO, max_tokens=9)
    assert time.monotonic() - started < 40


def test_what_an_endpoint_repeats_of_headers_and_fields_is_in_no_message_and_no_reply(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    header, leaf = "header-value-4711-4711", "leaf-value-4711-4711"
    own = {"headers": {"X-Team": f"Token {header}"}, "extra_body": {"login": {"api_key": leaf}}, "retries": 0}
    scripted_server.script = lambda body: f"got {header} and {leaf}"
    access = open_access(**own)
    assert access.task.chat(HELLO, max_tokens=9).text == "got [redacted] and [redacted]"
    assert {header, leaf} <= set(access.keys)
    scripted_server.script = lambda body: Reply(f"got {header} and {leaf}", status=400)
    with pytest.raises(CallFailedError, match=r"got \[redacted\] and \[redacted\]"):
        access.task.chat(HELLO, max_tokens=10)
