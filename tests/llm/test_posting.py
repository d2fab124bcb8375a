"""Requests go where they are sent, whatever the environment says of proxies, or the reason why they cannot is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mem0_model import Mem0Model
from scripted_server import Reply, ScriptedServer

from experiments.systems.mem0.prompts import PROMPTS
from experiments.systems.mem0.system import Mem0
from tracing.errors import CallFailedError, ConfigError
from tracing.llm.access import ModelAccess
from tracing.systems.conformance import SMALL_TALK

Open = Callable[..., ModelAccess]
HELLO = [{"role": "user", "content": "hello"}]


@pytest.fixture
def behind_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names a proxy that is not there."""
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("behind_a_proxy")
def test_what_is_on_this_machine_is_asked_without_the_proxy(open_access: Open, scripted_server: ScriptedServer) -> None:
    assert open_access(retries=0).task.chat(HELLO, max_tokens=9).text == "ok"
    scripted_server.script = Mem0Model()
    memory = Mem0().build(SMALL_TALK, {name: spec.text for name, spec in PROMPTS.items()}, open_access(retries=0))
    assert memory.state["entries"]


@pytest.mark.usefixtures("behind_a_proxy")
def test_other_machines_are_asked_through_the_proxy(open_access: Open) -> None:
    with pytest.raises(CallFailedError, match=r"127\.0\.0\.1', 9"):
        open_access(base_url="http://endpoint.invalid/v1", retries=0).task.chat(HELLO, max_tokens=9)


@pytest.mark.parametrize(
    ("name", "value"),
    [("SSL_CERT_FILE", "/nowhere/ca.pem"), ("ALL_PROXY", "socks9://me:kolibri07@host:1")],
)
def test_an_environment_that_cannot_be_used_is_told(
    open_access: Open, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=name) as refused:
        open_access().task.chat(HELLO, max_tokens=9)
    assert "kolibri07" not in str(refused.value)


@pytest.mark.parametrize("key", ["key with\nbreak-4711", "schlüssel-4711", "4711\x00null-byte"])
def test_a_key_that_no_header_can_hold_fails_at_once_and_is_not_shown(open_access: Open, key: str) -> None:
    with pytest.raises(CallFailedError) as failure:
        open_access(api_key=key).task.chat(HELLO, max_tokens=9)
    assert "attempts" not in str(failure.value)
    assert "4711" not in str(failure.value)


def test_a_key_that_is_repeated_in_a_reply_or_cut_by_the_endpoint_is_not_kept(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    key = "an-unusual-key-of-4711-letters"
    access = open_access(api_key=key, retries=0)
    scripted_server.script = lambda body: f"You sent {key}."
    assert access.task.chat(HELLO, max_tokens=9).text == "You sent [redacted]."
    for cut in range(8, len(key)):
        scripted_server.script = lambda body, cut=cut: Reply(f"{'x' * 480} {key[:cut]}", status=400)  # type: ignore[misc]
        with pytest.raises(CallFailedError) as failure:
            access.task.chat(HELLO, max_tokens=10 + cut)
        assert key[:8] not in str(failure.value) or cut < len(key) // 2
    scripted_server.script = lambda body: Reply(f"{'x' * 490} {key}", status=400)
    with pytest.raises(CallFailedError) as failure:
        access.task.chat(HELLO, max_tokens=9, sample=1)
    assert key[:6] not in str(failure.value)
