"""What an endpoint sends becomes a sound reply or a malformed one: asked for again, never cached, told in words."""

from __future__ import annotations

import gzip
import json
import sqlite3
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Reply, ScriptedServer

from tracing.errors import CallFailedError
from tracing.llm.access import ModelAccess

Open = Callable[..., ModelAccess]
HELLO = [{"role": "user", "content": "hello"}]


def chat_body(**changed: Any) -> bytes:
    """A chat reply as it should be, but for what is changed; a key `usage.prompt_tokens` reaches inside."""
    body: dict[str, Any] = {
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "fine"}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }
    choice = body["choices"][0]
    places = {
        "choices": body,
        "usage": body,
        "message": choice,
        "finish_reason": choice,
        "logprobs": choice,
        "error": choice,
    }
    for name, value in changed.items():
        if name in ("prompt_tokens", "completion_tokens"):
            body["usage"][name] = value
        elif name == "content":
            choice["message"][name] = value
        else:
            places.get(name, choice)[name] = value
    return json.dumps(body).encode()


MALFORMED = {
    "deep body": (b"[" * 200_000, "nested"),
    "deep inside a reply": (chat_body(message={"content": "x", "more": json.loads("[" * 90 + "]" * 90)}), "nested"),
    "infinite tokens": (
        chat_body(prompt_tokens=0).replace(b'"prompt_tokens": 0', b'"prompt_tokens": 1e400'),
        "prompt_",
    ),
    "NaN tokens": (chat_body(prompt_tokens=float("nan")), "NaN"),
    "negative tokens": (chat_body(completion_tokens=-7), "completion_tokens"),
    "absurdly many tokens": (chat_body(prompt_tokens=10**12), "prompt_tokens"),
    "tokens as words": (chat_body(prompt_tokens="three"), "prompt_tokens"),
    "tokens as truth value": (chat_body(prompt_tokens=True), "prompt_tokens"),
    "usage as list": (chat_body(usage=[]), "usage"),
    "no choices": (chat_body(choices=[]), "choices"),
    "choices as mapping": (chat_body(choices={"0": {}}), "choices"),
    "choice of the wrong type": (chat_body(choices=["fine"]), "choices"),
    "no message": (chat_body(message=None), "message"),
    "content as number": (chat_body(content=7), "content"),
    "content as mapping": (chat_body(content={"text": "fine"}), "content"),
    "finish reason as list": (chat_body(finish_reason=["stop"]), "finish_reason"),
    "a tool that nobody offered": (
        chat_body(message={"content": None, "tool_calls": [{"function": {"name": "f"}}]}, finish_reason="tool_calls"),
        "tool",
    ),
    "far more text than was asked for": (chat_body(content="word " * 200_000), "9 tokens"),
    "an error with status 200": (b'{"error": {"message": "overloaded"}}', "overloaded"),
    "not UTF-8": (b'{"choices": "\xff\xfe"}', "JSON"),
    "nothing": (b"", "JSON"),
}


