"""The ways in which an endpoint misbehaves, by name: how each turns a sound reply into what is sent instead."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scripted_server import Reply

KEY = "Zq7Kx9Wf3Lm8Tn5Rb2Vd6Hc"
"""The key of the runs under test: in no provider's form, so that nothing but knowing it can find it."""

EITHER = frozenset({"chat", "embedding"})
CHAT, EMBEDDING = frozenset({"chat"}), frozenset({"embedding"})

DEEP = 200_000
MANY_FACTS = 200_000
HUGE = 48_000_000
BOMB = 2_000_000_000

Spoil = Callable[[Reply], Reply]


@dataclass(frozen=True)
class Misbehaviour:
    """One way to misbehave.

    Attributes:
        name: of it.
        spoil: from the sound reply to the one that is sent.
        at: the routes where it makes sense.
        passes: whether a call that meets it once is asked again, and succeeds.
        believed: whether it is a reply to those who ask, if a bad one, so that a run goes on with what it says.
        slow: whether each meeting costs the client its whole patience.
    """

    name: str
    spoil: Spoil
    at: frozenset[str] = EITHER
    passes: bool = True
    believed: bool = False
    slow: bool = False


def _sends(**what: Any) -> Spoil:
    """The sound reply but for these fields."""
    return lambda reply: replace(reply, **what)


def _status(status: int, text: str = "scripted failure", **headers: str) -> Spoil:
    return _sends(status=status, text=text, headers={name.replace("_", "-"): value for name, value in headers.items()})


def _body(data: bytes, **headers: str) -> Spoil:
    return _sends(raw=data, headers={name.replace("_", "-"): value for name, value in headers.items()})


def _says(text: str) -> Spoil:
    return _sends(text=text)


