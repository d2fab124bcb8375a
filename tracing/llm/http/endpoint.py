"""One OpenAI-compatible endpoint: its address and its key, what is tried again, and why a call failed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, TypeVar

from tracing.errors import CallFailedError, MalformedReplyError, RunError
from tracing.llm.accounting.budget import Budget
from tracing.llm.accounting.token_counts import estimated_tokens, texts_of
from tracing.llm.capabilities import Capabilities
from tracing.llm.http.bodies import ChatCompletion, Embeddings, error_in, read_chat, read_vectors
from tracing.llm.http.event_loop import ClosedLoopError, EventLoop
from tracing.llm.http.pace import Pace
from tracing.llm.http.usage import MOST_TOKENS
from tracing.llm.settings import ModelSettings
from tracing.recording.redaction import excerpt, without

if TYPE_CHECKING:
    import httpx

    from tracing.llm.http.sdk_client import Attempts, SdkClient

_log = logging.getLogger(__name__)

ASK_AGAIN_S = 0.5
"""How long to wait before asking again for a reply that was malformed or empty."""

OUTAGE_WAIT_S = 8.0
"""How long to wait before trying again an endpoint that has answered before, after the SDK gave up."""

OUTAGE_S = 300.0
"""How long an endpoint that has answered before is waited for; then the call fails."""

CHECK_S = 12.0
"""How long the small request before a run may take."""

EMBEDDED_TIMEOUT_S = 900.0
"""The embedded server cannot drop a request, so giving up on one and asking again would only double its work."""

_FORM_STATUS = frozenset({400, 404, 405, 406, 415, 422, 501})
"""With these an endpoint may refuse a request for its form."""
_OUTAGE_STATUS = frozenset({429, 502, 503, 504})
_LONGEST_REASON = 500
_LONGEST_REFUSAL = 20_000
_SHORTEST_KEY = 16
_AFTER_THE_END_S = 0.05
"""How long after the end of the time budget a request is given up, so that the budget is certainly over by then."""

_HELLO = [{"role": "user", "content": "hello"}]
_SMALL_FORMAT = {
    "type": "json_schema",
    "json_schema": {
        "name": "reply",
        "schema": {"type": "object", "properties": {"reply": {"type": "string"}}, "required": ["reply"]},
    },
}
"""As strict as the forms that systems ask for."""

Address = Callable[[], tuple[str, str]]
"""Gives base URL and key; called on the first request, so that an unused embedded server never starts."""

_Reply = TypeVar("_Reply", ChatCompletion, Embeddings)


class _RefusedError(Exception):
    """The endpoint answered with an error status."""

    def __init__(self, answer: httpx.Response) -> None:
        message, self.code = error_in(answer.content)
        # Which field is refused may stand beside the message.
        self.whole = answer.content[:_LONGEST_REFUSAL].decode("utf-8", "replace")
        super().__init__(f"HTTP {answer.status_code} {message}".rstrip())
        self.status = answer.status_code
        self.remedy = _REMEDIES.get(self.status, "")
        if 300 <= self.status < 400:
            self.remedy = f"it redirects to {answer.headers.get('location')}; give that address as base_url"

    @property
    def may_pass(self) -> bool:
        """Whether the same request may succeed later."""
        return self.code != "insufficient_quota" and (self.status in (408, 409, 429) or self.status >= 500)

    @property
    def outage(self) -> bool:
        """Whether the endpoint takes no request at present."""
        return self.may_pass and self.status in _OUTAGE_STATUS


class _UnreachedError(Exception):
    """No whole answer came; `nobody` says that not even a connection could be made."""

    def __init__(self, reason: str, remedy: str = "", *, outage: bool = True, nobody: bool = False) -> None:
        super().__init__(reason)
        self.remedy, self.outage, self.nobody = remedy, outage, nobody


class Endpoint:
    """Sends requests for one model; thread-safe."""

    def __init__(
        self,
        settings: ModelSettings,
        address: Address | None,
        pace: Pace,
        loop: EventLoop,
        budget: Budget,
        capabilities: Capabilities,
    ) -> None:
        """`address` None means the URL and key of the settings; `pace` says when requests are sent on this loop."""
        self.settings, self.capabilities = settings, capabilities
        self._address = address
        self._pace = pace
        self._loop = loop
        self._budget = budget
        self._client: SdkClient | None = None
        self._under_way: set[Future[bytes]] = set()
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
            completion = read_chat(raw, most_tokens=most, alternatives=alternatives, tools=tools, request=body)
            return self._without_key(completion)

        return self._send("/chat/completions", body, read)

    def embed(self, body: Mapping[str, Any], check: Callable[[Embeddings], None]) -> Embeddings:
        """Post an embedding request; the vectors are in the order of the texts.

        Args:
            check: raises a `MalformedReplyError` if the vectors are not as expected.

        Raises:
            CallFailedError, BudgetExceededError, RunError: as `chat`.
        """

        def read(raw: bytes) -> Embeddings:
            embeddings = read_vectors(raw, len(body["input"]), body)
            check(embeddings)
            return embeddings

        return self._send("/embeddings", body, read)

    def check(self, *, embedding: bool) -> None:
        """Make a small request, to find early what would make every call fail, and what the endpoint takes.

        It is neither booked nor retried, but sent again without what is refused. A temporary problem, such as an
        overloaded endpoint or one that is loading its model, is not a failure.

        Raises:
            CallFailedError: the endpoint does not answer, or refuses the key or the model.
        """
        try:
            if embedding:
                self._check_post("/embeddings", {"input": ["hello"]}, {"encoding_format": "float"})
            else:
                usual = {"response_format": _SMALL_FORMAT, "temperature": self.settings.temperature}
                needed = {"messages": _HELLO, "max_tokens": 16, **self.settings.extra_body}
                raw = self._check_post("/chat/completions", needed, usual)
                with contextlib.suppress(MalformedReplyError):
                    reply = read_chat(raw, most_tokens=MOST_TOKENS, alternatives=False)
                    if reply.thinking or reply.thinking_tokens:
                        self.capabilities.learn_thinking()
        except _UnreachedError as error:
            if error.nobody:
                raise self._failed(str(error), "check base_url, and that its server is running", 1) from None
        except _RefusedError as refused:
            # A request this small may be refused for its size; a refusal that names the model is about the model.
            other = refused.status in (400, 422) and self.settings.model not in str(refused)
            if refused.may_pass or other:
                return
            remedy = refused.remedy or "check base_url and model"
            if refused.status in (401, 403) and self._key is None:
                remedy = (
                    f"no key was sent: set the variable {self.settings.api_key_env}, or name another with api_key_env"
                )
            raise self._failed(str(refused), remedy, 1) from None

    def _check_post(self, path: str, needed: Mapping[str, Any], usual: Mapping[str, Any]) -> bytes:
        """The answer to a small request, if need be without a usual field, which is then left out in future."""
        from tracing.llm.http.sdk_client import Attempts

        request = {"model": self.settings.model, **needed}
        try:
            return self._post_adapted(path, {**request, **usual}, Attempts(CHECK_S, self._pace), retries=0)
        except _RefusedError as refused:
            if refused.status not in (400, 422, 501) or self.settings.model in str(refused):
                raise
        for name in usual:
            others = {other: value for other, value in usual.items() if other != name}
            with contextlib.suppress(_RefusedError):
                raw = self._post_adapted(path, {**request, **others}, Attempts(CHECK_S, self._pace), retries=0)
                self.capabilities.do_without(name)
                return raw
        return self._post_adapted(path, request, Attempts(CHECK_S, self._pace), retries=0)

    def check_first(self) -> None:
        """Check before the first call, if one is made. A failure is a `RunError`: it is not the fault of that call."""
        self._unchecked = True

    def close(self) -> None:
        """Abandon requests under way and close the connections; later calls fail."""
        with self._lock:
            self._closed = True
            client, self._client = self._client, None
            under_way = list(self._under_way)
        for future in under_way:
            future.cancel()
        if client is not None:
            with contextlib.suppress(ClosedLoopError, CancelledError):
                self._loop.start(client.close).result()

    def _send(self, path: str, body: Mapping[str, Any], read: Callable[[bytes], _Reply]) -> _Reply:
        self._check_if_due(embedding=path == "/embeddings")
        attempts, started = self._attempts(body), time.monotonic()
        needs_text, asked_once_more = "response_format" in body, False
        while True:
            left = self.settings.retries - attempts.made
            try:
                reply = read(self._post_adapted(path, body, attempts, retries=max(0, left)))
            except MalformedReplyError as error:
                if attempts.made > self.settings.retries:
                    raise self._failed(f"the reply is malformed: {error}", "", attempts.made) from None
                self._wait(ASK_AGAIN_S)
            except (_RefusedError, _UnreachedError) as error:
                if not (error.outage and self._waits_for_outage(started)):
                    raise self._failed(str(error), error.remedy, attempts.made) from None
                self._wait(OUTAGE_WAIT_S)
            else:
                self._has_answered = True
                if self._only_thought(reply) and self.capabilities.learn_thinking():
                    _log.warning("%s thinks before it answers; its replies get more tokens", self.settings.model)
                    continue
                tried_enough = asked_once_more or attempts.made > self.settings.retries
                if tried_enough or not (needs_text and self._is_silent(reply)):
                    return reply
                asked_once_more = True
                _log.warning("%s replied nothing where JSON is needed; it is asked once more", self.settings.model)
                self._wait(ASK_AGAIN_S)

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

    def _attempts(self, body: Mapping[str, Any]) -> Attempts:
        """Attempts that each wait for their turn on the event loop.

        There the next request is sent as soon as an answer is complete, without waiting for a thread to wake up.
        """
        from tracing.llm.http.sdk_client import Attempts

        seconds = EMBEDDED_TIMEOUT_S if self.settings.embedded else self.settings.timeout_s
        room = self.capabilities.accepted.thinking_room
        tokens = sum(map(estimated_tokens, texts_of(body))) + body.get("max_tokens", 0) + room
        return Attempts(seconds, self._pace, tokens)

    def _post_adapted(self, path: str, body: Mapping[str, Any], attempts: Attempts, *, retries: int) -> bytes:
        """The answer to a request in the form that the endpoint takes; what it refuses of it is learnt from."""
        while True:
            sent, key = self.capabilities.adapted(body), self._key
            try:
                return self._post(path, sent, attempts, retries=retries)
            except _RefusedError as refused:
                if refused.status == 401 and self._asked_for_key_again(refused_key=key):
                    continue
                if refused.status not in _FORM_STATUS or not self.capabilities.learn(refused.whole, sent):
                    raise
                _log.warning("%s: %s", self.settings.model, self.capabilities.accepted.sentence)

    def _asked_for_key_again(self, refused_key: str | None) -> bool:
        """Whether the command that prints the key printed another than the one that was refused."""
        if self.settings.key_command is None or refused_key is None:
            return False
        with self._lock:
            if self._key == refused_key:
                self._key = self.settings.key()
                if self._client is not None and self._key is not None:
                    self._client.key = self._key
            return self._key != refused_key

    def _post(self, path: str, body: Mapping[str, Any], attempts: Attempts, *, retries: int) -> bytes:
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
            raise _RefusedError(error.response) from None
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            nobody = isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError)
            if isinstance(cause, httpx.ReadTimeout):
                raise _UnreachedError(str(cause), "raise timeout_s, or ask for shorter replies", outage=False) from None
            outage = isinstance(cause, httpx.HTTPError | OSError)
            raise _UnreachedError(in_words(cause), outage=outage, nobody=nobody) from None
        except (httpx.InvalidURL, ValueError) as error:
            raise self._failed(in_words(error), "", 1) from None

    def _result(self, work: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
        """What the event loop makes of it; it is abandoned if the caller is interrupted or the endpoint closed."""
        try:
            with self._lock:
                if self._closed:
                    raise ClosedLoopError
                future = self._loop.start(work)
                self._under_way.add(future)
        except ClosedLoopError:
            raise self._failed("the model access is closed", "", 1) from None
        try:
            return future.result()
        except CancelledError:
            raise self._failed("the model access was closed before the reply came", "", 1) from None
        except BaseException:
            future.cancel()
            raise
        finally:
            with self._lock:
                self._under_way.discard(future)

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

    @staticmethod
    def _only_thought(reply: ChatCompletion | Embeddings) -> bool:
        """Whether a reply has used up its tokens before any answer."""
        return isinstance(reply, ChatCompletion) and reply.finish_reason == "length" and not reply.text

    def _connect(self) -> SdkClient:
        from tracing.llm.http.sdk_client import SdkClient

        with self._lock:
            if self._closed:
                raise self._failed("the model access is closed", "", 1)
            if self._client is None:
                if self._address is not None:
                    base_url, self._key = self._address()
                else:
                    base_url, self._key = str(self.settings.base_url), self.settings.key()
                if self._key and not (self._key.isascii() and self._key.isprintable()):
                    raise self._failed("the key has characters that no HTTP header can hold", "", 1)
                self._client = SdkClient(self.settings, base_url, self._key)
            return self._client

    def _wait(self, seconds: float) -> None:
        remaining = self._budget.remaining_seconds()
        if remaining is not None and seconds >= remaining:
            time.sleep(remaining)
            self._budget.check_time()
        time.sleep(seconds)

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


_REMEDIES = {
    401: "check the key (api_key, or the variable named by api_key_env)",
    403: "check the permissions of the key",
    404: "check base_url and model",
    429: "lower the concurrency or raise the quota",
}
