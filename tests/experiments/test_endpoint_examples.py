"""The configurations of endpoints in the guide load, and send what their endpoints want."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from scripted_server import ScriptedServer

from experiments.runs.config_file import load_config
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits, ModelSettings

GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"
EXAMPLES = dict(re.findall(r"```yaml\n# ([\w ]+)(?::[^\n]*)?\n(models:.*?)```", GUIDE.read_text(), re.DOTALL))
KEY = "a-key-of-4711-letters"
DATED = "/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21"
EXPECTED: Mapping[str, tuple[str, str, str]] = {
    "OpenAI": ("/v1/chat/completions", "authorization", f"Bearer {KEY}"),
    "Azure with a key": (DATED, "api-key", KEY),
    "Azure with Entra": (DATED, "authorization", f"Bearer {KEY}"),
    "Ollama": ("/v1/chat/completions", "authorization", ""),
    "vLLM": ("/v1/chat/completions", "authorization", ""),
    "OpenRouter": ("/api/v1/chat/completions", "authorization", f"Bearer {KEY}"),
    "Gemini": ("/v1beta/openai/chat/completions", "authorization", f"Bearer {KEY}"),
    "Anthropic": ("/v1/chat/completions", "authorization", f"Bearer {KEY}"),
}


@pytest.fixture
def arrived(scripted_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, str]]]:
    """Path and headers of each request to the scripted server, which answers it at whatever path."""
    requests: list[tuple[str, dict[str, str]]] = []
    handler: Any = scripted_server._http.RequestHandlerClass
    post: Callable[[Any], None] = handler.do_POST

    def note(self: Any) -> None:
        requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        self.path = "/v1/embeddings" if "/embeddings" in self.path else "/v1/chat/completions"
        post(self)

    monkeypatch.setattr(handler, "do_POST", note)
    return requests


def test_every_example_is_tried() -> None:
    assert EXAMPLES.keys() == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_loads_and_reaches_its_endpoint_as_that_wants(
    name: str,
    scripted_server: ScriptedServer,
    arrived: list[tuple[str, dict[str, str]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "run.yaml").write_text(EXAMPLES[name])
    (tmp_path / "az").write_text(f"#!/bin/sh\necho {KEY}\n")
    (tmp_path / "az").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    models = load_config(str(tmp_path / "run.yaml")).models
    if EXPECTED[name][2] and models.task.key_command is None:
        monkeypatch.setenv(models.task.api_key_env, KEY)

    def here(settings: ModelSettings) -> ModelSettings:
        address = scripted_server.base_url.removesuffix("/v1") + urlsplit(settings.base_url or "").path
        return settings.model_copy(update={"base_url": address, "retries": 0})

    roles = {role: here(settings) for role, settings in models.roles().items()}
    with ModelAccess.open(roles, cache_dir=None, limits=Limits()) as access:
        assert access.task.chat([{"role": "user", "content": "hi"}], max_tokens=9).text == "ok"
        path, headers = arrived[-1]
        assert (path, headers.get(EXPECTED[name][1], "")) == EXPECTED[name][::2]
        assert {header: headers[header.lower()] for header in models.task.headers} == {
            header: value.get_secret_value() for header, value in models.task.headers.items()
        }
        own = {**models.task.extra_body, "model": models.task.model}
        assert own.items() <= scripted_server.requests[-1].items()
        if models.embedding is not None:
            access.embedding.embed(["hi"])
            assert arrived[-1][0] == "/v1/embeddings"
