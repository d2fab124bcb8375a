"""The connection to one endpoint: its address, its key, and the requests that are under way to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any

from tracing.errors import CallFailedError
from tracing.llm.accounting.budget import Budget
from tracing.llm.http.event_loop import ClosedLoopError, EventLoop
from tracing.llm.http.refusals import RefusedRequestError, UnreachedError
from tracing.llm.settings import ModelSettings
from tracing.recording.redaction import excerpt

if TYPE_CHECKING:
    from tracing.llm.http.sdk_client import Attempts, SdkClient

_LONGEST_REASON = 500
_NOWHERE = "http://litellm.invalid"
"""The address of requests that the litellm package answers."""

_AFTER_THE_END_S = 0.05
"""How long after the end of the time budget a request is given up, so that the budget is certainly over by then."""

Address = Callable[[], tuple[str, str]]
"""Gives base URL and key; called on the first request, so that an unused embedded server never starts."""


class Connection:
    """Connects on the first request; thread-safe.

    Args:
        settings: of the model.
        address: gives the URL and key; None for those of the settings.
        loop: sends the requests.
        budget: whose time ends all waiting.

    Attributes:
        key: the one that is sent; None for none, and before it is known.
    """

    def __init__(self, settings: ModelSettings, address: Address | None, loop: EventLoop, budget: Budget) -> None:
        self.key: str | None = None
        self._settings, self._address, self._loop, self._budget = settings, address, loop, budget
        self._client: SdkClient | None = None
        self._under_way: set[Future[bytes]] = set()
        self._closed = False
        self._lock = threading.Lock()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no text may hold: the key, which may be read for it, and what the settings hide."""
        with self._lock:
            if self.key is None and not self._settings.embedded:
                self.key = self._settings.key()
            return tuple(filter(None, (self.key, *self._settings.secrets)))

    def post(self, path: str, body: Mapping[str, Any], attempts: Attempts, *, retries: int) -> bytes:
        """The body of the answer to the first attempt that succeeds.

        Raises:
            BudgetExceededError: the time budget ended before the answer was complete.
            CallFailedError: the request cannot be sent at all.
        """
        import httpx
        import openai

        from tracing.llm.http.sdk_client import in_words

        client = self._connect()
        self._budget.check_time()
        remaining = self._budget.remaining_seconds()

        async def within_budget() -> bytes:
            async with asyncio.timeout(None if remaining is None else remaining + _AFTER_THE_END_S):
                return await client.post(path, json.dumps(body).encode(), attempts, retries=retries)

        try:
            return self._result(within_budget)
        except TimeoutError:
            self._budget.check_time()
            raise
        except openai.APIStatusError as error:
            raise RefusedRequestError(error.response, self._settings, embedding=path == "/embeddings") from None
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            nobody = isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError)
            if isinstance(cause, httpx.ReadTimeout):
                raise UnreachedError(str(cause), "raise timeout_s, or ask for shorter replies", outage=False) from None
            outage = isinstance(cause, httpx.HTTPError | OSError)
            raise UnreachedError(in_words(cause), outage=outage, nobody=nobody) from None
        except (httpx.InvalidURL, ValueError) as error:
            raise self.failed(in_words(error), "", 1) from None

    def asked_for_key_again(self, refused_key: str | None) -> bool:
        """Whether the command that prints the key printed another than the one that was refused."""
        if self._settings.key_command is None or refused_key is None:
            return False
        with self._lock:
            if self.key == refused_key:
                self.key = self._settings.key()
                if self._client is not None and self.key is not None:
                    self._client.key = self.key
            return self.key != refused_key

    def close(self) -> None:
        """Abandon requests under way and close the connections; later calls fail."""
        with self._lock:
            self._closed = True
            client, self._client = self._client, None
            under_way = list(self._under_way)
        self._loop.cancel(under_way)
        if client is not None:
            with contextlib.suppress(ClosedLoopError, CancelledError):
                self._loop.start(client.close).result()

    def failed(self, reason: str, remedy: str, attempts: int) -> CallFailedError:
        """The error of a call that failed, without any secret in it."""
        secrets = (self.key, *self._settings.secrets)
        message = excerpt(reason, _LONGEST_REASON, *secrets)
        if remedy and not self._settings.embedded:
            message += f"; {excerpt(remedy, _LONGEST_REASON, *secrets)}"
        tried = f" after {attempts} attempts" if attempts > 1 else ""
        return CallFailedError(f"{self._settings.model} at {self._settings.place}: {message}{tried}")

    def _connect(self) -> SdkClient:
        from tracing.llm.http.sdk_client import SdkClient

        with self._lock:
            if self._closed:
                raise self.failed("the model access is closed", "", 1)
            if self._client is None:
                if self._address is not None:
                    base_url, self.key = self._address()
                else:
                    base_url, self.key = self._settings.base_url or _NOWHERE, self.key or self._settings.key()
                if self.key and not (self.key.isascii() and self.key.isprintable()):
                    raise self.failed("the key has characters that no HTTP header can hold", "", 1)
                answers = None
                if self._settings.litellm:
                    from tracing.llm.http.litellm_client import TranslatedAnswers

                    answers = TranslatedAnswers(self._settings)
                self._client = SdkClient(self._settings, base_url, self.key, answers)
            return self._client

    def _result(self, work: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
        """What the event loop makes of it; it is abandoned if the caller is interrupted or the endpoint closed."""
        try:
            with self._lock:
                if self._closed:
                    raise ClosedLoopError
                future = self._loop.start(work)
                self._under_way.add(future)
        except ClosedLoopError:
            raise self.failed("the model access is closed", "", 1) from None
        try:
            return future.result()
        except CancelledError:
            raise self.failed("the model access was closed before the reply came", "", 1) from None
        except BaseException:
            future.cancel()
            raise
        finally:
            with self._lock:
                self._under_way.discard(future)
