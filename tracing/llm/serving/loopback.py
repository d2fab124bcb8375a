"""A JSON server on 127.0.0.1 for bearers of one token; the embedded server and the gateway use it."""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tracing.errors import ConfigError, MalformedReplyError, MemtuneError
from tracing.llm.http.strict_json import strict_json

if TYPE_CHECKING:
    import uvicorn
    from anyio import CapacityLimiter
    from starlette.requests import Request as HttpRequest
    from starlette.responses import Response

MOST_BYTES = 32 * 1024 * 1024
"""Limit for one request's body."""

IDLE_S = 60.0
"""How long a connection may take to send a request, even if bytes trickle in; clients keep idle ones for less."""

BODY_S = 60.0
"""How long a body may take to arrive."""

_MOST_WAITING = 2048
_ROUTES_AT_ONCE = 64
_CLOSING_S = 1
_SMALL_BYTES = 65_536
_SMALL_S = 1.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Request:
    """A request: its parsed body (None without one) and its headers, whose names are case-insensitive."""

    body: Any
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Events:
    """A reply sent as a stream of server-sent events: with their types, or else one that ends with `[DONE]`."""

    items: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Document:
    """A part of a page, which holds nothing of the user's: served without a token.

    Attributes:
        content: what is sent.
        media_type: with the character set.
        headers: beside its type and length.
    """

    content: bytes
    media_type: str
    headers: Mapping[str, str]


