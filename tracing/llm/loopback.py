"""A JSON server on 127.0.0.1 for the bearers of one token: what the embedded server and the gateway listen with."""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tracing.errors import ConfigError, MemtuneError

_MOST_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """A request: its parsed body (None without one) and its headers, whose names are case-insensitive."""

    body: Any
    headers: Message


@dataclass(frozen=True, slots=True)
class Events:
    """A reply that is sent as a stream of server-sent events, closed by `[DONE]`."""

    items: Sequence[Mapping[str, Any]]


class RefusalError(Exception):
    """Raised by a route: the request is answered with this status, an error object and these headers."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, dict(headers or {})


Route = Callable[[Request], "Mapping[str, Any] | Events"]
"""Answers a request. A `MemtuneError` it raises becomes 404, an error of form 400, any other 500."""


class LoopbackServer:
    """Serves `routes` ("POST /v1/embeddings" → route) on a random port, unless one is given, to bearers of `key`.

    Attributes:
        key: the bearer token; random unless given.
        base_url: up to and including `/v1`.
    """

    def __init__(self, name: str, routes: Mapping[str, Route], *, port: int = 0, key: str | None = None) -> None:
        """Bind the port without serving yet; `name` is told in error objects.

        Raises:
            ConfigError: the port is taken.
        """
        self.name, self.routes = name, dict(routes)
        self.key = key or secrets.token_urlsafe(24)
        self._thread: threading.Thread | None = None
        try:
            self._http = _Listener(("127.0.0.1", port), self)
        except OSError as error:
            raise ConfigError(f"127.0.0.1:{port}: cannot listen ({error.strerror}); name another port") from None
        self.base_url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def start(self) -> None:
        """Serve in a background thread."""
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.1,), name=self.name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        if self._thread is not None:
            self._http.shutdown()
            self._thread.join()
        self._http.server_close()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = False

    def __init__(self, address: tuple[str, int], server: LoopbackServer) -> None:
        self.loopback = server
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body go out in two writes; held back, the second would wait for the first one's acknowledgement.
    disable_nagle_algorithm = True
    server: _Listener

    def do_GET(self) -> None:
        self._answer("GET", b"")

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > _MOST_BYTES:
            self.close_connection = True
            return self._refuse(413, "the request is too large")
        self._answer("POST", self.rfile.read(length))
        return None

    def log_message(self, format: str, *args: Any) -> None:
        """Requests hold the user's texts: none is logged."""

    def _answer(self, method: str, raw: bytes) -> None:
        loopback = self.server.loopback
        if not hmac.compare_digest(self.headers.get("Authorization", "").encode(), f"Bearer {loopback.key}".encode()):
            return self._refuse(401, "wrong or missing bearer token")
        route = loopback.routes.get(f"{method} {self.path.rstrip('/')}")
        if route is None:
            return self._refuse(404, f"no route {method} {self.path}")
        try:
            reply = route(Request(json.loads(raw) if raw else None, self.headers))
        except RefusalError as refusal:
            return self._refuse(refusal.status, str(refusal), refusal.headers)
        except MemtuneError as error:
            return self._refuse(404, str(error))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return self._refuse(400, f"malformed request: {error!r}")
        except Exception as error:
            return self._refuse(500, f"the runtime failed: {error!r}")
        if isinstance(reply, Events):
            return self._stream(reply)
        failure = reply.get("error")
        return self._send(int(failure.get("code", 500)) if isinstance(failure, dict) else 200, reply)

    def _refuse(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        name = self.server.loopback.name.replace(" ", "_")
        self._send(status, {"error": {"message": message, "type": f"{name}_error"}}, headers)

    def _send(self, status: int, reply: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        self._write(status, json.dumps(reply).encode(), {"Content-Type": "application/json", **(headers or {})})

    def _stream(self, events: Events) -> None:
        lines = [*(json.dumps(item) for item in events.items), "[DONE]"]
        data = "".join(f"data: {line}\n\n" for line in lines).encode()
        self._write(200, data, {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})

    def _write(self, status: int, data: bytes, headers: Mapping[str, str]) -> None:
        try:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except ConnectionError:
            # The client gave up on its request.
            self.close_connection = True
