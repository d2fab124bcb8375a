"""What would fail every call of a run is told before it begins, within 15 seconds and with the remedy."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from scripted_server import Reply, ScriptedServer

from tracing.errors import CallFailedError, ConfigError
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits, ModelSettings

Open = Callable[..., ModelAccess]


def refused_within_15_s(access: ModelAccess, *remedy: str) -> None:
    started = time.monotonic()
    with pytest.raises((CallFailedError, ConfigError)) as failure:
        access.check()
    assert time.monotonic() - started < 15
    assert "\n" not in str(failure.value)
    assert [text for text in remedy if text not in str(failure.value)] == []


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(401, "OPENAI_API_KEY"), (403, "OPENAI_API_KEY"), (404, "check base_url and model")],
)
def test_a_key_or_model_that_is_refused_is_told_at_once(
    open_access: Open, scripted_server: ScriptedServer, status: int, remedy: str
) -> None:
    scripted_server.script = lambda body: Reply("no such thing", status=status)
    refused_within_15_s(open_access(), f"HTTP {status}", "no such thing", remedy)
    assert scripted_server.count == 1


def test_a_wrong_key_is_told_with_where_it_comes_from(open_access: Open, scripted_server: ScriptedServer) -> None:
    scripted_server.script = lambda body: Reply("wrong key", status=401)
    refused_within_15_s(open_access(api_key="sk-wrong-key-4711-4711"), "api_key_env", "check the key")


def test_an_unknown_model_is_told_however_the_endpoint_refuses_it(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = lambda body: Reply(f"{body['model']} is not a valid model ID", status=400)
    refused_within_15_s(open_access(), "scripted is not a valid model ID", "model")


def test_an_endpoint_that_is_not_there_is_told_at_once(open_access: Open) -> None:
    refused_within_15_s(open_access(base_url="http://127.0.0.1:9/v1"), "127.0.0.1:9", "check base_url")


def test_a_variable_that_is_named_and_not_set_is_told_without_a_call(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    refused_within_15_s(open_access(api_key_env="MY_OTHER_KEY"), "MY_OTHER_KEY is not set; set it")
    assert scripted_server.count == 0


def test_the_endpoint_of_every_role_is_asked(scripted_server: ScriptedServer) -> None:
    def model(name: str, url: str = scripted_server.base_url) -> ModelSettings:
        return ModelSettings(model=name, base_url=url)

    roles = {"task": model("t"), "judge": model("j"), "proposer": model("t"), "embedding": model("e")}
    with ModelAccess.open(roles, cache_dir=None, limits=Limits()) as access:  # type: ignore[arg-type]
        access.check()
        assert sorted(request["model"] for request in scripted_server.requests) == ["j", "t"]
        assert [request["model"] for request in scripted_server.embedding_requests] == ["e"]
        assert access.budget.spent.calls == access.meter.totals()["calls_made"] == 0
    roles["embedding"] = model("e", "http://127.0.0.1:9/v1")
    with ModelAccess.open(roles, cache_dir=None, limits=Limits()) as access:  # type: ignore[arg-type]
        refused_within_15_s(access, "e at http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=429),
        Reply(status=503),
        Reply("one token is too few", status=400),
        Reply(raw=b"?"),
        Reply(drop=True, text="x" * 99),
    ],
    ids=["429", "503", "too small", "malformed", "broken off"],
)
def test_what_may_pass_does_not_keep_a_run_from_beginning(
    open_access: Open, scripted_server: ScriptedServer, reply: Reply
) -> None:
    scripted_server.script = lambda body: reply
    open_access().check()


def test_the_embedded_model_is_not_asked(scripted_server: ScriptedServer) -> None:
    task = ModelSettings(model="m", base_url=scripted_server.base_url)
    with ModelAccess.open({"task": task}, cache_dir=None, limits=Limits()) as access:
        access.check()
        assert access.embedding.settings.embedded
    assert (scripted_server.count, len(scripted_server.embedding_requests)) == (1, 0)