class RefusalError(Exception):
    """Raised by a route: the request is answered with this status, an error object and these headers."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, dict(headers or {})


Route = Callable[[Request], "Mapping[str, Any] | Events"]
"""Answers a request in a pool thread. A `MemtuneError` becomes 404, a malformed request 400, any other error 500."""


class LoopbackServer:
    """Serves `routes` ("POST /v1/embeddings" → route) on a random port, unless one is given, to bearers of `key`.

    Attributes:
        key: the bearer token; random unless given.
        base_url: up to and including `/v1`.
    """

    def __init__(
        self,
        name: str,
        routes: Mapping[str, Route],
        *,
        port: int = 0,
        key: str | None = None,
        documents: Mapping[str, Document] | None = None,
    ) -> None:
        """Bind the port without serving yet; `name` is shown in error objects, `documents` are found by their path.

        Raises:
            ConfigError: the port is taken.
        """
        self.name, self.routes, self._documents = name, dict(routes), dict(documents or {})
        self.key = key or secrets.token_urlsafe(24)
        self._thread: threading.Thread | None = None
        self._server: uvicorn.Server | None = None
        self._pool: CapacityLimiter | None = None
        try:
            self._listener = socket.create_server(("127.0.0.1", port), backlog=_MOST_WAITING)
        except OSError as error:
            raise ConfigError(f"127.0.0.1:{port}: cannot listen ({error.strerror}); name another port") from None
        self.base_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"

    def start(self) -> None:
        """Serve in a background thread; a `ConfigError` if starlette or uvicorn is not installed."""
        try:
            import starlette.requests  # noqa: F401
            import uvicorn
        except ImportError:
            self._listener.close()
            raise ConfigError(f"the {self.name} needs starlette and uvicorn: pip install 'memtune[llm]'") from None
        config = uvicorn.Config(
            self._serve,
            interface="asgi3",
            proxy_headers=False,
            http=_connection_class(),
            ws="none",
            lifespan="off",
            backlog=_MOST_WAITING,
            timeout_keep_alive=IDLE_S,  # type: ignore[arg-type]
            timeout_graceful_shutdown=_CLOSING_S,
            # Requests contain the user's texts: none is logged.
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
        )
        self._server = uvicorn.Server(config)
        run = self._server.run
        self._thread = threading.Thread(target=lambda: run([self._listener]), name=self.name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving; a request under way is abandoned after a second."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
        self._listener.close()

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.requests import ClientDisconnect
        from starlette.requests import Request as HttpRequest

        try:
            response = await self._response(HttpRequest(scope, receive))
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _response(self, request: HttpRequest) -> Response:
        import anyio

        foreign = _foreign(request.headers)
        if foreign is not None:
            return await self._turned_away(request, RefusalError(403, foreign))
        document = self._documents.get(request.url.path) if request.method == "GET" else None
        if document is not None:
            return _http_response(document.content, document.media_type, headers=document.headers)
        authorization = request.headers.get("Authorization", "").encode("latin-1")
        if not hmac.compare_digest(authorization, f"Bearer {self.key}".encode()):
            return await self._turned_away(request, RefusalError(401, "wrong or missing bearer token"))
        path = f"{request.method} {request.url.path.rstrip('/')}"
        route = self.routes.get(path)
        if route is None:
            return await self._turned_away(request, RefusalError(404, f"no route {path}"))
        try:
            body = await _body(request, MOST_BYTES, BODY_S)
        except RefusalError as refusal:
            return self._refused(refusal, close=True)
        if self._pool is None:
            self._pool = anyio.CapacityLimiter(_ROUTES_AT_ONCE)
        return await anyio.to_thread.run_sync(
            self._answer, route, body, request.headers, limiter=self._pool, abandon_on_cancel=True
        )

    async def _turned_away(self, request: HttpRequest, refusal: RefusalError) -> Response:
        """A refusal of a request whose body is not needed.

        A small body is read anyway: a connection closed with unread bytes is reset, and the refusal is lost.
        """
        try:
            await _body(request, _SMALL_BYTES, _SMALL_S)
        except RefusalError:
            return self._refused(refusal, close=True)
        return self._refused(refusal)

    def _answer(self, route: Route, body: bytes, headers: Mapping[str, str]) -> Response:
        try:
            parsed = strict_json(body) if body else None
        except MalformedReplyError as error:
            return self._refused(RefusalError(400, f"malformed request: {error}"))
        try:
            reply = route(Request(parsed, headers))
        except RefusalError as refusal:
            return self._refused(refusal)
        except MemtuneError as error:
            return self._refused(RefusalError(404, str(error)))
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            return self._refused(RefusalError(400, f"malformed request: {error!r}"))
        except Exception as error:
            return self._refused(RefusalError(500, f"the runtime failed: {error!r}"))
        if isinstance(reply, Events):
            events = [(f"event: {item['type']}\n" if "type" in item else "", json.dumps(item)) for item in reply.items]
            events += [("", "[DONE]")] if not all(kind for kind, _ in events) else []
            data = "".join(f"{kind}data: {line}\n\n" for kind, line in events)
            return _http_response(data, "text/event-stream", headers={"Cache-Control": "no-cache"})
        failure = reply.get("error")
        status = int(failure.get("code", 500)) if isinstance(failure, dict) else 200
        return _http_response(json.dumps(reply), status=status)

    def _refused(self, refusal: RefusalError, *, close: bool = False) -> Response:
        error = {"message": str(refusal), "type": f"{self.name.replace(' ', '_')}_error"}
        headers = {**refusal.headers, "Connection": "close"} if close else refusal.headers
        return _http_response(json.dumps({"error": error}), status=refusal.status, headers=headers)


def _foreign(headers: Mapping[str, str]) -> str | None:
    """Why a request seems to come from a web page that was led here, by a name of its own or from another site.

    A browser sends the name under which it reached the server, which a rebound DNS name betrays, and the page's origin.
    """
    for header in ("Host", "Origin"):
        value = headers.get(header, "")
        with suppress(ValueError):
            if not value or urlsplit(value if header == "Origin" else f"//{value}").hostname in _LOOPBACK:
                continue
        return f"only requests from and to this machine are answered, not those of another {header}"
    return None


async def _body(request: HttpRequest, most: int, seconds: float) -> bytes:
    """The body of a request, unless it is larger than `most` bytes, whatever it declares, or not there in time."""
    # Whether this is a number was checked with the other headers.
    too_large = RefusalError(413, f"the request is larger than {most:,} bytes")
    if int(request.headers.get("Content-Length") or 0) > most:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise too_large
    except TimeoutError:
        raise RefusalError(408, f"the request was not complete after {seconds:g} seconds") from None
    return bytes(body)


def _http_response(
    content: str | bytes,
    media_type: str = "application/json",
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    from starlette.responses import Response

    return Response(content, status, headers, media_type=media_type)


def _connection_class() -> type[asyncio.Protocol]:
    """A uvicorn connection that does not wait forever for a request: uvicorn's limit begins with the first reply."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Connection(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            # Headers and body are two writes; without this the second would wait until the first is acknowledged.
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

        def data_received(self, data: bytes) -> None:
            # An occasional byte would postpone the end again and again.
            waiting, self.timeout_keep_alive_task = self.timeout_keep_alive_task, None
            super().data_received(data)
            if waiting is None:
                return
            under_way = self.cycle is not None and not self.cycle.response_complete
            if under_way or self.timeout_keep_alive_task is not None:
                waiting.cancel()
            else:
                self.timeout_keep_alive_task = waiting

    return Connection
