"""One OpenAI-compatible endpoint: its client, its key, and the patience to try again."""

from __future__ import annotations

import email.utils
import itertools
import json
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tracing.errors import CallFailedError, ConfigError
from tracing.llm.budget import Budget
from tracing.llm.settings import ModelSettings, without_secrets
from tracing.scope import paused

if TYPE_CHECKING:
    from openai import OpenAI

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
LONGEST_ASKED_WAIT_S = 300.0
"""The longest `Retry-After` that is waited for; an endpoint that asks for more has failed."""

OUTAGE_S = 300.0
"""How long an endpoint that has answered before is waited for when it cannot be reached; then the call has failed."""

EMBEDDED_TIMEOUT_S = 900.0
"""The embedded server cannot drop a request, so to give up on one and ask again would only double its work."""

_PASSING_STATUS = frozenset({408, 409, 429})
_OUTAGE_STATUS = frozenset({502, 503, 504})

Address = Callable[[], tuple[str, str]]
"""Gives base URL and key; called on the first request, so that an unused embedded server never starts."""


class _MalformedBodyError(Exception):
    """The endpoint answered with something that is no reply."""


class Endpoint:
    """Sends requests for one model; thread-safe."""

    def __init__(
        self, settings: ModelSettings, address: Address | None, gate: threading.Semaphore, budget: Budget
    ) -> None:
        """`address` None means the URL and key of the settings; `gate` limits how many requests are under way."""
        self.settings = settings
        self._address = address
        self._gate = gate
        self._budget = budget
        self._client: OpenAI | None = None
        self._key: str | None = None
        self._has_answered = False
        self._lock = threading.Lock()

    def chat(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Post a chat request: `{"text", "finish_reason", "prompt_tokens", "completion_tokens"}`, and `first_token`
        where the body asks for log-probabilities and the endpoint gives them.

        Raises:
            CallFailedError: refused, or every attempt failed.
            BudgetExceededError: the time budget ended between attempts.
        """
        return self._send(lambda client: client.chat.completions.with_raw_response.create(**body), _read_chat)

    def embed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Post an embedding request: `{"vectors", "prompt_tokens"}`, vectors in the order of the texts.

        Raises:
            CallFailedError, BudgetExceededError: as `chat`.
        """
        count = len(body["input"])
        return self._send(
            lambda client: client.embeddings.with_raw_response.create(**body), lambda reply: _read_vectors(reply, count)
        )

    def close(self) -> None:
        """Close the client's connections."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _send(self, post: Callable[[Any], Any], read: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        import openai

        client = self._connect()
        started = time.monotonic()
        for attempt in itertools.count(1):
            self._budget.check_time()
            tried_enough = attempt > self.settings.retries
            asked: float | None = None
            try:
                with self._gate, paused():  # the access books the call itself, also where the SDK is instrumented
                    found = read(_body(post(client)))
                self._has_answered = True
                if not self._is_silent(found) or tried_enough:
                    return found
                self._wait(attempt, None)
                continue
            except openai.APIStatusError as error:
                asked = _retry_after(error.response.headers)
                may_pass = _may_pass(error) and (asked or 0) <= LONGEST_ASKED_WAIT_S
                outage = error.status_code in _OUTAGE_STATUS
                reason = _explain(error, remote=not self.settings.embedded)
            except (openai.APIConnectionError, _MalformedBodyError) as error:
                may_pass, reason = True, _chain(error)
                # A timeout is a connection error to the client, but somebody is there.
                outage = not isinstance(error, (openai.APITimeoutError, _MalformedBodyError))
            except (openai.OpenAIError, UnicodeError, TypeError, ValueError) as error:
                may_pass, outage, reason = False, False, _chain(error)
            if not may_pass or (tried_enough and not (outage and self._waits_for_outage(started))):
                raise self._failed(reason, attempt)
            self._wait(attempt, asked)
        raise AssertionError("the last attempt returns or raises")

    def _waits_for_outage(self, started: float) -> bool:
        """Whether to go on trying to reach an endpoint; one that never answered is more likely misspelt than away."""
        patient = self._has_answered and self.settings.retries > 0
        return patient and time.monotonic() - started < OUTAGE_S

    def _is_silent(self, found: Mapping[str, Any]) -> bool:
        """Whether a chat reply is empty, as endpoints in trouble send them; a model that stays silent is believed."""
        return found.get("text") == "" and not self.settings.embedded

    def _connect(self) -> OpenAI:
        try:
            import openai
        except ImportError:
            raise ConfigError("model calls need the openai package: pip install 'memtune[llm]'") from None
        with self._lock:
            if self._client is None:
                if self._address is not None:
                    base_url, self._key = self._address()
                else:
                    base_url, self._key = str(self.settings.base_url), self.settings.key()
                self._client = openai.OpenAI(
                    base_url=base_url,
                    # Many local servers need no key, but the client insists on one.
                    api_key=self._key or "none",
                    max_retries=0,
                    timeout=EMBEDDED_TIMEOUT_S if self.settings.embedded else self.settings.timeout_s,
                )
            return self._client

    def _wait(self, attempt: int, asked: float | None) -> None:
        backoff = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (attempt - 1)) * random.uniform(0.5, 1)  # noqa: S311 - jitter
        wait = max(backoff, asked or 0.0)
        left = self._budget.remaining_seconds()
        if left is not None and wait >= left:
            time.sleep(left)
            self._budget.check_time()
        time.sleep(wait)

    def _failed(self, reason: str, attempts: int) -> CallFailedError:
        where = self.settings.base_url or "embedded server"
        tried = f" after {attempts} attempts" if attempts > 1 else ""
        return CallFailedError(without_secrets(f"{self.settings.model} at {where}: {reason}{tried}", self._key))


def _body(response: Any) -> Any:
    try:
        return json.loads(response.http_response.content)
    except ValueError:
        raise _MalformedBodyError("the reply is not JSON") from None


_SURROGATES = re.compile(
    r"[\ud800-\udfff]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_PAIR = len(r"\ud83d\ude00")


def _encodable(text: str) -> str:
    """`text` with U+FFFD for each half of a surrogate pair, also one that JSON in it escapes.

    A model that is cut off within an emoji says such halves; no UTF-8 file, database or request can hold them.
    """

    def whole(found: re.Match[str]) -> str:
        if len(found[0]) == 1:
            return "\ufffd"
        return found[0] if len(found[0]) == _PAIR else r"\ufffd"

    return _SURROGATES.sub(whole, text)


def _read_chat(reply: Any) -> dict[str, Any]:
    try:
        choice = reply["choices"][0]
        text = choice["message"].get("content") or ""
        usage = reply.get("usage") or {}
        return {
            "text": _encodable(str(text)),
            "finish_reason": str(choice.get("finish_reason") or "stop"),
            "prompt_tokens": int(usage.get("prompt_tokens") or 0),
            "completion_tokens": int(usage.get("completion_tokens") or 0),
            **_first_token(choice),
        }
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):
        raise _MalformedBodyError("the reply holds no choice with a message") from None


def _first_token(choice: Any) -> dict[str, dict[str, float]]:
    """Log-probabilities of the first token's alternatives, in a form that an endpoint without them leaves empty."""
    steps = (choice.get("logprobs") or {}).get("content") or []
    if not steps:
        return {}
    return {"first_token": {str(each["token"]): float(each["logprob"]) for each in steps[0].get("top_logprobs") or []}}


def _read_vectors(reply: Any, count: int) -> dict[str, Any]:
    try:
        rows = sorted(reply["data"], key=lambda row: int(row["index"]))
        vectors = [[float(x) for x in row["embedding"]] for row in rows]
        tokens = int((reply.get("usage") or {}).get("prompt_tokens") or 0)
    except (KeyError, TypeError, AttributeError, ValueError):
        raise _MalformedBodyError("the reply holds no embeddings") from None
    if len(vectors) != count or not all(vectors):
        raise _MalformedBodyError(f"the reply holds {len(vectors)} embeddings for {count} texts")
    return {"vectors": vectors, "prompt_tokens": tokens}


def _may_pass(error: Any) -> bool:
    if getattr(error, "code", None) == "insufficient_quota":
        return False
    return error.status_code in _PASSING_STATUS or error.status_code >= 500


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the endpoint asks to wait: a number, or an HTTP date (RFC 9110, section 10.2.3)."""
    value = headers.get("retry-after")
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


_REMEDIES = {
    401: "check the key (api_key, or the variable named by api_key_env)",
    403: "check what the key may use",
    404: "check base_url and model",
    429: "lower the concurrency or raise the quota",
}


def _explain(error: Any, *, remote: bool) -> str:
    body = error.body if isinstance(error.body, dict) else {}
    said = body.get("message") or str(error.body or "")
    remedy = _REMEDIES.get(error.status_code) if remote else None
    return f"HTTP {error.status_code} {said[:500]}".rstrip() + (f"; {remedy}" if remedy else "")


def _chain(error: BaseException) -> str:
    """The error and what caused it, since the client's own message is only "Connection error."."""
    text = str(error) or type(error).__name__
    cause = error.__cause__
    return text if cause is None else f"{text.rstrip('.')} ({type(cause).__name__}: {cause})"[:500]
