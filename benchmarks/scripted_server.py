"""A scripted OpenAI-compatible server on loopback: the one double of tests and benchmarks."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from benchmarks.responses_protocol import chat_request, response_of


@dataclass(frozen=True)
class Reply:
    """What to answer to a chat request.

    Attributes:
        text: of the message.
        status: HTTP status; anything but 200 answers with an error object.
        headers: extra ones, such as Retry-After.
        finish_reason: "length" for a reply that is cut short.
        delay: seconds before the answer.
        hang: never answer while the server runs.
        raw: body to send in place of a well-formed one.
        drop: announce a body, send half of it and close the connection.
        reset: reset the connection instead of answering.
        first_token: log-probabilities of the first token's alternatives, sent where the request asks for them.
        change: from the well-formed answer to the one that is sent; what is not JSON is written as Python writes it.
        wire: writes the reply to the connection in place of HTTP's own ways, given how to send bytes and the sound
            body; the connection is closed afterwards.
    """

    text: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    finish_reason: str = "stop"
    delay: float = 0.0
    hang: bool = False
    raw: bytes | None = None
    drop: bool = False
    reset: bool = False
    first_token: Mapping[str, float] | None = None
    change: Callable[[dict[str, Any]], Any] | None = None
    wire: Callable[[Callable[[bytes], Any], bytes], None] | None = None


CHECK = [{"role": "user", "content": "hello"}]
"""What an access asks an endpoint to see whether it can be used."""

Script = Callable[[dict[str, Any]], "Reply | str"]


def after_meeting(requests: int, script: Script, *, patience_s: float = 30.0) -> Script:
    """The script, but that the first `requests` are answered once all of them have arrived, however slow the machine.

    Raises:
        threading.BrokenBarrierError: on the server, when the script is called: they have not within `patience_s`.
    """
    met, arrived = threading.Barrier(requests), itertools.count(1)

    def answer(body: dict[str, Any]) -> Reply | str:
        if next(arrived) <= requests:
            met.wait(patience_s)
        return script(body)

    return answer


"""Decides the reply to the body of a chat request."""


def vector_of(text: str) -> list[float]:
    """A vector of length 1 that shares a direction with the vectors of texts with the same words."""
    counts = [0.0] * 64
    for word in text.lower().split():
        counts[hashlib.sha256(word.strip(".,?!'\"").encode()).digest()[0] % 64] += 1.0
    length = math.sqrt(sum(x * x for x in counts)) or 1.0
    return [x / length for x in counts]


class ScriptedServer:
    """Serves /v1/chat/completions by `script` and /v1/embeddings by `embed`; counts and keeps all requests.

    Attributes:
        script: may be replaced while it serves; by default every reply is "ok".
        embed: text → vector.
        embed_reply: when set, decides status and timing of embedding requests as `script` does for chats.
        requests: bodies of chat requests in order of arrival; `embedding_requests` likewise.
        keys: bearer tokens as they came.
        most_at_once: greatest number of chat requests that were under way together.
    """

    def __init__(self, script: Script | None = None) -> None:
        self.script: Script = script or (lambda body: "ok")
        self.embed: Callable[[str], Sequence[float]] = vector_of
        self.embed_reply: Script | None = None
        self.requests: list[dict[str, Any]] = []
        self.embedding_requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.most_at_once = 0
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.under_way = 0
        self._port = 0
        self.come_back()
        self.base_url = f"http://127.0.0.1:{self._port}/v1"

    @property
    def count(self) -> int:
        """Number of chat requests so far."""
        return len(self.requests)

    @property
    def asked(self) -> int:
        """Number of chat requests so far without the small ones that a run begins with."""
        return sum(body.get("messages") != CHECK for body in self.requests)

    def close(self) -> None:
        self.stopping.set()
        self.go_away()

    def go_away(self) -> None:
        """Refuse new connections; those there are live on."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def come_back(self) -> None:
        """Listen, at the port it had before if it had one."""
        self._http = _HttpServer(("127.0.0.1", self._port), type("Handler", (_Handler,), {"scripted": self}))
        self._http.daemon_threads = True
        self._port = int(self._http.server_address[1])
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()


def prompt_of(body: Mapping[str, Any]) -> str:
    """All message texts of a chat request, for scripts that look for words in it."""
    return "\n".join(str(message["content"]) for message in body["messages"])


