"""Posting JSON to one server: the whole answer within a time and a size, or an error."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import threading
import urllib.request
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tracing.errors import ConfigError
from tracing.recording.redaction import redact

if TYPE_CHECKING:
    import aiohttp
    from anyio.from_thread import BlockingPortal

MOST_BYTES = 32 * 1024 * 1024
"""Of one answer, after decompression: sixty-four long vectors as JSON text are less than half of it."""

_CONNECT_S = 10.0
"""After that a server that does not even accept the connection cannot be reached."""

_PACKED = frozenset({"gzip", "deflate"})
_READABLE = _PACKED | {"", "identity"}
_ANY_HEADER = zlib.MAX_WBITS | 32
"""Makes zlib take the header of gzip as well as its own."""
_PIECE = 1024 * 1024
_NOT_PACKED = "the reply is not compressed as it says"


class PostError(Exception):
    """No answer came; the message says why. `may_pass` says whether another attempt may fare better."""

    may_pass = True


class UnreachableError(PostError):
    """The server cannot be reached, or broke the connection off."""


class NobodyThereError(UnreachableError):
    """No connection could be made."""


class TooSlowError(PostError):
    """The answer was not whole in time."""


class UnusableAnswerError(PostError):
    """What comes is no answer that may be read: too large, or compressed in a way nobody asked for."""


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

    An event loop in a thread of its own waits for the answers, since only there a deadline holds for everything that
    may take time: looking the name up, connecting, and each byte of headers and body, however slowly they come.
    """

    def __init__(self, base_url: str, headers: Mapping[str, str]) -> None:
        """`headers` go with every request.

        Raises:
            ConfigError: aiohttp is not installed, or cannot use the proxy or certificates that the environment names.
        """
        try:
            import aiohttp  # noqa: F401
            from anyio.from_thread import start_blocking_portal
        except ImportError:
            raise ConfigError("model calls need the aiohttp package: pip install 'memtune[llm]'") from None
        self._base_url = base_url
        self._headers = {**headers, "Content-Type": "application/json", "Accept-Encoding": "gzip, deflate"}
        try:
            self._proxy = _proxy_for(base_url)
            certificates = _certificates()
        except (OSError, ValueError) as error:
            names = "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE and SSL_CERT_DIR"
            raise ConfigError(f"no connection can be made ({redact(str(error))}); check {names}") from None
        self._stack = contextlib.ExitStack()
        self._portal: BlockingPortal = self._stack.enter_context(start_blocking_portal())
        self._session = self._portal.call(_session, certificates)
        self._closing = threading.Lock()
        self._open = True

    def post(self, path: str, body: bytes, seconds: float) -> HttpAnswer:
        """The answer to a JSON body.

        Raises:
            UnreachableError, TooSlowError, UnusableAnswerError, ImpossibleRequestError: see there.
        """
        if not all(value.isascii() and value.isprintable() for value in self._headers.values()):
            # A client that sends such a thing all the same sends something else than was meant.
            raise ImpossibleRequestError("the key has characters that no HTTP header can hold")
        try:
            pending = self._portal.start_task_soon(self._post, path, body, seconds)
        except RuntimeError:
            raise ImpossibleRequestError("the model access is closed") from None
        try:
            return pending.result()
        except (CancelledError, PostError):
            if self._open:
                raise
            raise ImpossibleRequestError("the model access was closed before the reply came") from None
        except BaseException:
            pending.cancel()  # where the caller is interrupted, nobody waits for the answer any more
            raise

    def close(self) -> None:
        """Give up on what is under way, and close all connections. Closing twice does no harm."""
        with self._closing:
            if not self._open:
                return
            self._open = False
        with contextlib.suppress(RuntimeError):
            self._portal.call(self._session.close)
            self._portal.call(self._portal.stop, True)
        self._stack.close()

    async def _post(self, path: str, body: bytes, seconds: float) -> HttpAnswer:
        import aiohttp

        try:
            async with (
                asyncio.timeout(seconds),
                self._session.post(
                    self._base_url + path,
                    data=body,
                    headers=self._headers,
                    proxy=self._proxy,
                    # A redirected request would take the user's texts to a server that nobody named.
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


async def _session(certificates: ssl.SSLContext) -> aiohttp.ClientSession:
    import aiohttp

    return aiohttp.ClientSession(
        # How many are under way at once is the endpoint's affair.
        connector=aiohttp.TCPConnector(limit=0, ssl=certificates),
        cookie_jar=aiohttp.DummyCookieJar(),
        # aiohttp would unpack a chunk whole, a thousandfold of what came, before anybody could count it.
        auto_decompress=False,
        # A deadline for the whole answer takes the place of the other times.
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
    )


def _certificates() -> ssl.SSLContext:
    """Whom to trust: what the environment names, or else the usual authorities.

    Raises:
        OSError: there is no such file, or none that can be used.
    """
    import certifi

    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    return ssl.create_default_context(cafile=file or (None if folder else certifi.where()), capath=folder or None)


def _proxy_for(url: str) -> str | None:
    """The proxy that the environment names for a server; None for those on this machine, which it could not reach.

    Raises:
        ValueError: it is none that can be used.
    """
    named = urllib.request.getproxies()
    for name in ("http", "https", "all"):
        scheme = urlsplit(named.get(name, "")).scheme
        if name in named and scheme not in ("http", "https"):
            raise ValueError(f"{scheme!r} is no kind of proxy that can be used; give an http:// or https:// one")
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
    """The error and what is at the bottom of it, since the client's own message may be no more than that it failed."""
    bottom = error
    while (below := bottom.__cause__ or bottom.__context__) is not None:
        bottom = below
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    return text if str(bottom) in text else f"{text} ({bottom})"
