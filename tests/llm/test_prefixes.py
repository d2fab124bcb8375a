"""The common start of two prompts is computed once, and no reply depends on what was asked before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from tracing.llm.serving.cores import FreeCores
from tracing.llm.serving.embedded import EmbeddedModel, EmbeddedServer
from tracing.llm.serving.prefixes import BATCH, SLOTS, Prefixes
from tracing.llm.serving.weights import locate

pytestmark = [pytest.mark.embedded, pytest.mark.usefixtures("embedded_weights")]

TASKS = (
    "Say who has more birds, in one short sentence. " * 7,
    "Tell a story about the parrots of Leeds, please. " * 13,
    "Name a colour that no hen has. " * 9,
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedServer]:
    # With another number of free cores the model is loaded again, and what was computed is gone.
    monkeypatch.setattr("tracing.llm.serving.embedded._SETTLED_S", float("inf"))
    server = EmbeddedServer({"small": EmbeddedModel("small", lambda: locate("smollm2-135m"), 768)})
    yield server
    server.close()


def asked(server: EmbeddedServer, text: str) -> dict[str, Any]:
    body = {"model": "small", "messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": 3}
    reply = server.chat({**body, "logprobs": True, "top_logprobs": 3})
    assert "error" not in reply
    return reply


def said(reply: dict[str, Any]) -> list[object]:
    tokens = reply["choices"][0]["logprobs"]["content"]
    return [(each["token"], each["logprob"], each["top_logprobs"]) for each in tokens]


def taken(reply: dict[str, Any]) -> int:
    return int(reply["timings"]["cache_n"])


@pytest.mark.slow
def test_a_reply_has_the_same_numbers_whatever_was_taken_over(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{TASKS[n % 3]}{'Mara has hens. ' * n}Noor has {n} parrots." for n in range(5)]
    first = [asked(server, text) for text in texts]
    again = [asked(server, text) for text in reversed(texts)]
    monkeypatch.setattr(Prefixes, "_place", lambda *_: (0, 0))
    fresh = [asked(server, text) for text in texts]
    assert [taken(reply) for reply in fresh] == [0] * 5
    assert [said(reply) for reply in first] == [said(reply) for reply in fresh]
    assert [said(reply) for reply in again] == [said(reply) for reply in reversed(fresh)]
    assert [taken(reply) >= BATCH for reply in first] == [False] * SLOTS + [True] * 2
    assert all(taken(reply) >= BATCH and taken(reply) % BATCH == 0 for reply in again)


@pytest.mark.slow
def test_prompts_that_share_nothing_do_not_evict_those_that_do(server: EmbeddedServer) -> None:
    for n in range(2):
        for task in TASKS[:2]:
            asked(server, f"{task}{n}")
    for n in range(3):
        asked(server, f"{n} hens. {TASKS[2]}")
    assert [taken(asked(server, f"{task}9")) >= BATCH for task in TASKS[:2]] == [True, True]


@pytest.mark.slow
def test_a_request_that_the_runtime_refuses_leaves_the_others_right(server: EmbeddedServer) -> None:
    before = said(asked(server, TASKS[0]))
    refused = server.chat({"model": "small", "messages": [{"role": "user", "content": "word " * 900}]})
    assert "error" in refused
    assert said(asked(server, TASKS[0])) == before


@pytest.mark.slow
def test_a_reply_to_a_long_prompt_does_not_depend_on_the_number_of_threads(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    cores = FreeCores()
    monkeypatch.setattr(cores, "observed", nullcontext)
    monkeypatch.setattr(server, "_cores", cores)
    monkeypatch.setattr("tracing.llm.serving.embedded._SETTLED_S", 0.0)
    replies = []
    for cores.count in (1, 2):
        replies.append(asked(server, "Say who has hens. " + "Mara has hens in Leeds. " * 80))
        assert server._loaded["small"].threads == cores.count
    assert replies[0]["usage"]["prompt_tokens"] > 512
    assert said(replies[0]) == said(replies[1])
