"""Posting JSON to one server: the whole answer within limits of time and size, or an error."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import threading
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tracing.errors import ConfigError
from tracing.llm.http.event_loop import ClosedLoopError, EventLoop
from tracing.recording.redaction import redact

if TYPE_CHECKING:
    import aiohttp

MOST_BYTES = 32 * 1024 * 1024
"""Limit for one answer, after decompression: sixty-four long vectors as JSON need less than half of it."""

_CONNECT_S = 10.0
"""A server that has not accepted the connection by then cannot be reached."""

_AT_ONCE: AbstractAsyncContextManager[None] = contextlib.nullcontext()

_PACKED = frozenset({"gzip", "deflate"})
_READABLE = _PACKED | {"", "identity"}
_ANY_HEADER = zlib.MAX_WBITS | 32
"""Makes zlib accept gzip headers as well as its own."""
_PIECE = 1024 * 1024
_NOT_PACKED = "the reply is not compressed as its headers say"


class PostError(Exception):
    """No answer arrived; the message says why. `may_pass` says whether another attempt may succeed."""

    may_pass = True


class UnreachableError(PostError):
    """The server cannot be reached, or closed the connection."""


class NobodyThereError(UnreachableError):
    """No connection could be made."""


class TooSlowError(PostError):
    """The answer was not complete in time."""


class UnusableAnswerError(PostError):
    """The answer cannot be read: it is too large, or compressed in a way that was not requested."""


class ImpossibleRequestError(PostError):
    """The request cannot be sent at all."""

    may_pass = False


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A whole answer: status, headers (names are case-insensitive) and the decompressed body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Poster:
    """Sends requests to the paths below one URL; thread-safe.

    An event loop waits for the answers, since only there does a deadline cover everything that may take time: name
    look-up, connecting, and each byte of headers and body, however slowly they arrive.
    """

    def __init__(self, base_url: str, headers: Mapping[str, str], loop: EventLoop) -> None:
        """`headers` go with every request.

        Raises:
            ConfigError: aiohttp is not installed, or the environment's proxy or certificates cannot be used.
        """
        try:
            import aiohttp  # noqa: F401
        except ImportError:
            raise ConfigError("model calls need the aiohttp package: pip install 'memtune[llm]'") from None
        self._base_url, self._loop = base_url, loop
        self._headers = {**headers, "Content-Type": "application/json", "Accept-Encoding": "gzip, deflate"}
        try:
            self._proxy = _proxy_for(base_url)
            self._certificates = _certificates()
        except (OSError, ValueError) as error:
            names = "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE and SSL_CERT_DIR"
            raise ConfigError(f"no connection can be made ({redact(str(error))}); check {names}") from None
        # These two are of the loop's thread.
        self._session: aiohttp.ClientSession | None = None
        self._under_way: set[asyncio.Task[Any]] = set()
        self._closing = threading.Lock()
        self._open = True

    def post(
        self,
        path: str,
        body: bytes,
        seconds: Callable[[], float],
        turn: AbstractAsyncContextManager[None] = _AT_ONCE,
    ) -> HttpAnswer:
        """The answer to a JSON body.

        Args:
            seconds: how long the answer may take; called when the request is about to be sent.
            turn: entered on the event loop before the request is sent, and left when the answer is complete.

        Raises:
            UnreachableError, TooSlowError, UnusableAnswerError, ImpossibleRequestError: see there.
            Exception: what `seconds` or `turn` raises.
        """
        if not all(value.isascii() and value.isprintable() for value in self._headers.values()):
            # A client that sends it anyway sends something else than intended.
            raise ImpossibleRequestError("the key has characters that no HTTP header can hold")
        try:
            pending = self._loop.start(self._post_in_turn, path, body, seconds, turn)
        except ClosedLoopError:
            raise ImpossibleRequestError("the model access is closed") from None
        try:
            return pending.result()
        except (CancelledError, PostError):
            if self._open:
                raise
            raise ImpossibleRequestError("the model access was closed before the reply came") from None
        except BaseException:
            pending.cancel()  # the caller was interrupted and no longer waits for the answer
            raise

    def close(self) -> None:
        """Abandon requests under way and close all connections. Closing twice does no harm."""
        with self._closing:
            if not self._open:
                return
            self._open = False
        with contextlib.suppress(ClosedLoopError, CancelledError):
            self._loop.start(self._abandon).result()

    async def _abandon(self) -> None:
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _post_in_turn(
        self, path: str, body: bytes, seconds: Callable[[], float], turn: AbstractAsyncContextManager[None]
    ) -> HttpAnswer:
        if not self._open:
            raise ImpossibleRequestError("the model access is closed")
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 (this is a coroutine of one)
        self._under_way.add(task)
        try:
            async with turn:
                return await self._post(path, body, seconds())
        finally:
            self._under_way.discard(task)

    async def _post(self, path: str, body: bytes, seconds: float) -> HttpAnswer:
        import aiohttp

        self._session = self._session or _session(self._certificates)
        try:
            async with (
                asyncio.timeout(seconds),
                self._session.post(
                    self._base_url + path,
                    data=body,
                    headers=self._headers,
                    proxy=self._proxy,
                    # A redirect would send the user's texts to a server that the user did not name.
                    allow_redirects=False,
                ) as response,
            ):
                return HttpAnswer(response.status, response.headers, await _whole(response))
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError) as error:
            raise NobodyThereError(_in_words(error)) from None
        except TimeoutError:
            raise TooSlowError(f"no whole reply within {seconds:g} s") from None
        except ValueError as error:
            raise ImpossibleRequestError(_in_words(error)) from None
        except (aiohttp.ClientError, OSError) as error:
            raise UnreachableError(_in_words(error)) from None


def _session(certificates: ssl.SSLContext) -> aiohttp.ClientSession:
    import aiohttp

    return aiohttp.ClientSession(
        # The endpoint limits concurrent requests.
        connector=aiohttp.TCPConnector(limit=0, ssl=certificates),
        cookie_jar=aiohttp.DummyCookieJar(),
        # aiohttp would decompress a whole chunk, perhaps to a thousand times its size, before it could be counted.
        auto_decompress=False,
        # A deadline for the whole answer replaces the other timeouts.
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
    )


def _certificates() -> ssl.SSLContext:
    """The certificates to trust: those that the environment names, or else the usual authorities.

    Raises:
        OSError: the file is missing or unusable.
    """
    import certifi

    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    return ssl.create_default_context(cafile=file or (None if folder else certifi.where()), capath=folder or None)


def _proxy_for(url: str) -> str | None:
    """The proxy that the environment names for a server; None for those on this machine, which it could not reach.

    Raises:
        ValueError: the proxy is not usable.
    """
    named = urllib.request.getproxies()
    for name in ("http", "https", "all"):
        scheme = urlsplit(named.get(name, "")).scheme
        if name in named and scheme not in ("http", "https"):
            raise ValueError(f"a proxy of kind {scheme!r} cannot be used; give an http:// or https:// one")
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in ("127.0.0.1", "localhost", "::1") or urllib.request.proxy_bypass(host):
        return None
    return named.get(parts.scheme) or named.get("all")


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    encoding = response.headers.get("content-encoding", "").lower()
    if encoding not in _READABLE:
        raise UnusableAnswerError(f"the reply is compressed as {encoding[:40]!r}, which was not asked for")
    body = bytearray()
    unpacker = zlib.decompressobj(_ANY_HEADER) if encoding in _PACKED else None
    async for chunk in response.content.iter_any():
        for piece in (chunk,) if unpacker is None else _unpacked(unpacker, chunk):
            body += piece
            if len(body) > MOST_BYTES:
                raise UnusableAnswerError(f"the reply is larger than {MOST_BYTES >> 20} MB")
    if unpacker is not None and not unpacker.eof:
        raise UnusableAnswerError(_NOT_PACKED)
    return bytes(body)


def _unpacked(unpacker: zlib._Decompress, chunk: bytes) -> Iterator[bytes]:
    try:
        while chunk:
            yield unpacker.decompress(chunk, _PIECE)
            chunk = unpacker.unconsumed_tail
    except zlib.error:
        raise UnusableAnswerError(_NOT_PACKED) from None


def _in_words(error: BaseException) -> str:
    """The error and its root cause, since the client's own message may say only that it failed."""
    bottom = error
    while (below := bottom.__cause__ or bottom.__context__) is not None:
        bottom = below
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    return text if str(bottom) in text else f"{text} ({bottom})"
