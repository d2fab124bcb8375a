"""Prompts share what is read, replies are written together, and no reply depends on what else is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from http.client import RemoteDisconnected
from pathlib import Path
from typing import Any

import pytest

from tracing.llm.serving import prompt_slots
from tracing.llm.serving.embedded import EmbeddedModel, EmbeddedServer
from tracing.llm.serving.prompt_slots import BATCH, FEW, SLOTS, TOGETHER, Slots
from tracing.llm.serving.shared_cores import FreeCores
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


def request(text: str) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": 3}
    return {**body, "logprobs": True, "top_logprobs": 3}


def asked(server: EmbeddedServer, text: str) -> dict[str, Any]:
    reply = server.chat({"model": "small", **request(text)})
    assert "error" not in reply
    return reply


def said(reply: dict[str, Any]) -> list[object]:
    tokens = reply["choices"][0]["logprobs"]["content"]
    return [(each["token"], each["logprob"], each["top_logprobs"]) for each in tokens]


@pytest.mark.slow
def test_a_reply_has_the_same_numbers_whatever_was_taken_over(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{TASKS[n % 3]}{'Mara has hens. ' * n}Noor has {n} parrots." for n in range(5)]
    first = [asked(server, text) for text in texts]
    again = [asked(server, text) for text in reversed(texts)]
    monkeypatch.setattr(prompt_slots, "_takeable", lambda *_: 0)
    fresh = [asked(server, text) for text in texts]
    assert [said(reply) for reply in first] == [said(reply) for reply in fresh]
    assert [said(reply) for reply in again] == [said(reply) for reply in reversed(fresh)]


@pytest.mark.slow
def test_a_reply_has_the_same_numbers_whatever_is_written_meanwhile(server: EmbeddedServer) -> None:
    texts = [f"{TASKS[0]}Noor has{' one' * 5 * n} parrots." for n in range(2 * TOGETHER + 2)]
    alone = [asked(server, text) for text in texts]
    # The last batch of some prompts would be a small one, if they were read in whole batches before it.
    assert {(reply["usage"]["prompt_tokens"] - 1) % BATCH for reply in alone} & set(range(1, FEW))
    for width in (len(texts), TOGETHER // 2, 2):
        with ThreadPoolExecutor(width) as pool:
            together = list(pool.map(lambda text: asked(server, text), texts))
        assert [said(reply) for reply in together] == [said(reply) for reply in alone]


@pytest.mark.slow
def test_what_the_prompts_of_a_group_share_is_read_once_and_copied(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(server, TASKS[1])
    posted, post = [], Slots._post

    def noted(self: Slots, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        posted.append(path)
        return post(self, path, body)

    monkeypatch.setattr(Slots, "_post", noted)
    texts = [f"{TASKS[0]}Noor has {n} parrots." for n in range(TOGETHER)]
    copied = server._loaded["small"].slots.answer([request(text) for text in texts])
    assert sum(path.endswith("restore") for path in posted) >= TOGETHER - 1
    monkeypatch.setattr(prompt_slots, "_takeable", lambda *_: 0)
    assert [said(reply) for reply in copied] == [said(asked(server, text)) for text in texts]


@pytest.mark.slow
def test_where_numbers_depend_on_what_is_computed_together_requests_are_answered_one_by_one(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_slots, "_numbers", lambda reply: object())
    texts = [f"{TASKS[0]}Noor has {n} parrots." for n in range(TOGETHER)]
    with ThreadPoolExecutor(TOGETHER) as pool:
        found = list(pool.map(lambda text: asked(server, text), texts))
    assert not server._loaded["small"].slots.exact
    assert [reply["timings"]["cache_n"] for reply in found] == [0] * TOGETHER
    assert [said(reply) for reply in reversed(found)] == [said(asked(server, text)) for text in reversed(texts)]


@pytest.mark.slow
def test_replies_to_requests_that_wait_are_written_together(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(server, TASKS[0])
    groups, answer = [], Slots.answer

    def noted(self: Slots, requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        groups.append(len(requests))
        return answer(self, requests)

    monkeypatch.setattr(Slots, "answer", noted)
    with ThreadPoolExecutor(TOGETHER) as pool:
        list(pool.map(lambda n: asked(server, f"{TASKS[0]}{n}"), range(3 * TOGETHER)))
    assert TOGETHER // 2 < max(groups) <= TOGETHER
    assert len(groups) <= 2 * TOGETHER


@pytest.mark.parametrize(
    ("held", "asked_for", "taken"),
    [
        ((), 100, 0),
        (range(100), 100, 99),
        (range(100), 120, 99),
        (range(100), 102, 93),
        (range(200), 100, 99),
        ((*range(50), 999, *range(51, 100)), 100, 50),
        ((*range(97), 999, 998), 100, 91),
        (range(FEW), 100, 0),
        (range(100), FEW, 0),
    ],
)
def test_what_is_left_of_a_prompt_to_read_is_no_small_batch(held: Sequence[int], asked_for: int, taken: int) -> None:
    assert prompt_slots._takeable(list(held), range(asked_for)) == taken


@pytest.mark.slow
def test_prompts_that_share_nothing_do_not_evict_those_that_do(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, takeable = [], prompt_slots._takeable

    def noted(held: Sequence[int], tokens: Sequence[int]) -> int:
        taken.append(takeable(held, tokens))
        return taken[-1]

    for n in range(2):
        for task in TASKS[:2]:
            asked(server, f"{task}{n}")
    for n in range(SLOTS):
        asked(server, f"{n} hens. {TASKS[2]}")
    monkeypatch.setattr(prompt_slots, "_takeable", noted)
    for task in TASKS[:2]:
        taken.clear()
        asked(server, f"{task}9")
        assert max(taken) > BATCH


@pytest.mark.slow
def test_a_request_that_the_runtime_refuses_leaves_the_others_right(server: EmbeddedServer) -> None:
    before = said(asked(server, TASKS[0]))
    refused = server.chat({"model": "small", "messages": [{"role": "user", "content": "word " * 900}]})
    assert "error" in refused
    assert said(asked(server, TASKS[0])) == before


@pytest.mark.slow
def test_a_request_that_breaks_the_runtime_fails_alone(server: EmbeddedServer) -> None:
    texts = ["Noor has 3 parrots.", "half of a pair: \ud83d", "Noor has 4 parrots."]
    asked(server, texts[0])
    sound, broken, other = server._loaded["small"].slots.answer([request(text) for text in texts])
    assert broken["error"]["code"] == 400
    assert [said(reply) for reply in (sound, other)] == [said(asked(server, text)) for text in texts[::2]]


@pytest.mark.slow
def test_a_runtime_that_cannot_be_asked_fails_the_request_and_leaves_no_copy(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(2):
        asked(server, f"{TASKS[0]}{n}")
    held, post = server._loaded["small"].slots, Slots._post

    def cut_off(self: Slots, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        reply = post(self, path, body)
        if at in path:
            raise RemoteDisconnected
        return reply

    monkeypatch.setattr(Slots, "_post", cut_off)
    at = "save"
    before = [said(reply) for reply in held.answer([request(f"{TASKS[0]}{n}") for n in range(4)])]
    assert list(Path(held.folder.name).iterdir()) == []
    at = "tokenize"
    with pytest.raises(RemoteDisconnected):
        server.chat({"model": "small", **request(TASKS[0])})
    monkeypatch.setattr(Slots, "_post", post)
    assert [said(asked(server, f"{TASKS[0]}{n}")) for n in range(4)] == before


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
