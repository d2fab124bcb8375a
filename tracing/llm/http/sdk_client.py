"""The openai SDK as the client of one endpoint: whole answers, within limits of time and size.

The SDK builds requests, keeps connections, and decides which failures are tried again and when. What it does not do is
here: a deadline over a whole attempt, a turn for each, and a limit of size after decompression.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import zlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import certifi
import httpx
import openai
import truststore
from openai._types import RequestOptions  # public as the type of `options`, though not by its module's name

from tracing.errors import ConfigError
from tracing.llm.http.bodies import MAY_PASS, error_in
from tracing.llm.http.pace import Pace
from tracing.llm.settings import ModelSettings
from tracing.recording.redaction import redact

MOST_BYTES = 32 * 1024 * 1024
"""Limit for one answer, after decompression: sixty-four long vectors as JSON need less than half of it."""

CONNECT_S = 10.0
"""A server that has not accepted the connection by then cannot be reached."""

TIMEOUT = httpx.Timeout(None, connect=CONNECT_S)
"""A deadline over the whole attempt limits the rest of its time."""

_OPENAI = "api.openai.com"
_CERTIFICATE_FILES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")
_PACKED = frozenset({"gzip", "x-gzip", "deflate"})
_PIECE = 1024 * 1024
_NOT_PACKED = "the reply is not compressed as its headers say"


class UnusableAnswerError(Exception):
    """The answer cannot be read: it is too large, or compressed in a way that was not requested."""


@dataclass(slots=True)
class Attempts:
    """The attempts at one call.

    Attributes:
        seconds: how long each may take.
        pace: when each may be sent; None for at once.
        tokens: of each, in and out, about; 0 where no rate limits them.
        made: how many were begun.
    """

    seconds: float
    pace: Pace | None = None
    tokens: int = 0
    made: int = 0


_ATTEMPTS: ContextVar[Attempts] = ContextVar("attempts")


class SdkClient:
    """The SDK's client of an endpoint. Nothing is contacted before the first request.

    Args:
        settings: of the model.
        base_url: of the endpoint.
        key: None sends none, as many local servers need none.
        answers: what sends the SDK's requests; by default connections to the endpoint.

    Attributes:
        key: may be replaced, where it is no key of Azure's.

    Raises:
        ConfigError: the environment's proxy or certificates cannot be used.
    """

    def __init__(
        self, settings: ModelSettings, base_url: str, key: str | None, answers: WholeAnswers | None = None
    ) -> None:
        self._headers: dict[str, Any] = {"Accept-Encoding": "gzip, deflate", "Content-Type": "application/json"}
        if not key:
            self._headers["Authorization"] = openai.Omit()
        if urlsplit(base_url).hostname != _OPENAI:
            # The SDK takes them from the environment; another provider has no business with them.
            self._headers |= {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
        self._headers |= {name: value.get_secret_value() for name, value in settings.headers.items()}
        self.key = key or "none"
        self._client = self._sdk_client(settings, base_url, answers or WholeAnswers())

    def _sdk_client(self, settings: ModelSettings, base_url: str, answers: WholeAnswers) -> openai.AsyncOpenAI:
        async def key() -> str:
            return self.key

        if settings.api_version is None:
            return openai.AsyncOpenAI(base_url=base_url, api_key=key, http_client=answers)
        # Entra's tokens, which a command prints, go into another header than Azure's keys.
        token = settings.key_command is not None
        return openai.AsyncAzureOpenAI(
            azure_endpoint=base_url,
            azure_deployment=settings.model,
            api_version=settings.api_version,
            api_key=None if token else self.key,
            azure_ad_token_provider=key if token else None,
            http_client=answers,
        )

    async def post(self, path: str, body: bytes, attempts: Attempts, *, retries: int) -> bytes:
        """The body of the answer to a JSON body.

        Args:
            retries: how many further attempts the SDK may make.

        Raises:
            openai.APIError: the last attempt failed.
        """
        _ATTEMPTS.set(attempts)
        options = RequestOptions(headers=self._headers, max_retries=retries)
        response: httpx.Response = await self._client.post(path, cast_to=httpx.Response, content=body, options=options)
        return response.content

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()


class WholeAnswers(httpx.AsyncClient):
    """Gives answers that are complete, within the limits of the attempts of the present call.

    Each request that is under way has a client of its own: a pool looks at all its connections for every request, and
    sixty-four of them cost twice the time of the request itself.
    """

    def __init__(self) -> None:
        self._certificates = _certificates()
        super().__init__(verify=self._certificates, trust_env=False, timeout=TIMEOUT)
        self._idle = [_http_client(self._certificates)]

    async def aclose(self) -> None:
        for client in self._idle:
            await client.aclose()
        await super().aclose()

    async def send(self, request: httpx.Request, **_: Any) -> httpx.Response:
        attempts = _ATTEMPTS.get()
        pace = attempts.pace
        async with pace.turn(attempts.tokens) if pace else contextlib.nullcontext():
            attempts.made += 1
            try:
                async with asyncio.timeout(attempts.seconds):
                    answer = await self._sent(request)
            except TimeoutError:
                raise httpx.ReadTimeout(f"no whole reply within {attempts.seconds:g} s", request=request) from None
            if pace is not None:
                pace.width.note(refused=answer.status_code == 429)
            return answer

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        client = self._idle.pop() if self._idle else _http_client(self._certificates)
        try:
            # A redirect would send the user's texts to a server that the user did not name.
            response = await client.send(request, stream=True, follow_redirects=False)
            try:
                return _answer(response, await _body(response))
            finally:
                await response.aclose()
        finally:
            self._idle.append(client)


class RunClient(httpx.AsyncClient):
    """What sends the requests of a run. Where a program in this process is recorded, its requests are not these."""


def _http_client(certificates: ssl.SSLContext) -> httpx.AsyncClient:
    try:
        return RunClient(
            verify=certificates,
            # The environment's proxy cannot reach servers on this machine.
            mounts={f"all://{host}": None for host in ("127.0.0.1", "localhost", "[::1]")},
        )
    except (ValueError, ImportError) as error:
        raise ConfigError(
            f"no connection can be made ({redact(str(error))}); check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"
        ) from None


def _certificates() -> ssl.SSLContext:
    """The certificates to trust: those that the environment names, or else the system's and the usual authorities'."""
    folder = os.environ.get("SSL_CERT_DIR")
    for name in _CERTIFICATE_FILES:
        file = os.environ.get(name)
        if file:
            try:
                return ssl.create_default_context(cafile=file, capath=folder)
            except OSError as error:
                raise ConfigError(f"{name}: {file} has no certificates to use ({error}); mend or unset it") from None
    if folder:
        return ssl.create_default_context(capath=folder)
    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(certifi.where())
    return context


def _answer(response: httpx.Response, body: bytes) -> httpx.Response:
    headers = {name: value for name, value in response.headers.items() if name != "content-encoding"}
    if error_in(body)[1] == "insufficient_quota":
        # The SDK would wait for a quota that does not come back.
        headers["x-should-retry"] = "false"
    elif response.status_code in MAY_PASS:
        headers.setdefault("x-should-retry", "true")
    return httpx.Response(response.status_code, headers=headers, content=body, request=response.request)


async def _body(response: httpx.Response) -> bytes:
    """The body, unpacked in pieces: a client that unpacks a chunk at once may make a thousand times its size of it."""
    encoding = response.headers.get("content-encoding", "identity").lower()
    if encoding not in _PACKED and encoding != "identity":
        raise UnusableAnswerError(f"the reply is compressed as {encoding[:40]!r}, which was not asked for")
    body = bytearray()
    unpacker = _Unpacker() if encoding in _PACKED else None
    async for chunk in response.aiter_raw():
        for piece in (chunk,) if unpacker is None else unpacker.pieces(chunk):
            body += piece
            if len(body) > MOST_BYTES:
                raise UnusableAnswerError(f"the reply is larger than {MOST_BYTES >> 20} MB")
    if unpacker is not None and not unpacker.complete:
        raise UnusableAnswerError(_NOT_PACKED)
    return bytes(body)


class _Unpacker:
    """Unpacks gzip, of one member or several, and deflate with or without zlib's header."""

    def __init__(self) -> None:
        self._member: zlib._Decompress | None = None
        self._begun = False

    @property
    def complete(self) -> bool:
        return self._begun and self._member is None

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """What is in a chunk, in pieces of limited size."""
        try:
            while chunk:
                if self._member is None:
                    self._member, self._begun = zlib.decompressobj(_window(chunk)), True
                yield self._member.decompress(chunk, _PIECE)
                chunk = self._member.unconsumed_tail
                if self._member.eof:
                    chunk, self._member = self._member.unused_data, None
        except zlib.error:
            raise UnusableAnswerError(_NOT_PACKED) from None


def _window(start: bytes) -> int:
    """How zlib reads what starts like this: with a header of gzip (1f) or zlib (…8), or deflate as it is."""
    return zlib.MAX_WBITS | 32 if start[0] == 0x1F or start[0] & 0x0F == 8 else -zlib.MAX_WBITS


def in_words(error: BaseException) -> str:
    """An error of a connection and its root cause, since the client's own message may say only that it failed."""
    bottom = error
    while (below := bottom.__cause__ or bottom.__context__) is not None:
        bottom = below
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    return text if str(bottom) in text else f"{text} ({bottom})"
