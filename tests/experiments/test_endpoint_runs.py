"""Runs on an endpoint that takes less than others, or wants secrets beside a key: what they learn, show and keep."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import mlflow
import pytest
import yaml
from memtune_command import MemtuneCommand
from scripted_server import CHECK, Reply, ScriptedServer

from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.runs.config_file import load_config
from tracing.errors import ConfigError

SMALL = "system: rag\nlimits: {conversations: 3, questions: 1}\nrounds: 0\nconcurrency: 1\n"


def without_temperature(body: dict[str, Any]) -> Reply | str:
    """The small request is taken, and what comes after it is refused if it has a temperature."""
    if body["messages"] != CHECK and "temperature" in body:
        return Reply("Unsupported value: 'temperature' does not support 0.0 with this model.", status=400)
    return "unknown"


@pytest.mark.slow
def test_a_refusal_in_a_run_costs_one_request_and_is_shown_and_kept(
    memtune: MemtuneCommand, scripted_server: ScriptedServer, mlflow_home: Path, tmp_path: Path
) -> None:
    scripted_server.script = without_temperature
    memtune.configure("rag.yaml", SMALL)
    code, out, err = memtune("run", "rag.yaml", "--home", "home", "--out", "run")
    assert code == 0, err
    refused = [body for body in scripted_server.requests if body["messages"] != CHECK and "temperature" in body]
    assert len(refused) == 1
    assert "The endpoint of the task model: it does not take temperature." in out
    summary = json.loads(Path("run/summary.json").read_text())
    assert summary["samples"] is True
    assert summary["endpoints"]["task"] == {
        "token_limit": "max_tokens",
        "reply_format": "json_schema",
        "without": ["temperature"],
        "texts": None,
        "thinks": False,
        "tried": ["max_tokens", "response_format", "temperature", "seed"],
        "usage": True,
    }
    line = "takes max_tokens, json_schema, seed; not temperature; tells usage"
    assert line in Path("run/report.html").read_text()
    client = mlflow.MlflowClient(store_uri(mlflow_home))
    assert client.get_run(summary["mlflow"]["run_id"]).data.tags["endpoint.task"] == line

    asked = scripted_server.asked
    for again in (["--out", "second"], ["--resume", "run"]):
        code, _, err = memtune("run", "rag.yaml", "--home", "home", *again)
        assert code == 0, err
    assert scripted_server.asked == asked


@pytest.mark.slow
def test_a_key_that_expires_in_a_run_stops_it_and_it_goes_on_with_a_valid_one(
    memtune: MemtuneCommand, scripted_server: ScriptedServer
) -> None:
    """What was answered before is asked no more, and the end is that of a run whose key stayed valid."""
    memtune.configure("rag.yaml", SMALL)
    scripted_server.script = lambda body: "Bergen"
    assert memtune("run", "rag.yaml", "--home", "whole", "--out", "whole-run")[0] == 0
    answered = []

    def expiring(body: dict[str, Any]) -> Reply | str:
        if body["messages"] == CHECK or len(answered) < 2:
            answered.append(body)
            return "Bergen"
        return Reply("the access token has expired", status=401)

    scripted_server.script = expiring
    code, _, err = memtune("run", "rag.yaml", "--home", "home", "--out", "run")
    assert code == 2
    assert "the access token has expired" in err
    assert "check the key" in err
    assert err.splitlines()[-1].endswith("go on with: memtune run --resume run")
    assert json.loads(Path("run/summary.json").read_text())["stopped"].startswith("error")

    kept = [body for body in answered if body["messages"] != CHECK]
    scripted_server.script = lambda body: answered.append(body) or "Bergen"
    code, _, err = memtune("run", "--resume", "run", "--home", "home")
    assert code == 0, err
    assert not [body for body in answered[answered.index(kept[-1]) + 1 :] if body in kept]
    whole, resumed = (json.loads(Path(run, "summary.json").read_text()) for run in ("whole-run", "run"))
    assert resumed["baseline"] == whole["baseline"]


HEADER, LEAF, PRINTED = "header-value-4711-4711", "leaf-value-4711-4711", "printed-key-4711-4711"


@pytest.mark.slow
def test_secrets_of_an_endpoint_are_sent_and_kept_nowhere_and_a_resumed_run_wants_them_again(
    memtune: MemtuneCommand,
    scripted_server: ScriptedServer,
    mlflow_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The endpoint repeats all that it gets, in replies and in errors."""
    here = threading.local()
    handler: Any = scripted_server._http.RequestHandlerClass
    post = handler.do_POST

    def note(self: Any) -> None:
        here.headers = dict(self.headers)
        post(self)

    monkeypatch.setattr(handler, "do_POST", note)
    repeated: list[str] = []

    def repeat(body: dict[str, Any]) -> Reply | str:
        text = f"{here.headers} { ({name: value for name, value in body.items() if name != 'messages'}) }"
        repeated.append(text)
        return Reply(text, status=400) if len(repeated) > 3 else Reply(text)

    scripted_server.script = repeat
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "key").write_text(PRINTED)
    command = f"{sys.executable} -c \"print(open(r'{tmp_path}/keys/key').read())\""
    memtune.configure("rag.yaml", SMALL)
    values = yaml.safe_load(Path("rag.yaml").read_text())
    own = {"headers": {"X-Team": HEADER}, "extra_body": {"top_k": 5, "login": {"api_key": LEAF}}}
    values["models"]["task"] |= {**own, "key_command": command}
    values["budget"] = {"calls": 60}
    Path("keys/rag.yaml").write_text(yaml.safe_dump(values))

    said = [*memtune("doctor", "keys/rag.yaml", "--home", "home")[1:]]
    said += memtune("run", "keys/rag.yaml", "--home", "home", "--out", "run")[1:]
    assert any("HTTP 400" in text for text in said)
    assert all(secret in repeated[0] for secret in (HEADER, LEAF, PRINTED))
    kept = [path for folder in (tmp_path, mlflow_home) for path in folder.rglob("*") if path.is_file()]
    kept = [path for path in kept if path.parent.name != "keys"]
    assert any(path.name == "responses.sqlite" for path in kept)
    for secret in (HEADER, LEAF, PRINTED):
        assert not [text for text in said if secret in text]
        assert not [path.name for path in kept if secret.encode() in path.read_bytes()]
    config = yaml.safe_load(Path("run/config.yaml").read_text())["models"]["task"]
    assert (config["headers"], config["key_command"]) == ({"X-Team": "[redacted]"}, command)

    scripted_server.script = lambda body: "unknown"
    for dry in ([], ["--dry-run"]):
        code, _, err = memtune("run", "--resume", "run", "--home", "home", *dry)
        assert code == 2
        assert "headers.X-Team, extra_body.login is not kept in a run's config.yaml; name the YAML file" in err
    code, _, err = memtune("run", "keys/rag.yaml", "--resume", "run", "--home", "home")
    assert code == 0, err


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("max_tokens: 0", "task.max_tokens: must be a number of tokens above 0"),
        ("max_tokens: true", "task.max_tokens: must be a number of tokens above 0"),
        ("max_tokens: {answer: -1}", "task.max_tokens: must be a number of tokens above 0"),
        ("extra_body: {messages: []}", "task.extra_body: must not have messages; memtune sets it itself"),
        ("extra_body: {stream: true}", "task.extra_body: must not have stream; memtune sets it itself"),
        ("extra_body: {model: x}", "task.extra_body: must not have model; give it as model"),
        ("extra_body: {max_completion_tokens: 5}", "must not have max_completion_tokens; give it as max_tokens"),
        ("extra_body: {day: 2026-01-01}", "task.extra_body: cannot be sent as JSON"),
        ("extra_body: {x: .nan}", "task.extra_body: cannot be sent as JSON"),
        ("extra_body: [1]", "task.extra_body: input should be a valid dictionary"),
        ('headers: {"A B": x}', "task.headers: 'A B' is no name of a header"),
        ('headers: {X-A: "header-value-4711-4711\\r\\nX-B: 1"}', "task.headers: X-A has a line break"),
        ("headers: {X-A: [header-value-4711-4711]}", "task.headers.X-A: input should be a valid string"),
        ("headers: header-value-4711-4711", "task.headers: input should be a valid dictionary"),
        ("headers: {Content-Length: '5'}", "task.headers: Content-Length belongs to the connection"),
        ("requests_per_minute: -3", "task.requests_per_minute: input should be greater than 0"),
        ("tokens_per_minute: many", "task.tokens_per_minute: input should be a valid integer"),
        ("reasoning_effort: ''", "task.reasoning_effort: string should have at least 1 character"),
        ("key_command: ''", "task.key_command: is no command (it is empty)"),
        ('key_command: "echo \'x"', "task.key_command: is no command (No closing quotation)"),
        ("base_url: 'https://h/openai/v1', api_version: '2024-10-21'", "task: api_version: is for Azure's dated API"),
    ],
)
def test_a_wrong_setting_of_a_model_is_told_with_file_key_and_remedy(tmp_path: Path, settings: str, told: str) -> None:
    (tmp_path / "c.yaml").write_text(f"models: {{task: {{model: m, {settings}}}}}")
    with pytest.raises(ConfigError) as refused:
        load_config(str(tmp_path / "c.yaml"))
    assert str(refused.value).startswith(f"{tmp_path / 'c.yaml'}: models.")
    assert told in str(refused.value)
    assert "; " in str(refused.value)
    assert HEADER not in str(refused.value)


def test_limits_of_replies_name_operations_and_are_not_for_embeddings(
    memtune: MemtuneCommand, scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    memtune.configure("rag.yaml", SMALL, model=", max_tokens: {anser: 50}")
    assert "embedding.max_tokens: an embedding model writes no reply" in memtune("run", "rag.yaml")[2]
    values = yaml.safe_load(Path("rag.yaml").read_text())
    del values["models"]["embedding"]["max_tokens"]
    Path("rag.yaml").write_text(yaml.safe_dump(values))
    code, _, err = memtune("run", "rag.yaml", "--dry-run")
    assert code == 2
    assert "models.task.max_tokens: there is no operation 'anser'; did you mean 'answer'?; choose from chunk" in err


def test_another_address_goes_without_the_secrets_of_the_first(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "models: {task: {model: m, base_url: 'http://one/v1', headers: {X-A: header-value-4711-4711}, "
        "key_command: print-it, extra_body: {top_k: 5, api_key: leaf-value-4711-4711}}}"
    )
    task = load_config(str(tmp_path / "c.yaml"), overrides={"models.task.base_url": "http://two/v1"}).models.task
    assert (task.headers, task.key_command, task.extra_body) == ({}, None, {"top_k": 5})
