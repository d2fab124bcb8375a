"""Posting JSON to one server: the whole answer within a time and a size, or an error."""

from __future__ import annotations

import contextlib
import threading
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracing.errors import ConfigError
from tracing.recording.redaction import redact

if TYPE_CHECKING:
    import httpx
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
            ConfigError: httpx is not installed, or cannot use the proxy or certificates that the environment names.
        """
        try:
            import httpx
            from anyio.from_thread import start_blocking_portal
        except ImportError:
            raise ConfigError("model calls need the httpx package: pip install 'memtune[llm]'") from None
        self._base_url = base_url
        self._headers = {**headers, "Content-Type": "application/json", "Accept-Encoding": "gzip, deflate"}
        try:
            self._certificates = httpx.create_ssl_context()
            self._idle: list[httpx.AsyncClient] = [self._new_client()]
        except (ImportError, OSError, ValueError, httpx.InvalidURL) as error:
            names = "HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE and SSL_CERT_DIR"
            raise ConfigError(f"no connection can be made ({redact(str(error))}); check {names}") from None
        self._stack = contextlib.ExitStack()
        self._portal: BlockingPortal = self._stack.enter_context(start_blocking_portal())
        self._closing = threading.Lock()
        self._open = True

    def post(self, path: str, body: bytes, seconds: float) -> HttpAnswer:
        """The answer to a JSON body.

        Raises:
            UnreachableError, TooSlowError, UnusableAnswerError, ImpossibleRequestError: see there.
        """
        try:
            pending = self._portal.start_task_soon(self._post, path, body, seconds)
        except RuntimeError:
            raise ImpossibleRequestError("the model access is closed") from None
        try:
            return pending.result()
        except CancelledError:
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
            self._portal.call(self._portal.stop, True)
        self._stack.close()

    def _new_client(self) -> httpx.AsyncClient:
        """A client for one request at a time.

        Shared by many, its pool would look at each connection for every request: 64 at a time cost a whole core.
        """
        import httpx

        return httpx.AsyncClient(
            # A redirected request would take the user's texts to a server that nobody named.
            follow_redirects=False,
            # A deadline for the whole answer takes the place of the other times.
            timeout=httpx.Timeout(None, connect=_CONNECT_S),
            limits=httpx.Limits(max_connections=1),
            # To a proxy, these would be addresses of another machine.
            mounts={f"all://{host}": None for host in ("127.0.0.1", "localhost", "[::1]")},
            verify=self._certificates,
        )

    async def _post(self, path: str, body: bytes, seconds: float) -> HttpAnswer:
        import anyio
        import httpx

        # Only the thread of the event loop comes here, so the list needs no lock.
        client = self._idle.pop() if self._idle else self._new_client()
        try:
            with anyio.fail_after(seconds):
                url = self._base_url + path
                async with client.stream("POST", url, content=body, headers=self._headers) as response:
                    return HttpAnswer(response.status_code, response.headers, await _whole(response))
        except TimeoutError:
            raise TooSlowError(f"no whole reply within {seconds:g} s") from None
        except (httpx.LocalProtocolError, httpx.UnsupportedProtocol, httpx.InvalidURL, UnicodeError) as error:
            raise ImpossibleRequestError(_in_words(error)) from None
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            raise NobodyThereError(_in_words(error)) from None
        except httpx.RequestError as error:
            raise UnreachableError(_in_words(error)) from None
        finally:
            self._idle.append(client)


async def _whole(response: httpx.Response) -> bytes:
    encoding = response.headers.get("content-encoding", "").lower()
    if encoding not in _READABLE:
        raise UnusableAnswerError(f"the reply is compressed as {encoding[:40]!r}, which was not asked for")
    body = bytearray()
    # httpx would unpack a chunk whole: a thousandfold of what came, before anybody could count it.
    unpacker = zlib.decompressobj(_ANY_HEADER) if encoding in _PACKED else None
    async for chunk in response.aiter_raw():
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
