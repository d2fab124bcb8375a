"""A user's own configuration of Mem0, as they give it to `Memory.from_config`: what a run takes of it, and what not."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field

from experiments.systems.exporting.written_files import json_or_yaml
from experiments.systems.mem0.library import FACTS, GENERATIONS, INSTRUCTIONS, UPDATE, V1, V2, Generation, require_keys
from experiments.systems.own_config import Taken, own_config
from tracing.errors import ConfigError, RunError

LOCAL_STORES = ("qdrant", "chroma", "faiss")
"""The vector stores that need no server: a memory has one of its own, in this process or in a temporary folder."""

OWN_OPTIONS = {"max_tokens": 2000, "temperature": 0.1, "top_p": 0.1}
"""What Mem0 asks its chat model for where a configuration does not say it."""

OF_SEARCH = {
    "graph_store": "its relations would be missing among what is found",
    "reranker": "what is found would be in another order",
}
"""Parts that a run does not have, and what that means for it."""

_IDS = ("user_id", "agent_id", "run_id")


class _Part(Taken):
    """Keys that a run takes; all others, keys of endpoints among them, are dropped where they are read."""

    model_config = ConfigDict(extra="ignore")


class _ModelOptions(_Part):
    model: str | None = None
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, gt=0)
    top_p: float | None = Field(default=None, ge=0, le=1)


class _Model(_Part):
    provider: str = "openai"
    config: _ModelOptions | None = None

    def __str__(self) -> str:
        model = self.config and self.config.model
        return f"{self.provider} {model}" if model else self.provider


class _StoreOptions(_Part):
    distance_strategy: str | None = None
    normalize_L2: bool | None = None  # noqa: N815 - its name


class _Store(_Part):
    provider: str = "qdrant"
    config: _StoreOptions | None = None


class _Other(_Part):
    provider: str = "its default"


class OwnConfig(Taken):
    """What a run takes of a configuration, and the names of what it leaves out; nothing of it is a secret."""

    llm: _Model | None = None
    embedder: _Model | None = None
    vector_store: _Store = _Store()
    graph_store: _Other | None = None
    reranker: _Other | None = None
    history_db_path: str | None = None
    version: str | None = None
    custom_fact_extraction_prompt: str | None = None
    custom_update_memory_prompt: str | None = None
    custom_instructions: str | None = None

    @property
    def texts(self) -> dict[str, str]:
        """Its prompts, by their keys."""
        return {key: text for key in (FACTS, UPDATE, INSTRUCTIONS) if (text := getattr(self, key))}

    @property
    def model_options(self) -> dict[str, Any]:
        """Parameters of the chat model's requests; the library has its own for those that are not here."""
        options = self.llm and self.llm.config
        return options.model_dump(exclude={"model"}, exclude_none=True) if options else {}

    @property
    def local_store(self) -> str:
        """Provider of the vector store that a memory gets: its own, if that needs no server."""
        return self.vector_store.provider if self.vector_store.provider in LOCAL_STORES else LOCAL_STORES[0]

    @property
    def store_options(self) -> dict[str, Any]:
        """Parameters of its vector store, without where that is."""
        options = self.vector_store.config
        return options.model_dump(exclude_none=True) if options else {}

    def caveats(self) -> list[str]:
        """What of it did not count in a run, one sentence each."""
        options = self.model_options
        counted = f"of llm only {', '.join(options)} counted" if options else "nothing of llm counted"
        models = {"models.task": ("llm", self.llm), "models.embedding": ("embedder", self.embedder)}
        asked = " and ".join(
            f"{role} in place of {key} ({model or 'its default'})" for role, (key, model) in models.items()
        )
        store, local = self.vector_store.provider, self.local_store
        others = [f"{name} ({part.provider})" for name in OF_SEARCH if (part := getattr(self, name))]
        others += [name for name in ("history_db_path", "version") if getattr(self, name)]
        return [
            f"Mem0 had its user's configuration, but its calls went through memtune, to {asked}; {counted}.",
            f"Each memory was in a store of its own ({local}), which began empty"
            + ("." if local == store else f", in place of {store}: its search may find others."),
            *([f"Of the configuration {', '.join(others)} did not count."] if others else []),
        ]


def read_own_config(
    source: object, generation: Generation, folder: Path = Path(), without: Collection[str] = tuple(OF_SEARCH)
) -> OwnConfig:
    """The configuration that is given as a file, or by its content.

    Args:
        source: the path of a JSON or YAML file, or what is in one.
        folder: of a relative path.
        without: of `OF_SEARCH`, those that it may have though a run does not.

    Raises:
        ConfigError: there is no such file, or a key is unknown, of another generation, or has no fitting value; or it
            has a part that a run does not have.
    """
    if unknown := [part for part in without if part not in OF_SEARCH]:
        raise ConfigError(f"system_settings.without: unknown: {unknown[0]!r}; choose of {', '.join(OF_SEARCH)}")
    form, reader = "a JSON or YAML file of Mem0", "Memory.from_config takes"
    config, label = own_config(OwnConfig, source, folder, json_or_yaml, form, reader)
    try:
        require_keys(config.texts, generation)
    except ConfigError as error:
        raise ConfigError(f"{label}: {error}") from None
    for part, meaning in OF_SEARCH.items():
        # What a run keeps of it has been read before.
        is_kept = isinstance(source, Mapping) and set(source.get(part) or ()) <= {"provider"}
        if part not in without and getattr(config, part) and not is_kept:
            raise ConfigError(
                f"{label}: {part} ({getattr(config, part).provider}) is not there in a run: {meaning}. To tune without "
                f"it, say so: system_settings.without: [{part}]"
            )
    return config


def checked_ids(ids: object) -> dict[str, str]:
    """Whose memories they are, as Mem0's `add` and its search are told.

    Raises:
        ConfigError: there is another key, or a value that is no text.
    """
    if ids is None:
        return {_IDS[0]: "memtune"}
    if not (isinstance(ids, Mapping) and ids and all(ids.get(key) and isinstance(ids[key], str) for key in ids)):
        raise ConfigError(f"system_settings.ids: texts by {', '.join(_IDS)} are expected, not {ids!r}")
    if unknown := [key for key in ids if key not in _IDS]:
        raise ConfigError(f"system_settings.ids: unknown to Mem0: {', '.join(unknown)}; it knows {', '.join(_IDS)}")
    return dict(ids)


def generation_of(file: Path) -> tuple[Generation, str]:
    """The generation that a configuration is for, and by what that is seen.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        keys = json_or_yaml(file)
    except RunError as error:
        raise ConfigError(str(error)) from None
    installed = next((generation for generation in GENERATIONS if generation.is_here()), None)
    for generation in (installed or V1, V1, V2):
        named = [key for key in generation.keys.values() if isinstance(keys, Mapping) and key in keys]
        if named:
            return generation, named[0]
    return (V1, "nothing in it") if installed is None else (installed, f"mem0ai {installed.here()}, which is installed")