def _head(length: str | int | None, status: str = "200 OK", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines += [] if length is None else [f"Content-Length: {length}"]
    return "\r\n".join([*lines, "", ""]).encode()


def _writes(write: Callable[[Callable[[bytes], Any], bytes], None]) -> Spoil:
    return _sends(wire=write)


def _drip(send: Callable[[bytes], Any], body: bytes, *, head: bool) -> None:
    """A byte at a time, for no more than a minute and a half: a client without a deadline must not hang the tests."""
    parts = _head(len(body)) + body if head else body
    if not head:
        send(_head(len(body)))
    for place in range(len(parts)):
        send(parts[place : place + 1])
        time.sleep(0.2 if place < 450 else 0)


def _chunks(send: Callable[[bytes], Any], body: bytes, *, ending: bytes) -> None:
    half = len(body) // 2
    send(_head(None, Transfer_Encoding="chunked"))
    send(f"{half:x}\r\n".encode() + body[:half] + b"\r\n" + ending)


def _changes(change: Callable[[dict[str, Any]], Any]) -> Spoil:
    return _sends(change=change)


def _usage(value: Any) -> Spoil:
    """`value` as the token counts."""

    def change(answer: dict[str, Any]) -> dict[str, Any]:
        return {**answer, "usage": {"prompt_tokens": value, "completion_tokens": value, "total_tokens": value}}

    return _changes(change)


def _literal(placed: str, text: str) -> Spoil:
    """The answer with `text` in the JSON where the word `placed` stands, for what Python would not write."""

    def write(send: Callable[[bytes], Any], body: bytes) -> None:
        data = body.decode().replace(f'"{placed}"', text).encode()
        send(_head(len(data)) + data)

    def spoil(reply: Reply) -> Reply:
        return replace(_usage(placed)(reply), wire=write)

    return spoil


def _choice(**what: Any) -> Spoil:
    """The only choice with these fields in place of its own; None leaves a field out."""

    def change(answer: dict[str, Any]) -> dict[str, Any]:
        choice = {**answer["choices"][0], **what}
        return {**answer, "choices": [{name: value for name, value in choice.items() if value is not _ABSENT}]}

    return _changes(change)


_ABSENT = object()


def _content(value: Any) -> Spoil:
    return _choice(message={"role": "assistant", "content": value})


def _rows(change: Callable[[list[dict[str, Any]]], Iterable[Any]]) -> Spoil:
    return _changes(lambda answer: {**answer, "data": list(change(answer["data"]))})


def _vectors(change: Callable[[list[Any]], Any]) -> Spoil:
    return _rows(lambda rows: [{**row, "embedding": change(row["embedding"])} for row in rows])


def _echo(status: int, before: int, tail: str = " is not allowed") -> Spoil:
    """An error that quotes the key, `before` characters after its beginning."""
    words = "the key that was sent "
    return _status(status, words + "x" * max(0, before - len(words) - 1) + " " + KEY + tail)


_PAGE = b"<!doctype html><html><body><h1>502 Bad Gateway</h1><script>alert('gateway')</script></body></html>"

_TRANSPORT = (
    Misbehaviour("429 with Retry-After", _status(429, Retry_After="0.01")),
    Misbehaviour("429 without Retry-After", _status(429)),
    *(
        Misbehaviour(f"429 with Retry-After {value!r}", _status(429, Retry_After=value))
        for value in ("soon", "-5", "nan", "Fri, 31 Dec 999999 23:59:59 GMT", "1,2")
    ),
    Misbehaviour("429 with a Retry-After of years", _status(429, Retry_After="99999999999"), passes=False),
    *(Misbehaviour(f"HTTP {status}", _status(status)) for status in (408, 500, 502, 503, 504, 529)),
    *(Misbehaviour(f"HTTP {status}", _status(status), passes=False) for status in (400, 401, 403, 404, 413, 422)),
    Misbehaviour(
        "quota used up",
        _sends(
            status=429,
            raw=json.dumps({"error": {"message": "quota", "code": "insufficient_quota"}}).encode(),
        ),
        passes=False,
    ),
    Misbehaviour("error without an object", _sends(status=500, raw=b"boom")),
    Misbehaviour("error that is a list", _sends(status=500, raw=b'[{"error": [1, {"message": null}]}]')),
    Misbehaviour("error of deep nesting", _sends(status=500, raw=b'{"error": ' + b"[" * DEEP)),
    Misbehaviour("error page of 20 MB", _sends(status=500, raw=b"<p>" * 7_000_000)),
    Misbehaviour("error with markup", _status(400, "[/INST] [red]no[/red] [link=x]"), passes=False),
    Misbehaviour("error with escapes", _status(400, "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J"), passes=False),
    Misbehaviour("error with lines", _status(400, "one\ntwo\r\nthree\u2028four\x00"), passes=False),
    Misbehaviour("error object with 200", _body(b'{"error": {"message": "upstream is away", "code": 502}}')),
    Misbehaviour("redirects to itself", _sends(status=307, headers={"Location": "?again"}), passes=False),
    Misbehaviour(
        "redirects to nowhere", _sends(status=302, headers={"Location": "http://127.0.0.1:9/v1"}), passes=False
    ),
    Misbehaviour("no such status", _writes(lambda send, body: send(_head(len(body), "999 Odd") + body)), passes=False),
    Misbehaviour("not HTTP", _writes(lambda send, body: send(b"SSH-2.0-OpenSSH_9.6\r\n"))),
    Misbehaviour("204", _writes(lambda send, body: send(b"HTTP/1.1 204 No Content\r\n\r\n"))),
    Misbehaviour("reset before the reply", _sends(reset=True)),
    Misbehaviour("reset within the body", _sends(drop=True)),
    Misbehaviour("closed before the reply", _writes(lambda send, body: None)),
    Misbehaviour("closed within the head", _writes(lambda send, body: send(_head(len(body))[:30]))),
    Misbehaviour("no reply in time", _sends(delay=1.5), slow=True),
    Misbehaviour("body of a byte at a time", _writes(lambda send, body: _drip(send, body, head=False)), slow=True),
    Misbehaviour("head of a byte at a time", _writes(lambda send, body: _drip(send, body, head=True)), slow=True),
    Misbehaviour("empty body", _body(b"")),
    Misbehaviour("HTML with 200", _body(_PAGE)),
    Misbehaviour("truncated JSON", _body(b'{"choices": [{"message": {"content": "half of')),
    Misbehaviour("wrong content type", _sends(headers={"Content-Type": "image/png"})),
    Misbehaviour("too long a Content-Length", _writes(lambda send, body: send(_head(len(body) + 100) + body))),
    Misbehaviour("too short a Content-Length", _writes(lambda send, body: send(_head(len(body) // 2) + body))),
    Misbehaviour("negative Content-Length", _writes(lambda send, body: send(_head(-1) + body))),
    Misbehaviour("Content-Length in words", _writes(lambda send, body: send(_head("many") + body))),
    Misbehaviour("chunks that break off", _writes(lambda send, body: _chunks(send, body, ending=b""))),
    Misbehaviour("chunk of no size", _writes(lambda send, body: _chunks(send, body, ending=b"zz\r\nx\r\n0\r\n\r\n"))),
    Misbehaviour("gzip that is none", _sends(headers={"Content-Encoding": "gzip"})),
    Misbehaviour("gzip cut off", _body(gzip.compress(b'{"choices": []}' * 99)[:40], Content_Encoding="gzip")),
    Misbehaviour("unknown encoding", _sends(headers={"Content-Encoding": "snappy"})),
    Misbehaviour("invalid UTF-8", _body(b'{"choices": [{"message": {"content": "\xff\xfe\x80"}}], "data": "\xc3"}')),
    Misbehaviour("UTF-16", _body('{"choices": "é"}'.encode("utf-16"))),
    Misbehaviour("200000 brackets", _body(b"[" * DEEP)),
    Misbehaviour("200000 objects", _body(b'{"choices": ' * DEEP)),
    *(Misbehaviour(f"body is {text}", _body(text.encode())) for text in ("null", "[]", "{}", "7", '"text"', "NaN")),
    Misbehaviour("events without being asked", _body(b'data: {"choices": []}\n\ndata: [DONE]\n\n')),
    *(Misbehaviour(f"echoes the key, at {before}", _echo(400, before), passes=False) for before in (0, 480, 490, 499)),
    Misbehaviour("echoes the key to be asked again", _echo(500, 485)),
    Misbehaviour("echoes the key escaped", _echo(401, 0, tail='" \\"'), passes=False),
)

_COUNTS = (
    *(
        Misbehaviour(f"token count {text}", _literal("count", text))
        for text in ("1e400", "NaN", "-Infinity", "-5", "1.5", "true")
    ),
    Misbehaviour("token count of 400 digits", _literal("count", "1" + "0" * 400)),
    Misbehaviour("token count of words", _usage("many")),
    Misbehaviour("token count a list", _usage([1])),
    Misbehaviour("token count an object", _usage({"n": 1})),
    Misbehaviour("usage a list", _changes(lambda answer: {**answer, "usage": [1, 2]})),
    Misbehaviour("usage a text", _changes(lambda answer: {**answer, "usage": "few"})),
)

_CHAT = (
    Misbehaviour("choices empty", _changes(lambda a: {**a, "choices": []}), CHAT),
    Misbehaviour("choices missing", _changes(lambda a: {"id": "x"}), CHAT),
    Misbehaviour("choices null", _changes(lambda a: {**a, "choices": None}), CHAT),
    Misbehaviour("choices a text", _changes(lambda a: {**a, "choices": "one"}), CHAT),
    Misbehaviour("choices an object", _changes(lambda a: {**a, "choices": a["choices"][0]}), CHAT),
    Misbehaviour("choice a text", _changes(lambda a: {**a, "choices": ["one"]}), CHAT),
    Misbehaviour("message missing", _choice(message=_ABSENT), CHAT),
    Misbehaviour("message null", _choice(message=None), CHAT),
    Misbehaviour("message a list", _choice(message=["x"]), CHAT),
    *(
        Misbehaviour(f"content {json.dumps(value)}", _content(value), CHAT)
        for value in (7, {}, True, {"text": "x"}, [7], [{"type": "text", "text": 7}])
    ),
    # An empty reply is a reply; only where JSON is needed is it asked for once more.
    Misbehaviour("content missing", _choice(message={"role": "assistant"}), CHAT, passes=False, believed=True),
    *(
        Misbehaviour(f"content {json.dumps(value)}", _content(value), CHAT, passes=False, believed=True)
        for value in (None, "", [], [{"type": "text"}])
    ),
    *(
        Misbehaviour(f"finish_reason {json.dumps(value)}", _choice(finish_reason=value), CHAT)
        for value in (7, ["stop"], {"why": "x"}, "\x1b[31m")
    ),
    Misbehaviour("finish_reason missing", _choice(finish_reason=_ABSENT), CHAT),
    Misbehaviour("logprobs a text", _choice(logprobs="x"), CHAT),
    Misbehaviour("logprobs without tokens", _choice(logprobs={"content": [{"top_logprobs": [{}]}]}), CHAT),
    Misbehaviour(
        "logprobs that are no numbers",
        _choice(logprobs={"content": [{"top_logprobs": [{"token": "yes", "logprob": "nan"}]}]}),
        CHAT,
    ),
)

_SAID = (
    ("blank text", " \n\t "),
    ("990 brackets", "[" * 990),
    ("100000 brackets", "[" * 100_000),
    ("100000 objects", '{"facts": ' * 100_000),
    ("brackets in an object", '{"facts": [' + "[" * 5_000),
    ("200000 facts", json.dumps({"facts": [f"Anke has {n} parrots." for n in range(MANY_FACTS)]})),
    ("one fact of a million letters", json.dumps({"facts": ["Anke " * 200_000]})),
    ("facts of every type", '{"facts": [1, null, {"a": [1]}, true, NaN, "Anke has a parrot.", ["x"]]}'),
    ("facts a text", '{"facts": "Anke has a parrot."}'),
    ("another schema", '{"memory": [{"id": "0", "text": "x", "event": "ADD"}], "label": 7, "event": "EXPLODE"}'),
    ("a list", '["Anke has a parrot."]'),
    ("truncated object", '{"facts": ["Anke\'s parrot is'),
    ("thoughts before the object", '<think>First, {"facts": []} is not it.</think>\n{"facts": ["x"], "event": "ADD"}'),
    ("fenced object", '```json\n{"facts": ["x"], "event": "UPDATE", "id": "99", "label": "right"}\n```'),
    ("duplicate keys", '{"facts": [], "facts": ["x"], "event": "ADD", "event": "DELETE", "id": "1", "id": {}}'),
    ("refusal", "I'm sorry, but I can't help with that."),
    ("NUL and controls", '{"facts": ["a\\u0000b\\u001b[31m"]} \x00\x1b]0;x\x07\x9b'),
    ("halves of surrogate pairs", '{"facts": ["\\ud83d", "\ud83d\udc00x"]} \udfff'),
    ("markup", "[/INST] [bold]x[/bold] <script>alert(1)</script> {context} {0} %s $x"),
    ("five megabytes", "Anke has a parrot. " * 270_000),
    ("numbers beyond", '{"facts": [1e400, -1e400, 1' + "0" * 5000 + '], "id": 1e400}'),
)

_TEXTS = (
    *(Misbehaviour(f"says {name}", _says(text), CHAT, passes=False, believed=True) for name, text in _SAID),
    Misbehaviour("cut at the limit", _sends(finish_reason="length"), CHAT, passes=False, believed=True),
)

_EMBEDDINGS = (
    Misbehaviour("data missing", _changes(lambda a: {"object": "list"}), EMBEDDING),
    Misbehaviour("data null", _changes(lambda a: {**a, "data": None}), EMBEDDING),
    Misbehaviour("data empty", _rows(lambda rows: []), EMBEDDING),
    Misbehaviour("data a text", _changes(lambda a: {**a, "data": "x"}), EMBEDDING),
    Misbehaviour("too few embeddings", _rows(lambda rows: rows[1:]), EMBEDDING),
    Misbehaviour("too many embeddings", _rows(lambda rows: [*rows, {**rows[0], "index": len(rows)}]), EMBEDDING),
    Misbehaviour("an index twice", _rows(lambda rows: [*rows, rows[0]]), EMBEDDING),
    *(
        Misbehaviour(
            f"index {json.dumps(value)}", _rows(lambda rows, v=value: [{**r, "index": v} for r in rows]), EMBEDDING
        )
        for value in (-1, 7, None, "one", 1.5, [0])
    ),
    Misbehaviour("index missing", _rows(lambda rows: [{"embedding": row["embedding"]} for row in rows]), EMBEDDING),
    *(
        Misbehaviour(f"embedding of {name}", _vectors(lambda vector, v=value: [v, *vector[1:]]), EMBEDDING)
        for name, value in (
            ("NaN", float("nan")),
            ("infinity", float("inf")),
            ("1e308", 1e308),
            ("words", "x"),
            ("nulls", None),
            ("lists", [1.0]),
            ("a number of 400 digits", 10**400),
        )
    ),
    Misbehaviour("embedding empty", _vectors(lambda vector: []), EMBEDDING),
    Misbehaviour("embedding null", _vectors(lambda vector: None), EMBEDDING),
    Misbehaviour("embedding of nothing but zeros", _vectors(lambda vector: [0.0] * len(vector)), EMBEDDING),
    Misbehaviour("embedding of another dimension", _vectors(lambda vector: vector[:7]), EMBEDDING, passes=False),
    Misbehaviour(
        "embeddings of two dimensions",
        _rows(lambda rows: [{**r, "embedding": [*r["embedding"], *[0.5] * n]} for n, r in enumerate(rows, start=1)]),
        EMBEDDING,
        passes=False,
    ),
)

LARGE = (
    Misbehaviour("48 MB of text", _sends(wire=lambda send, body: send(_head(HUGE) + b" " * HUGE))),
    Misbehaviour("a body without end", _writes(lambda send, body: _endless(send))),
    Misbehaviour("gzip bomb", _writes(lambda send, body: send(_head(len(_bomb()), Content_Encoding="gzip") + _bomb()))),
)
"""What must not fill the memory; each is met in a process of its own."""


def _endless(send: Callable[[bytes], Any]) -> None:
    send(_head(None))
    for _ in range(2000):
        send(b" " * 1_000_000)


_packed: list[bytes] = []


def _bomb() -> bytes:
    if not _packed:
        block = gzip.compress(b" " * (BOMB // 20))
        _packed.append(block * 20)
    return _packed[0]


EVERY: Mapping[str, Misbehaviour] = {each.name: each for each in (*_TRANSPORT, *_COUNTS, *_CHAT, *_TEXTS, *_EMBEDDINGS)}
