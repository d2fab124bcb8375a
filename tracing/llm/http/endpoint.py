"""One OpenAI-compatible endpoint: its address, its key, and its retries."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import itertools
import json
import logging
import random
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from math import isfinite
from typing import Any, TypeVar

from tracing.errors import CallFailedError, MalformedReplyError, RunError
from tracing.llm.accounting.budget import Budget
from tracing.llm.http.bodies import ChatCompletion, Embeddings, error_in, read_chat, read_vectors
from tracing.llm.http.event_loop import EventLoop
from tracing.llm.http.posting import (
    HttpAnswer,
    ImpossibleRequestError,
    NobodyThereError,
    Poster,
    PostError,
    TooSlowError,
    UnreachableError,
)
from tracing.llm.settings import ModelSettings
from tracing.recording.redaction import excerpt, without

_log = logging.getLogger(__name__)

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
LONGEST_ASKED_WAIT_S = 300.0
"""The longest `Retry-After` that is honoured; if an endpoint asks for more, the call fails."""

OUTAGE_S = 300.0
"""How long to wait for an endpoint that has answered before and cannot be reached; then the call fails."""

CHECK_S = 12.0
"""How long the small request before a run may take."""

EMBEDDED_TIMEOUT_S = 900.0
"""The embedded server cannot drop a request, so giving up on one and asking again would only double its work."""

_PASSING_STATUS = frozenset({408, 409, 429})
_OUTAGE_STATUS = frozenset({502, 503, 504})
_LONGEST_REASON = 500
_SHORTEST_KEY = 16
_AFTER_THE_END_S = 0.05
"""How long after the end of the time budget a request is given up, so that the budget is certainly over by then."""

Address = Callable[[], tuple[str, str]]
"""Gives base URL and key; called on the first request, so that an unused embedded server never starts."""

_Reply = TypeVar("_Reply", ChatCompletion, Embeddings)


class _RefusedError(Exception):
    """The endpoint answered with an error status."""

    def __init__(self, answer: HttpAnswer) -> None:
        message, self.code = error_in(answer.body)
        super().__init__(f"HTTP {answer.status} {message}".rstrip())
        self.status = answer.status
        self.retry_after = _retry_after(answer.headers)
        self.remedy = _REMEDIES.get(answer.status, "")
        if 300 <= answer.status < 400:
            self.remedy = f"it redirects to {answer.headers.get('location')}; give that address as base_url"

    @property
    def may_pass(self) -> bool:
        passing = self.status in _PASSING_STATUS or self.status >= 500
        return passing and self.code != "insufficient_quota" and (self.retry_after or 0) <= LONGEST_ASKED_WAIT_S


class Endpoint:
    """Sends requests for one model; thread-safe."""

    def __init__(
        self, settings: ModelSettings, address: Address | None, gate: asyncio.Semaphore, loop: EventLoop, budget: Budget
    ) -> None:
        """`address` None means the URL and key of the settings; `gate` limits concurrent requests on this loop."""
        self.settings = settings
        self._address = address
        self._gate, self._loop = gate, loop
        self._budget = budget
        self._poster: Poster | None = None
        self._key: str | None = None
        self._has_answered = self._closed = False
        self._lock = threading.Lock()
        self._unchecked = False
        self._checking = threading.Lock()

    def chat(self, body: Mapping[str, Any]) -> ChatCompletion:
        """Post a chat request.

        Raises:
            CallFailedError: refused, or every attempt failed.
            BudgetExceededError: the time budget ended before the reply arrived.
            RunError: the check before the first call failed (`check_first`).
        """
        most, alternatives, tools = body["max_tokens"], bool(body.get("logprobs")), bool(body.get("tools"))

        def read(raw: bytes) -> ChatCompletion:
            return self._without_key(read_chat(raw, most_tokens=most, alternatives=alternatives, tools=tools))

        return self._send("/chat/completions", body, read)

    def embed(self, body: Mapping[str, Any], check: Callable[[Embeddings], None]) -> Embeddings:
        """Post an embedding request; the vectors are in the order of the texts.

        Args:
            check: raises a `MalformedReplyError` if the vectors are not as expected.

        Raises:
            CallFailedError, BudgetExceededError, RunError: as `chat`.
        """

        def read(raw: bytes) -> Embeddings:
            embeddings = read_vectors(raw, len(body["input"]))
            check(embeddings)
            return embeddings

        return self._send("/embeddings", body, read)

    def check(self, *, embedding: bool) -> None:
        """Make one small request, to find early what would make every call fail. It is neither booked nor retried.

        A temporary problem, such as an overloaded endpoint or one that is loading its model, is not a failure.

        Raises:
            CallFailedError: the endpoint does not answer, or refuses the key or the model.
        """
        path = "/embeddings" if embedding else "/chat/completions"
        small: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 1}
        request = {"input": ["hello"], "encoding_format": "float"} if embedding else small
        data = json.dumps({"model": self.settings.model, **request}).encode()
        try:
            answer = self._connect().post(path, data, lambda: CHECK_S)
        except (NobodyThereError, ImpossibleRequestError) as error:
            raise self._failed(str(error), "check base_url, and that its server is running", 1) from None
        except PostError:
            return
        if 200 <= answer.status < 300:
            return
        refused = _RefusedError(answer)
        # A request this small may be refused for its size; a refusal that names the model is about the model.
        other = answer.status in (400, 422) and self.settings.model not in str(refused)
        if refused.may_pass or other:
            return
        remedy = refused.remedy or "check base_url and model"
        if answer.status in (401, 403) and self._key is None:
            remedy = f"no key was sent: set the variable {self.settings.api_key_env}, or name another with api_key_env"
        raise self._failed(str(refused), remedy, 1)

    def check_first(self) -> None:
        """Check before the first call, if one is made. A failure is a `RunError`: it is not the fault of that call."""
        self._unchecked = True

    def close(self) -> None:
        """Abandon requests under way and close the connections; later calls fail."""
        with self._lock:
            self._closed = True
            if self._poster is not None:
                self._poster.close()
                self._poster = None

    def _send(self, path: str, body: Mapping[str, Any], read: Callable[[bytes], _Reply]) -> _Reply:
        self._check_if_due(embedding=path == "/embeddings")
        poster, started = self._connect(), time.monotonic()
        data = json.dumps(body).encode()
        needs_text, asked_once_more = "response_format" in body, False
        for attempt in itertools.count(1):
            tried_enough = attempt > self.settings.retries
            may_pass, outage, remedy = True, False, ""
            retry_after: float | None = None
            try:
                reply = read(self._answer(poster, path, data))
                self._has_answered = True
                if not (needs_text and self._is_silent(reply)) or asked_once_more or tried_enough:
                    return reply
                asked_once_more = True
                _log.warning("%s replied nothing where JSON is needed; it is asked once more", self.settings.model)
                self._wait(attempt, None)
                continue
            except _RefusedError as error:
                reason, remedy, retry_after, may_pass = str(error), error.remedy, error.retry_after, error.may_pass
                outage = error.status in _OUTAGE_STATUS
            except MalformedReplyError as error:
                reason = f"the reply is malformed: {error}"
            except TooSlowError as error:
                # The endpoint is slow, or the budget left no more time.
                self._budget.check_time()
                reason, remedy = str(error), "raise timeout_s, or ask for shorter replies"
            except PostError as error:
                reason, may_pass = str(error), error.may_pass
                outage = isinstance(error, UnreachableError)
            if not may_pass or (tried_enough and not (outage and self._waits_for_outage(started))):
                raise self._failed(reason, remedy, attempt)
            self._wait(attempt, retry_after)
        raise AssertionError("the last attempt returns or raises")

    def _check_if_due(self, *, embedding: bool) -> None:
        if not self._unchecked:
            return
        with self._checking:
            if self._unchecked:
                try:
                    self.check(embedding=embedding)
                except CallFailedError as error:
                    raise RunError(str(error)) from None
                self._unchecked = False

    def _answer(self, poster: Poster, path: str, data: bytes) -> bytes:
        """The body of the answer to one attempt."""
        answer = poster.post(path, data, self._seconds, self._turn())
        if not 200 <= answer.status < 300:
            raise _RefusedError(answer)
        return answer.body

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait until another request is allowed, at most until the time budget ends.

        The event loop does it: there the next request is sent as soon as an answer is complete, without waiting for a
        thread to wake up.
        """
        try:
            async with asyncio.timeout(self._remaining()):
                await self._gate.acquire()
        except TimeoutError:
            raise TooSlowError("its turn did not come") from None
        try:
            yield
        finally:
            self._gate.release()

    def _seconds(self) -> float:
        """How long a reply may take from now."""
        self._budget.check_time()
        most = EMBEDDED_TIMEOUT_S if self.settings.embedded else self.settings.timeout_s
        remaining = self._remaining()
        return most if remaining is None else min(most, remaining)

    def _remaining(self) -> float | None:
        """Seconds until the time budget is certainly over; None without a limit."""
        remaining = self._budget.remaining_seconds()
        return None if remaining is None else remaining + _AFTER_THE_END_S

    def _waits_for_outage(self, started: float) -> bool:
        """Whether to keep trying to reach an endpoint; the address of one that never answered is probably wrong."""
        patient = self._has_answered and self.settings.retries > 0
        return patient and time.monotonic() - started < OUTAGE_S

    def _is_silent(self, reply: ChatCompletion | Embeddings) -> bool:
        """Whether a chat reply is empty, as overloaded endpoints send them.

        A model that used up its limit by reasoning would do so again.
        """
        if not isinstance(reply, ChatCompletion) or self.settings.embedded:
            return False
        return not reply.text and not reply.tool_calls and reply.finish_reason != "length"

    def _connect(self) -> Poster:
        with self._lock:
            if self._closed:
                raise self._failed("the model access is closed", "", 1)
            if self._poster is None:
                if self._address is not None:
                    base_url, self._key = self._address()
                else:
                    base_url, self._key = str(self.settings.base_url), self.settings.key()
                # Many local servers need no key.
                headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
                self._poster = Poster(base_url, headers, self._loop)
            return self._poster

    def _wait(self, attempt: int, retry_after: float | None) -> None:
        backoff = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (attempt - 1)) * random.uniform(0.5, 1)  # noqa: S311 - jitter
        wait = max(backoff, retry_after or 0.0)
        remaining = self._budget.remaining_seconds()
        if remaining is not None and wait >= remaining:
            time.sleep(remaining)
            self._budget.check_time()
        time.sleep(wait)

    def _failed(self, reason: str, remedy: str, attempts: int) -> CallFailedError:
        where = self.settings.base_url or "embedded server"
        message = excerpt(reason, _LONGEST_REASON, self._key)
        if remedy and not self.settings.embedded:
            message += f"; {excerpt(remedy, _LONGEST_REASON, self._key)}"
        tried = f" after {attempts} attempts" if attempts > 1 else ""
        return CallFailedError(f"{self.settings.model} at {where}: {message}{tried}")

    def _without_key(self, completion: ChatCompletion) -> ChatCompletion:
        """A reply without the key, which an endpoint may repeat. A short key stays: it may be a word of the reply."""
        if self._key is None or len(self._key) < _SHORTEST_KEY:
            return completion
        if completion.tool_calls is None:
            return completion.model_copy(update={"text": without(completion.text, self._key)})
        return ChatCompletion.model_validate_json(without(completion.model_dump_json(), self._key))


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the endpoint asks to wait: a number, or an HTTP date (RFC 9110, section 10.2.3). None if invalid."""
    value = headers.get("retry-after")
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
        return max(0.0, seconds)
    return seconds if isfinite(seconds) and seconds >= 0 else None


_REMEDIES = {
    401: "check the key (api_key, or the variable named by api_key_env)",
    403: "check the permissions of the key",
    404: "check base_url and model",
    429: "lower the concurrency or raise the quota",
}
