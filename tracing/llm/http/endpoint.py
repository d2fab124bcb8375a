"""One OpenAI-compatible endpoint: what is asked of it before a run, and which replies are asked for again."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from tracing.errors import CallFailedError, MalformedReplyError, RunError
from tracing.llm.accounting.budget import Budget
from tracing.llm.accounting.token_counts import TokenCounts, estimated_tokens, texts_of
from tracing.llm.capabilities import Capabilities
from tracing.llm.http.bodies import FILTERED_REPLY, ChatCompletion, Embeddings, read_chat, read_vectors
from tracing.llm.http.connection import Address, Connection
from tracing.llm.http.event_loop import EventLoop
from tracing.llm.http.negotiation import Negotiation
from tracing.llm.http.pace import Pace
from tracing.llm.http.refusals import (
    WORDLESS_STATUS,
    ManyTextsError,
    RefusedRequestError,
    UnreachedError,
    remedy_for_reply,
)
from tracing.llm.http.small_request import try_chat, try_embedding
from tracing.llm.settings import ModelSettings
from tracing.recording.redaction import without

if TYPE_CHECKING:
    from tracing.llm.http.sdk_client import Attempts

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

_CHECKS = 3
"""Times that the small request is made before a run if its replies are malformed."""
_TOO_SMALL = re.compile(r"at least|minimum|too (?:small|short|few)|greater than", re.IGNORECASE)
_SHORTEST_KEY = 16
_TEXTS = ("text", "thinking")
_Reply = TypeVar("_Reply", ChatCompletion, Embeddings)


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
        self._connection = Connection(settings, address, loop, budget)
        self._pace = pace
        self._budget = budget
        self._has_answered = False
        self._negotiation = Negotiation(capabilities, settings.model)
        self._unchecked, self._alternatives = False, 0
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
        texts = body["input"]
        most = self.capabilities.accepted.texts or len(texts)
        if len(texts) > most:
            return self._embed_in_parts(body, check, most)

        def read(raw: bytes) -> Embeddings:
            embeddings = read_vectors(raw, len(texts), body)
            check(embeddings)
            return embeddings

        try:
            return self._send("/embeddings", body, read)
        except ManyTextsError:
            embeddings = self._embed_in_parts(body, check, len(texts) // 2)
        most_texts = self.capabilities.accepted.texts
        self.capabilities.note(texts=min(len(texts) // 2, most_texts or len(texts)))
        return embeddings

    def _embed_in_parts(self, body: Mapping[str, Any], check: Callable[[Embeddings], None], size: int) -> Embeddings:
        texts = body["input"]
        parts = [self.embed({**body, "input": texts[at : at + size]}, check) for at in range(0, len(texts), size)]
        tokens = TokenCounts(
            sum(part.tokens.prompt for part in parts), estimated=any(part.tokens.estimated for part in parts)
        )
        return Embeddings([row for part in parts for row in part.vectors], tokens)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no text may hold: the key, which may be read for it, and what the settings hide."""
        return self._connection.secrets

    def check(self, *, embedding: bool, alternatives: int = 0) -> None:
        """Make a small request, to find early what would make every call fail, and what the endpoint takes.

        It is neither booked nor retried, but sent again without what is refused. A temporary problem, such as an
        overloaded endpoint or one that is loading its model, is not a failure.

        Args:
            embedding: whether it embeds texts.
            alternatives: how many first tokens to ask for with their log-probabilities.

        Raises:
            CallFailedError: the endpoint does not answer, or refuses the key, the model or a field of the settings.
        """
        from tracing.llm.http.sdk_client import Attempts

        def post(path: str, body: Mapping[str, Any]) -> bytes:
            return self._post_adapted(path, body, Attempts(CHECK_S, self._pace), retries=0)

        settings = self.settings
        own = {"model": settings.model, **settings.fields(chat=not embedding)}
        try:
            for left in reversed(range(_CHECKS)):
                try:
                    if embedding:
                        try_embedding(post, self.capabilities, own)
                    else:
                        warmth = settings.temperature
                        try_chat(post, self.capabilities, own, temperature=warmth, alternatives=alternatives)
                    return
                except MalformedReplyError as error:
                    # Garbage may pass; another kind of server does not.
                    if not left and not str(error).startswith("it is not JSON"):
                        raise self._malformed(error, _CHECKS) from None
                if left:
                    self._wait(ASK_AGAIN_S)
        except UnreachedError as error:
            if error.nobody:
                raise self._connection.failed(str(error), "check base_url, and that its server is running", 1) from None
        except RefusedRequestError as refused:
            # A request this small may be refused for its size.
            if refused.status in (400, 422) and _TOO_SMALL.search(str(refused)):
                return
            if refused.may_pass and refused.status != 501:
                return
            named = [name for name in own if name != "model" and re.search(rf"\b{re.escape(name)}\b", refused.whole)]
            remedy = refused.remedy
            if named:
                remedy = f"change or leave out {', '.join(named)} (reasoning_effort or extra_body of the model)"
            elif refused.status in (401, 403) and self._connection.key is None:
                remedy = f"no key was sent: set the variable {settings.api_key_env}, or name another with api_key_env"
            raise self._connection.failed(str(refused), remedy, 1) from None

    def check_first(self, *, alternatives: int = 0) -> None:
        """Check before the first call, if one is made. A failure is a `RunError`: it is not the fault of that call."""
        self._unchecked, self._alternatives = True, alternatives

    def close(self) -> None:
        """Abandon requests under way and close the connection; later calls fail."""
        self._connection.close()

    def _send(self, path: str, body: Mapping[str, Any], read: Callable[[bytes], _Reply]) -> _Reply:
        self._check_if_due(embedding=path == "/embeddings")
        attempts, started = self._attempts(body), time.monotonic()
        asked_once_more = False
        while True:
            left, had_room = self.settings.retries - attempts.made, self.capabilities.accepted.thinks
            try:
                reply = read(self._post_adapted(path, body, attempts, retries=max(0, left)))
            except MalformedReplyError as error:
                if attempts.made > self.settings.retries:
                    raise self._malformed(error, attempts.made) from None
                self._wait(ASK_AGAIN_S)
            except (RefusedRequestError, UnreachedError) as error:
                if isinstance(error, RefusedRequestError) and error.filtered and "messages" in body:
                    reply = read(FILTERED_REPLY)
                    self._has_answered = True
                    return reply
                several = len(body.get("input", ())) > 1
                if several and isinstance(error, RefusedRequestError) and error.status in WORDLESS_STATUS:
                    raise ManyTextsError from None
                if not (error.outage and self._waits_for_outage(started)):
                    raise self._connection.failed(str(error), error.remedy, attempts.made) from None
                self._wait(OUTAGE_WAIT_S)
            else:
                self._has_answered = True
                if self._only_thought(reply) and not had_room:
                    if self.capabilities.learn_thinking():
                        _log.warning("%s thinks before it answers; its replies get more tokens", self.settings.model)
                    continue
                tried_enough = asked_once_more or attempts.made > self.settings.retries
                if tried_enough or not self._is_silent(reply):
                    return reply
                asked_once_more = True
                _log.warning("%s replied nothing; it is asked once more", self.settings.model)
                self._wait(ASK_AGAIN_S)

    def _check_if_due(self, *, embedding: bool) -> None:
        if not self._unchecked:
            return
        with self._checking:
            if self._unchecked:
                try:
                    self.check(embedding=embedding, alternatives=self._alternatives)
                except CallFailedError as error:
                    raise RunError(str(error)) from None
                self._unchecked = False

    def _attempts(self, body: Mapping[str, Any]) -> Attempts:
        """Attempts that each wait for their turn on the event loop.

        There the next request is sent as soon as an answer is complete, without waiting for a thread to wake up.
        """
        from tracing.llm.http.sdk_client import Attempts

        seconds = EMBEDDED_TIMEOUT_S if self.settings.embedded else self.settings.timeout_s
        if self.settings.tokens_per_minute is None:
            return Attempts(seconds, self._pace)
        room = self.capabilities.accepted.thinking_room
        tokens = sum(map(estimated_tokens, texts_of(body))) + body.get("max_tokens", 0) + room
        return Attempts(seconds, self._pace, tokens)

    def _post_adapted(self, path: str, body: Mapping[str, Any], attempts: Attempts, *, retries: int) -> bytes:
        """The answer to a request in the form that the endpoint takes."""

        def post(sent: Mapping[str, Any], *, once: bool) -> bytes:
            return self._connection.post(path, sent, attempts, retries=0 if once else retries)

        while True:
            key = self._connection.key
            try:
                return self._negotiation.answer(body, post)
            except RefusedRequestError as refused:
                if refused.status != 401 or not self._connection.asked_for_key_again(refused_key=key):
                    raise

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
        return reply.unusable == "empty" and not reply.first_token

    @staticmethod
    def _only_thought(reply: ChatCompletion | Embeddings) -> bool:
        """Whether a reply has used up its tokens before any answer."""
        return (
            isinstance(reply, ChatCompletion)
            and reply.finish_reason == "length"
            and not reply.text
            and not reply.tool_calls
        )

    def _wait(self, seconds: float) -> None:
        remaining = self._budget.remaining_seconds()
        if remaining is not None and seconds >= remaining:
            time.sleep(remaining)
            self._budget.check_time()
        time.sleep(seconds)

    def _malformed(self, error: MalformedReplyError, attempts: int) -> CallFailedError:
        return self._connection.failed(f"the reply is malformed: {error}", remedy_for_reply(error), attempts)

    def _without_key(self, completion: ChatCompletion) -> ChatCompletion:
        """A reply without the key, which an endpoint may repeat. A short key stays: it may be a word of the reply."""
        credentials = (self._connection.key, *self.settings.credentials)
        secrets = [secret for secret in credentials if secret is not None and len(secret) >= _SHORTEST_KEY]
        if not secrets:
            return completion
        if completion.tool_calls is None:
            texts = {name: without(text, *secrets) for name in _TEXTS if (text := getattr(completion, name))}
            return completion.model_copy(update=texts)
        return ChatCompletion.model_validate_json(without(completion.model_dump_json(), *secrets))
