"""The endpoints of a run's models: one for each model's settings, and the embedded server if one is needed."""

from __future__ import annotations

import functools
import threading
from urllib.request import getproxies

from tracing.errors import ConfigError
from tracing.llm.accounting.budget import Budget
from tracing.llm.cache import ResponseCache
from tracing.llm.capabilities import Capabilities
from tracing.llm.http.endpoint import Endpoint
from tracing.llm.http.event_loop import EventLoop
from tracing.llm.http.pace import Pace, Width
from tracing.llm.serving import weights
from tracing.llm.serving.embedded import SERVING, EmbeddedModel, EmbeddedServer, runtime_build, runtime_version
from tracing.llm.settings import AT_ONCE, EMBEDDED_EMBEDDING, ModelSettings
from tracing.recording.known_secrets import remember_address


class Endpoints:
    """Opens each endpoint on the first request to it; thread-safe.

    Attributes:
        width: requests that one endpoint may have at a time.
    """

    def __init__(self, budget: Budget, concurrency: int | None, cache: ResponseCache | None) -> None:
        """The time of `budget` ends all waiting; `concurrency` None means `AT_ONCE`; `cache` keeps what is learnt."""
        self._budget, self._cache = budget, cache
        for proxy in getproxies().values():
            remember_address(proxy)
        self.width = concurrency or AT_ONCE
        self._guard = threading.Lock()
        self._loop = EventLoop()
        self._widths: dict[str | None, Width] = {}
        self._paces: dict[tuple[str | None, str, int | None, int | None], Pace] = {}
        self._opened: dict[ModelSettings, Endpoint] = {}
        self._served: dict[str, EmbeddedModel] = {}
        self._server: EmbeddedServer | None = None

    def of_chat(self, settings: ModelSettings) -> tuple[Endpoint, str]:
        """The endpoint of a chat model, and what its replies depend on besides the request.

        Raises:
            ConfigError: an embedded model already has another context length, or its runtime is not installed.
            WeightsError: an embedded model is unknown.
        """
        if not settings.embedded:
            return self._endpoint(settings), f"{settings.base_url} {settings.model}"
        sha256, build = weights.digest(settings.model), runtime_build("xllamacpp")
        model = self._served.setdefault(
            settings.model,
            EmbeddedModel(settings.model, lambda: weights.locate(settings.model), settings.context),
        )
        if model.context != settings.context:
            raise ConfigError(f"{settings.model}: one embedded model cannot have two values of context in one run")
        identity = f"sha256:{sha256} xllamacpp={build} serving={SERVING} context={settings.context}"
        return self._endpoint(settings), identity

    def of_embedding(self, settings: ModelSettings) -> tuple[Endpoint, str]:
        """The endpoint of an embedding model, and what its vectors depend on besides the text.

        Raises:
            ConfigError: the model cannot be embedded, or its runtime is not installed.
        """
        if not settings.embedded:
            return self._endpoint(settings), f"{settings.base_url} {settings.model}{settings.own_request}"
        if settings.model != EMBEDDED_EMBEDDING:
            raise ConfigError(
                f"{settings.model}: the embedded embedding model is {EMBEDDED_EMBEDDING}; or set base_url"
            )
        version = runtime_version(EMBEDDED_EMBEDDING)
        return self._endpoint(settings), f"{EMBEDDED_EMBEDDING}={version} serving={SERVING}"

    def close(self) -> None:
        """Close connections and the embedded server."""
        for endpoint in self._opened.values():
            endpoint.close()
        self._loop.close()
        if self._server is not None:
            self._server.close()

    def _endpoint(self, settings: ModelSettings) -> Endpoint:
        with self._guard:
            if settings not in self._opened:
                width = self._widths.setdefault(settings.base_url, Width(self.width))
                address = functools.partial(self._serve, settings.model) if settings.embedded else None
                capabilities = Capabilities(self._cache, f"{settings.base_url} {settings.model}")
                # Roles that share a model share what its provider allows.
                rates = settings.requests_per_minute, settings.tokens_per_minute
                pace = self._paces.setdefault((settings.base_url, settings.model, *rates), Pace(width, *rates))
                self._opened[settings] = Endpoint(settings, address, pace, self._loop, self._budget, capabilities)
            return self._opened[settings]

    def _serve(self, model: str) -> tuple[str, str]:
        if model in self._served:
            weights.locate(model)
        with self._guard:
            if self._server is None:
                server = EmbeddedServer(self._served)
                server.start()
                self._server = server
            return self._server.base_url, self._server.key
