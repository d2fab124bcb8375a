"""The real mem0 library: loaded late, without telemetry and without a folder in the user's home."""

from __future__ import annotations

import atexit
import functools
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from experiments.systems.libraries import Library
from tracing.errors import ConfigError
from tracing.temporary_values import environment_with

FACTS, UPDATE = "custom_fact_extraction_prompt", "custom_update_memory_prompt"
INSTRUCTIONS = "custom_instructions"
"""The keys of its configuration for prompts."""

WHOLE = "ADDITIVE_EXTRACTION_PROMPT"
"""The constant of `mem0.memory.main` with the whole system prompt of 2.x, for which there is no key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation(Library):
    """Releases of the library with the same steps and the same prompts; another generation ignores their keys.

    Attributes:
        keys: prompt → the configuration key for it.
        shipped: key, or `WHOLE` → the constant of `mem0.configs.prompts` with the text that it uses by itself.
        finds_json: whether it finds JSON inside other text.
    """

    package: str = "mem0ai"
    by: str = "mem0"
    keys: Mapping[str, str]
    shipped: Mapping[str, str]
    finds_json: bool = True


V0 = Generation(
    generation="0.1.",
    release="0.1.118",
    remedy="memtune system install mem0@0.1",
    keys={"extract": FACTS, "update": UPDATE},
    shipped={FACTS: "FACT_RETRIEVAL_PROMPT", UPDATE: "DEFAULT_UPDATE_MEMORY_PROMPT"},
    finds_json=False,
)
V1 = Generation(
    generation="1.0.",
    release="1.0.11",
    remedy="pip install 'memtune[mem0]'",
    keys={"extract": FACTS, "update": UPDATE},
    shipped={FACTS: "USER_MEMORY_EXTRACTION_PROMPT", UPDATE: "DEFAULT_UPDATE_MEMORY_PROMPT"},
)
V2 = Generation(
    generation="2.",
    release="2.2.1",
    remedy="memtune system install mem0@2",
    keys={"instructions": INSTRUCTIONS},
    shipped={WHOLE: WHOLE},
)
GENERATIONS = (V0, V1, V2)

_loading = threading.Lock()


def require_keys(keys: Collection[str], generation: Generation) -> None:
    """Return if these are configuration keys of the generation's prompts; the library ignores those of another one."""
    own = set(generation.keys.values())
    for key in keys:
        if key not in own:
            owner = next((candidate for candidate in GENERATIONS if key in candidate.keys.values()), None)
            belongs = f"a key of {owner.package} {owner.generation}x" if owner is not None else "no key of a prompt"
            raise ConfigError(
                f"{key}: {belongs}, which {generation.generation}x ignores without a word; use {', '.join(sorted(own))}"
            )


def recordable(memory: Any) -> Generation:
    """The generation of somebody else's memory, which can be recorded.

    Raises:
        ConfigError: the library is of another generation, or this is none of its memories.
    """
    generation = next((candidate for candidate in GENERATIONS if candidate.is_here()), None)
    if generation is None:
        known = ", ".join(f"{candidate.generation}x" for candidate in GENERATIONS)
        tried = ", ".join(candidate.requirement for candidate in GENERATIONS)
        raise ConfigError(
            f"instrument.mem0 records {V1.package} {known}, but {V1.here() or 'none'} is installed; install one "
            f"that it was tried with: {tried}"
        )
    if not all(hasattr(memory, part) for part in ("add", "search", "llm", "embedding_model", "vector_store")):
        raise ConfigError(
            f"instrument.mem0: {type(memory).__name__} is no mem0.Memory or mem0.AsyncMemory; of Mem0's hosted service "
            "record the calls as operations of your own"
        )
    return generation


def load(generation: Generation = V1) -> Any:
    """The module `mem0`.

    Raises:
        ConfigError: it is not installed, or another generation, whose prompts have other names.
    """
    generation.require()
    with _loading:
        return _imported()