@pytest.mark.parametrize(("raw", "said"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_body_is_asked_for_again_told_and_never_cached(
    open_access: Open, scripted_server: ScriptedServer, raw: bytes, said: str
) -> None:
    scripted_server.script = lambda body: Reply(raw=raw)
    access = open_access(retries=1)
    started = time.monotonic()
    with access.watch() as watch, pytest.raises(CallFailedError, match=said) as failure:
        access.task.chat(HELLO, max_tokens=9)
    assert time.monotonic() - started < 2
    assert "after 2 attempts" in str(failure.value)
    assert (scripted_server.count, len(watch.failures)) == (2, 1)
    scripted_server.script = lambda body: "fine"
    assert access.task.chat(HELLO, max_tokens=9).text == "fine"
    assert open_access().task.chat(HELLO, max_tokens=9).cached


@pytest.mark.parametrize(
    "logprobs",
    [
        [],
        "none",
        {"content": [{"top_logprobs": [{"logprob": -1.0}]}]},
        {"content": {}},
        {"content": [[]]},
        {"content": [{"top_logprobs": [{"token": "yes", "logprob": "-1"}]}]},
    ],
)
def test_log_probabilities_that_cannot_be_read_matter_only_where_they_were_asked_for(
    open_access: Open, scripted_server: ScriptedServer, logprobs: Any
) -> None:
    scripted_server.script = lambda body: Reply(raw=chat_body(logprobs=logprobs))
    access = open_access(retries=0)
    assert access.task.chat(HELLO, max_tokens=9).text == "fine"
    with pytest.raises(CallFailedError, match=r"malformed: choices\.0\.logprobs"):
        access.task.chat(HELLO, max_tokens=9, alternatives=3)


def vectors_body(*rows: Any, indices: Any = None, **more: Any) -> bytes:
    numbered = zip(range(len(rows)) if indices is None else indices, rows, strict=True)
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in numbered]
    return json.dumps({"data": data, **more}).encode()


MALFORMED_VECTORS = {
    "NaN": (vectors_body([1.0, float("nan")], [1.0, 0.0]), "NaN"),
    "infinite": (vectors_body([1.0, 0.0], [1.0, 7.0]).replace(b"7.0", b"1e400"), "embedding"),
    "texts": (vectors_body(["1.0", "0.5"], [1.0, 0.0]), "embedding"),
    "base64 of no whole numbers": (vectors_body("AAA=", "AAA="), "embedding"),
    "empty": (vectors_body([], []), "embedding"),
    "lengths that differ": (vectors_body([1.0, 0.0], [1.0]), "numbers"),
    "one index twice": (vectors_body([1.0, 0.0], [0.0, 1.0], indices=[0, 0]), "index"),
    "index as text": (vectors_body([1.0, 0.0], [0.0, 1.0], indices=["0", "1"]), "index"),
    "negative tokens": (vectors_body([1.0, 0.0], [0.0, 1.0], usage={"prompt_tokens": -1}), "prompt_tokens"),
    "deep": (b'{"data": ' + b"[" * 100_000, "nested"),
}


@pytest.mark.parametrize(("raw", "said"), MALFORMED_VECTORS.values(), ids=MALFORMED_VECTORS)
def test_malformed_embeddings_are_asked_for_again_told_and_never_cached(
    open_access: Open, scripted_server: ScriptedServer, raw: bytes, said: str
) -> None:
    scripted_server.embed_reply = lambda body: Reply(raw=raw)
    access = open_access(retries=1)
    with pytest.raises(CallFailedError, match=said):
        access.embedding.embed(["a", "b"])
    assert len(scripted_server.embedding_requests) == 2
    scripted_server.embed_reply = None
    scripted_server.embed = lambda text: [3.0, 4.0]
    assert access.embedding.embed(["a", "b"])[1] == pytest.approx([0.6, 0.8])


def test_text_in_several_parts_is_read_as_one(open_access: Open, scripted_server: ScriptedServer) -> None:
    parts = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "fi"}, {"type": "text", "text": "ne"}]
    scripted_server.script = lambda body: Reply(raw=chat_body(content=parts))
    assert open_access().task.chat(HELLO, max_tokens=9).text == "fine"


def test_numbers_too_large_to_be_squared_still_give_a_vector_of_length_one(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    scripted_server.embed = lambda text: [3e200, 4e200]
    assert open_access().embedding.embed(["a"]) == [pytest.approx([0.6, 0.8])]


@pytest.mark.parametrize(
    "poison",
    [
        b'{"text": "old", "finish_reason": "stop", "prompt_tokens": -5, "completion_tokens": 1}',
        b'{"text": 7, "finish_reason": "stop", "prompt_tokens": 5, "completion_tokens": 1}',
        b'{"text": "old", "finish_reason": ["stop"], "prompt_tokens": 5, "completion_tokens": 1}',
        b'{"text": "old", "finish_reason": "stop", "prompt_tokens": NaN, "completion_tokens": 1}',
        b"[" * 100_000,
        b"\xff",
    ],
    ids=["negative tokens", "text", "finish reason", "NaN", "deep", "not UTF-8"],
)
def test_an_unsound_entry_of_the_cache_is_a_miss_and_is_replaced(
    open_access: Open, scripted_server: ScriptedServer, tmp_path: Path, poison: bytes
) -> None:
    open_access().task.chat(HELLO, max_tokens=9)
    with sqlite3.connect(tmp_path / "cache" / "responses.sqlite") as cache:
        cache.execute("UPDATE responses SET value = ?", [poison])
    assert open_access().task.chat(HELLO, max_tokens=9).text == "ok"
    assert open_access().task.chat(HELLO, max_tokens=9).cached
    assert scripted_server.count == 2


@pytest.mark.parametrize("poison", [b"\x00\x00\xc0\x7f" * 2, b"", b"abc"], ids=["NaN", "empty", "half a number"])
def test_an_unsound_vector_of_the_cache_is_a_miss_and_is_replaced(
    open_access: Open, scripted_server: ScriptedServer, tmp_path: Path, poison: bytes
) -> None:
    scripted_server.embed = lambda text: [3.0, 4.0]
    open_access().embedding.embed(["a"])
    with sqlite3.connect(tmp_path / "cache" / "responses.sqlite") as cache:
        cache.execute("UPDATE responses SET value = ? WHERE length(value) = 8", [poison])
    for _ in range(2):
        assert open_access().embedding.embed(["a"]) == [pytest.approx([0.6, 0.8])]
    assert len(scripted_server.embedding_requests) == 2


@pytest.mark.parametrize("asked", ["nan", "1e400", "-5", "soon", "Fri, 31 Dec 99999 23:59:59 GMT", "inf"])
def test_a_retry_after_that_is_no_time_is_ignored(
    open_access: Open, scripted_server: ScriptedServer, asked: str
) -> None:
    left = [Reply(status=429, headers={"Retry-After": asked})]
    scripted_server.script = lambda body: left.pop() if left else "fine"
    started = time.monotonic()
    assert open_access().task.chat(HELLO, max_tokens=9).text == "fine"
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    "error", [b'{"error": {"message": {"deep": 1}}}', b'{"error": "gone"}', b'{"detail": "gone"}', b"[" * 100_000, b""]
)
def test_an_error_of_any_form_is_told_with_its_status(
    open_access: Open, scripted_server: ScriptedServer, error: bytes
) -> None:
    scripted_server.script = lambda body: Reply(status=400, raw=error)
    with pytest.raises(CallFailedError, match=r"HTTP 400") as failure:
        open_access().task.chat(HELLO, max_tokens=9)
    assert len(str(failure.value)) < 1000


