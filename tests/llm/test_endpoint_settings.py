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


def test_azure_gets_its_version_and_deployment(open_access: Open, scripted_server: ScriptedServer) -> None:
    asked: list[Any] = []
    scripted_server.script = lambda body: asked.append(body) or "ok"  # type: ignore[func-returns-value]
    url = scripted_server.base_url.removesuffix("/v1")
    with pytest.raises(CallFailedError, match="404"):
        open_access(base_url=url, api_version="2025-01-01", api_key="an-azure-key-4711", retries=0).task.chat(
            HELLO, max_tokens=9
        )


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