class _HttpServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is the client's affair; the default would print a traceback among what it said."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body go out in two writes; held back, the second would wait 40 ms for the first one's acknowledgement.
    disable_nagle_algorithm = True
    scripted: ScriptedServer

    def do_GET(self) -> None:
        self._send(200, json.dumps({"object": "list", "data": [{"id": "scripted", "object": "model"}]}).encode())

    def do_POST(self) -> None:
        server = self.scripted
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.keys.append(self.headers.get("Authorization", "").removeprefix("Bearer "))
        try:
            route = self.path.partition("?")[0]
            # Azure's addresses name a deployment.
            if re.fullmatch(r"(/v1|/openai/deployments/[^/]+)/chat/completions", route):
                self._chat(body)
            elif re.fullmatch(r"(/v1|/openai/deployments/[^/]+)/embeddings", route):
                self._embeddings(body)
            elif route == "/v1/responses":
                self._chat(chat_request(body), response_of)
            else:
                self._send(404, _error(f"no route {self.path}"))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _chat(
        self, body: dict[str, Any], form: Callable[[dict[str, Any]], dict[str, Any]] = lambda answer: answer
    ) -> None:
        """Answer a chat request; `form` gives the answer the form of another protocol."""
        server = self.scripted
        with server.lock:
            server.requests.append(body)
            server.under_way += 1
            server.most_at_once = max(server.most_at_once, server.under_way)
        try:
            decided = server.script(body)
            reply = Reply(decided) if isinstance(decided, str) else decided
            self._wait(reply)
        finally:
            with server.lock:
                server.under_way -= 1
        read = sum(len(str(message.get("content")).split()) for message in body["messages"])
        written = len(reply.text.split())
        self._deliver(
            reply,
            {
                "id": "chatcmpl-scripted",
                "object": "chat.completion",
                "created": 0,
                "model": body.get("model"),
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": reply.finish_reason,
                        "message": {"role": "assistant", "content": reply.text},
                        **(_logprobs(reply.first_token) if reply.first_token and body.get("logprobs") else {}),
                    }
                ],
                "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
            },
            form,
        )

    def _embeddings(self, body: dict[str, Any]) -> None:
        server = self.scripted
        with server.lock:
            server.embedding_requests.append(body)
        decided = server.embed_reply(body) if server.embed_reply else Reply()
        reply = Reply(decided) if isinstance(decided, str) else decided
        self._wait(reply)
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        data = [{"object": "embedding", "index": n, "embedding": list(server.embed(t))} for n, t in enumerate(texts)]
        usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
        self._deliver(reply, {"object": "list", "model": body.get("model"), "data": data, "usage": usage})

    def _wait(self, reply: Reply) -> None:
        if reply.hang:
            self.scripted.stopping.wait()
        elif reply.delay:
            time.sleep(reply.delay)

    def _deliver(
        self,
        reply: Reply,
        answer: dict[str, Any],
        form: Callable[[dict[str, Any]], dict[str, Any]] = lambda answer: answer,
    ) -> None:
        if reply.hang:
            self.close_connection = True
            return
        if reply.reset:
            self.close_connection = True
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(self.connection.detach())
            return
        if reply.change is not None:
            answer = reply.change(answer)
        data = json.dumps(form(answer)).encode() if reply.status == 200 else _error(reply.text or "scripted failure")
        data = data if reply.raw is None else reply.raw
        if reply.wire is not None:
            self.close_connection = True
            reply.wire(self.connection.sendall, data)
            return
        if reply.drop:
            self.close_connection = True
        self._send(reply.status, data, reply.headers, sent=len(data) // 2 if reply.drop else len(data))

    def _send(
        self, status: int, data: bytes, headers: Mapping[str, str] | None = None, sent: int | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[:sent])


def _logprobs(alternatives: Mapping[str, float]) -> dict[str, Any]:
    likeliest_first = sorted(alternatives.items(), key=lambda alternative: -alternative[1])
    ranked = [{"token": token, "logprob": value} for token, value in likeliest_first]
    return {"logprobs": {"content": [{**ranked[0], "top_logprobs": ranked}]}}


def _error(message: str) -> bytes:
    return json.dumps({"error": {"message": message, "type": "scripted", "code": None}}).encode()