@functools.cache
def _imported() -> Any:
    # It reads these two on import only, and then writes a file with a user id.
    folder = tempfile.mkdtemp(prefix="memtune-mem0-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    settings = {"MEM0_TELEMETRY": "False", "MEM0_DIR": folder}
    # Its client turns on the deprecation warnings of all libraries.
    with environment_with(settings), warnings.catch_warnings():
        return import_module("mem0")


@dataclass(frozen=True, slots=True)
class Instance:
    """How a Mem0 is made, besides the prompts that are tuned and the endpoint of its models.

    Attributes:
        generation: of the library.
        model_options: parameters of its chat model.
        store: provider of its vector store, one that needs no server.
        store_options: parameters of that.
        ids: whose memories they are: `user_id`, `agent_id`, `run_id`, those that there are.
        prompts: those that stay, by configuration key.
    """

    generation: Generation = V1
    model_options: Mapping[str, Any] = field(default_factory=lambda: {"temperature": 0.0, "max_tokens": 1024})
    store: str = "qdrant"
    store_options: Mapping[str, Any] = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=lambda: {"user_id": "memtune"})
    prompts: Mapping[str, str] = field(default_factory=dict)


def open_memory(
    prompts: Mapping[str, str],
    *,
    base_url: str,
    key: str,
    chat_model: str,
    embedding_model: str,
    instance: Instance = Instance(),  # noqa: B008 - it is immutable
) -> Any:
    """A `mem0.Memory` whose stores are its own alone, and that uses the models of one endpoint.

    Raises:
        ConfigError: a key of a prompt is of another generation, or the library or that of the store is missing.
    """
    generation = instance.generation
    require_keys(prompts, generation)
    mem0 = load(generation)
    import httpx

    endpoint = {"api_key": key, "openai_base_url": base_url}
    folder = tempfile.TemporaryDirectory(prefix="memtune-mem0-", ignore_cleanup_errors=True)
    in_process = {"path": ":memory:", "embedding_model_dims": 1}
    place = in_process if instance.store == "qdrant" else {"path": f"{folder.name}/store"}
    try:
        memory = mem0.Memory.from_config(
            {
                "llm": {"provider": "openai", "config": {**endpoint, "model": chat_model, **instance.model_options}},
                "embedder": {"provider": "openai", "config": {**endpoint, "model": embedding_model}},
                "vector_store": {
                    "provider": instance.store,
                    "config": {"collection_name": "memtune", **place, **instance.store_options},
                },
                "history_db_path": ":memory:",
                **instance.prompts,
                **prompts,
            }
        )
    except ImportError as error:
        raise ConfigError(
            f"system_settings.config: vector_store: {instance.store} needs a library ({error}); install it for "
            f"{sys.executable}"
        ) from None
    memory.own_folder = folder
    if generation == V0:
        # It always asks for a number of dimensions, which not every model can be asked for.
        import openai

        memory.embedding_model.config.embedding_dims = openai.NOT_GIVEN
    for part in (memory.llm, memory.embedding_model):
        # With OPENROUTER_API_KEY set, it would send everything there, and it would reach the gateway through a proxy
        # that the environment names. The gateway waits and retries itself.
        direct = httpx.Client(trust_env=False, timeout=None)  # noqa: S113 - the gateway answers or refuses in time
        part.client = part.client.with_options(
            api_key=key, base_url=base_url, max_retries=0, timeout=None, http_client=direct
        )
    return memory


def fit(memory: Any, size: int) -> None:
    """Prepare the store of an empty memory for vectors of this size."""
    store = memory.vector_store
    if getattr(store, "embedding_model_dims", size) != size:  # Chroma takes any
        store.delete_col()
        store.embedding_model_dims = size
        store.create_col(*((size, False) if hasattr(store, "on_disk") else (store.collection_name,)))


def close(memory: Any) -> None:
    """Release a memory's resources."""
    # Releases before 1.0 have no method for it.
    (memory.close if hasattr(memory, "close") else memory.db.close)()
    for part in (memory.vector_store, memory.llm, memory.embedding_model):
        if hasattr(getattr(part, "client", None), "close"):
            part.client.close()
    # One that somebody else opened has none.
    if hasattr(memory, "own_folder"):
        memory.own_folder.cleanup()