def test_a_redirect_is_not_followed_and_says_where_to(open_access: Open, scripted_server: ScriptedServer) -> None:
    other = ScriptedServer()
    try:
        scripted_server.script = lambda body: Reply(
            status=307, headers={"Location": f"{other.base_url}/chat/completions"}
        )
        with pytest.raises(CallFailedError, match=r"HTTP 307 .*base_url"):
            open_access().task.chat(HELLO, max_tokens=9)
        assert (scripted_server.count, other.count) == (1, 0)
    finally:
        other.close()


@pytest.mark.slow
def test_a_compressed_reply_is_read_within_the_limit_on_its_size(
    open_access: Open, scripted_server: ScriptedServer
) -> None:
    packed = gzip.compress(chat_body())
    scripted_server.script = lambda body: Reply(raw=packed, headers={"Content-Encoding": "gzip"})
    assert open_access().task.chat(HELLO, max_tokens=9).text == "fine"
    bomb = gzip.compress(b" " * 300_000_000)
    scripted_server.script = lambda body: Reply(raw=bomb, headers={"Content-Encoding": "gzip"})
    with pytest.raises(CallFailedError, match="MB"):
        open_access(retries=0).task.chat(HELLO, max_tokens=10)


@pytest.mark.parametrize("status", [200, 400])
def test_a_huge_body_is_given_up_on_before_it_is_read(
    open_access: Open, scripted_server: ScriptedServer, status: int
) -> None:
    scripted_server.script = lambda body: Reply(status=status, raw=b"x" * 80_000_000)
    with pytest.raises(CallFailedError, match="MB"):
        open_access(retries=0).task.chat(HELLO, max_tokens=9)


@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("deflate", zlib.compress),
        ("gzip", lambda body: gzip.compress(body[:20]) + gzip.compress(body[20:])),
    ],
    ids=["deflate", "gzip of two members"],
)
def test_a_packed_reply_is_read(
    open_access: Open, scripted_server: ScriptedServer, coding: str, pack: Callable[[bytes], bytes]
) -> None:
    scripted_server.script = lambda body: Reply(raw=pack(chat_body()), headers={"Content-Encoding": coding})
    assert open_access().task.chat(HELLO, max_tokens=9).text == "fine"


def test_embedding_rows_without_index_are_in_order(open_access: Open, scripted_server: ScriptedServer) -> None:
    rows = [{"object": "embedding", "embedding": row} for row in ([1.0, 0.0], [0.0, 1.0])]
    scripted_server.embed_reply = lambda body: Reply(raw=json.dumps({"data": rows}).encode())
    assert open_access().embedding.embed(["a", "b"]) == [[1.0, 0.0], [0.0, 1.0]]


def test_an_error_body_that_is_a_list_is_told(open_access: Open, scripted_server: ScriptedServer) -> None:
    body = json.dumps([{"error": {"code": 400, "message": "the model is asleep"}}]).encode()
    scripted_server.script = lambda request: Reply(status=400, raw=body)
    with pytest.raises(CallFailedError, match="the model is asleep"):
        open_access(retries=0).task.chat(HELLO, max_tokens=9)
