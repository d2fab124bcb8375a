"""A model of another protocol answers through litellm as one of OpenAI's protocol does, within the same limits."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fallible_model import let_answer
from scripted_server import ScriptedServer

from experiments.data.loaders import load_dataset
from experiments.running.parts import load_config
from tracing.errors import CallFailedError, ConfigError
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits, ModelSettings

pytest.importorskip("litellm")

KEY = "sk-ant-key-4711-4711-4711"
MODEL = "anthropic/claude-sonnet-4-20250514"
HELLO = [{"role": "user", "content": "hello"}]


class Messages:
    """Speaks Anthropic's Messages API on loopback; what it answers is the scripted server's business.

    Attributes:
        refusals: status and headers of the next answers.
        requests, keys: as they came.
    """

    def __init__(self, scripted: ScriptedServer) -> None:
        self.refusals: list[tuple[int, dict[str, str]]] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(handler) -> None:  # noqa: N805
                body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
                self.requests.append(body)
                self.keys.add(handler.headers["x-api-key"])
                status, headers = self.refusals.pop(0) if self.refusals else (200, {})
                answer = self._answer(scripted, body)
                if status != 200:
                    answer = {"type": "error", "error": {"type": "an_error", "message": f"refused: {status} {KEY}"}}
                content = json.dumps(answer).encode()
                handler.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    handler.send_header(name, value)
                handler.end_headers()
                handler.wfile.write(content)

            def log_message(handler, *_: Any) -> None:  # noqa: N805
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.base_url = f"http://127.0.0.1:{self.http.server_port}"

    def _answer(self, scripted: ScriptedServer, body: dict[str, Any]) -> dict[str, Any]:
        """The scripted reply, in the form of a tool's input where one is to be called."""
        system = body.get("system") or []
        texts = [*system] if isinstance(system, list) else [{"text": system}]
        parts = [part for message in body["messages"] for part in message["content"]]
        text = "\n".join(part if isinstance(part, str) else part.get("text", "") for part in [*texts, *parts])
        wanted = body.get("tools") or body.get("output_format") or body.get("output_config") or ""
        reply = scripted.script({"messages": [{"role": "user", "content": text}], "response_format": wanted})
        assert isinstance(reply, str)
        block: dict[str, Any] = {"type": "text", "text": reply}
        if body.get("tools"):
            block = {"type": "tool_use", "id": "t", "name": body["tools"][0]["name"], "input": json.loads(reply)}
        return {
            "id": "msg",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [block],
            "stop_reason": "tool_use" if body.get("tools") else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 12, "output_tokens": 3},
        }


@pytest.fixture
def messages(scripted_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Messages]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-no-business-of-anthropic")
    server = Messages(scripted_server)
    thread = threading.Thread(target=server.http.serve_forever, daemon=True)
    thread.start()
    yield server
    server.http.shutdown()
    server.http.server_close()


def opened(messages: Messages, **settings: Any) -> ModelAccess:
    model = ModelSettings(model=MODEL, litellm=True, **{"base_url": messages.base_url, **settings})
    return ModelAccess.open({"task": model, "embedding": model}, cache_dir=None, limits=Limits())


def test_its_own_key_is_sent_and_what_passes_is_tried_again(messages: Messages) -> None:
    messages.refusals = [(429, {"retry-after": "0"}), (529, {}), (500, {})]
    with opened(messages) as access:
        reply = access.task.chat(HELLO, max_tokens=9, temperature=0.5, sample=3)
    assert (reply.text, reply.finish_reason, reply.prompt_tokens, reply.completion_tokens) == ("ok", "stop", 12, 3)
    assert messages.keys == {KEY}
    # A seed was refused by litellm itself, and is sent no more.
    assert len(messages.requests) == 4
    assert (messages.requests[-1]["max_tokens"], messages.requests[-1]["temperature"]) == (9, 0.5)


@pytest.mark.parametrize(
    ("refusal", "settings", "words"),
    [
        ((401, {}), {}, r"HTTP 401 .*check the key"),
        ((302, {"Location": "http://127.0.0.1:9/"}), {}, "302"),
        (None, {"base_url": "http://127.0.0.1:9"}, "(?i)connect"),
        (None, {"model": "no-such-provider/model"}, "no-such-provider"),
    ],
)
def test_a_failure_names_its_cause_and_no_key(
    messages: Messages, refusal: tuple[int, dict[str, str]] | None, settings: dict[str, Any], words: str
) -> None:
    messages.refusals = [refusal] * 9 if refusal else []
    given = {"retries": 0, "api_key": KEY, **settings}
    model = {"base_url": messages.base_url, "model": MODEL, "litellm": True, **given}
    roles = {"task": ModelSettings(**model), "embedding": ModelSettings(**model)}
    with (
        ModelAccess.open(roles, cache_dir=None, limits=Limits()) as access,
        pytest.raises(CallFailedError, match=words) as failure,
    ):
        access.task.chat(HELLO, max_tokens=9)
    assert KEY not in str(failure.value)


def test_without_the_package_its_name_is_told(messages: Messages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with opened(messages) as access, pytest.raises(ConfigError, match=r"memtune\[litellm\]"):
        access.task.chat(HELLO, max_tokens=9)


@pytest.mark.slow
def test_an_evaluation_through_it_has_the_score_of_the_other_protocol(
    messages: Messages, scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    splits = load_dataset(load_config(None)).splits.named().values()
    let_answer(scripted_server, *(conversation for group in splits for conversation in group))
    scores = []
    for name, model in {
        "clean": f"{{model: m, base_url: '{scripted_server.base_url}'}}",
        "native": f"{{model: {MODEL}, base_url: '{messages.base_url}', litellm: true}}",
    }.items():
        config = f"system: fact-memory\nlimits: {{conversations: 3, questions: 2}}\nmodels:\n  task: {model}\n"
        config += f"  embedding: {{model: e, base_url: '{scripted_server.base_url}'}}\n"
        (tmp_path / f"{name}.yaml").write_text(config)
        options = ["--prompts", "baseline", "--json", f"{name}.json"]
        command = [sys.executable, "-m", "memtune", "eval", f"{name}.yaml", *options]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        scores.append(json.loads((tmp_path / f"{name}.json").read_text())["evaluated"][0]["mean"])
        assert KEY not in done.stdout + done.stderr
        assert "ReadOnly" not in done.stderr
    assert scores[0] == scores[1] > 0
    assert len(messages.requests) > 3
