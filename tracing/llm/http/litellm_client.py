"""Models that do not speak OpenAI's protocol, through the litellm package: to the SDK it is one more HTTP client."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx

from tracing.errors import ConfigError
from tracing.llm.http.sdk_client import TIMEOUT, UnusableAnswerError, WholeAnswers
from tracing.llm.settings import ModelSettings


class TranslatedAnswers(WholeAnswers):
    """Lets litellm translate each request, and send it through connections with the same limits.

    Raises:
        ConfigError: litellm is not installed.
    """

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        # Without it the import waits for a file from the network.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        # Its types, at its first calls.
        warnings.filterwarnings("ignore", message=".*`ReadOnly` qualifier")
        try:
            import litellm
            from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler
        except ImportError:
            raise ConfigError(f"{settings.model}: litellm is not installed: pip install 'memtune[litellm]'") from None
        litellm.suppress_debug_info, litellm.telemetry = True, False
        self._litellm = litellm
        handler = AsyncHTTPHandler()
        handler.client = _Connections(super()._sent)
        headers = {name: value.get_secret_value() for name, value in settings.headers.items()}
        self._options = {"api_base": settings.base_url, "extra_headers": headers or None, "client": handler}

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        call = self._litellm.aembedding if "input" in body else self._litellm.acompletion
        key = request.headers.get("authorization", "").removeprefix("Bearer ") or None
        try:
            reply = await call(**body, **self._options, api_key=key, num_retries=0, max_retries=0)
        except Exception as error:
            return _refusal(error, request)
        return httpx.Response(200, text=reply.model_dump_json(), request=request)


class _Connections(httpx.AsyncClient):
    """What litellm sends its requests with."""

    def __init__(self, sent: Callable[[httpx.Request], Awaitable[httpx.Response]]) -> None:
        super().__init__(trust_env=False, verify=False)
        self._sent = sent

    async def send(self, request: httpx.Request, **_: Any) -> httpx.Response:
        request.extensions = {**request.extensions, "timeout": TIMEOUT.as_dict()}
        try:
            return await self._sent(request)
        except httpx.ConnectError as error:
            # litellm would try that one again, with a client that knows no limits.
            raise httpx.NetworkError(str(error), request=request) from error


def _refusal(error: Exception, request: httpx.Request) -> httpx.Response:
    """An error of litellm as the SDK would get it from an endpoint."""
    for cause in reversed(list(_causes(error))):
        if isinstance(cause, httpx.TransportError | UnusableAnswerError):
            raise cause
    status, response = getattr(error, "status_code", None), getattr(error, "response", None)
    if not isinstance(status, int):
        raise error
    headers = getattr(error, "litellm_response_headers", None) or getattr(response, "headers", None) or {}
    wait = {name: headers[name] for name in ("retry-after", "retry-after-ms") if name in headers}
    return httpx.Response(status, headers=wait, json={"error": {"message": str(error)}}, request=request)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
