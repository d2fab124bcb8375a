"""The real memori library: loaded late, on sqlite, without its cloud, its Rust core and the clock of the machine."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from experiments.systems import libraries

PACKAGE, GENERATION, RELEASE = "memori", "3.3.", "3.3.6"

_WRITES_EVERY_S = 0.01
"""How long Memori's writer collects writes; by default 0.1 s, and `wait` takes twice as long after every exchange."""

_loading = threading.Lock()
_loaded: list[Any] = []
_hooks: dict[str, Hooks] = {}


class Hooks(Protocol):
    """What one `Memori` does at the places where the library has no hook of its own."""

    def embed_query(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of texts that are searched for."""
        ...

    def recalling(self, request: dict[str, Any], inject: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Around `inject`, which puts what Memori recalls into a chat request."""
        ...


def installed_version() -> str | None:
    """The installed version of the library, or None."""
    return libraries.installed_version(PACKAGE)


def require() -> None:
    """Return if the library can be loaded.

    Raises:
        ConfigError: it is not installed, or another generation, whose inner modules differ.
    """
    remedy = "memtune system install memori"
    libraries.require_generation(PACKAGE, installed_version(), GENERATION, by="memori", remedy=remedy)


def load() -> Any:
    """The module `memori`.

    Raises:
        ConfigError: as `require`.
    """
    require()
    with _loading:
        if not _loaded:
            module = import_module("memori")
            _put_hooks_in()
            # What it logs as an error is raised by us, and it would print the conversation.
            logging.getLogger("memori").setLevel(logging.CRITICAL)
            _loaded.append(module)
        return _loaded[0]


def open_memori(path: Path, key: str, hooks: Hooks, clock: Callable[[], str]) -> Any:
    """A `memori.Memori` on the sqlite file `path`, whose tables are made if they are not there.

    Args:
        path: the file; several can have it open.
        key: distinguishes this one from all others that are open.
        hooks: of this one, until `close`.
        clock: the time that its rows get, as `2024-03-04 10:00:00`, or "" for an unknown one.
    """

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, timeout=60, check_same_thread=False)
        # Memori takes every time from sqlite, shows it to the model, and orders facts by it.
        connection.create_function("datetime", -1, lambda *arguments: clock())
        connection.create_function("julianday", -1, lambda *arguments: 0.0)
        return connection

    memori = load().Memori(conn=connect, use_rust_core=False)
    memori.config.embeddings.model = key
    builder = import_module("memori.storage._builder").Builder(memori.config).disable_banner()
    builder.cli.print = lambda *arguments, **named: None
    builder.execute()
    import_module("memori.memory.augmentation._db_writer").get_db_writer().batch_timeout = _WRITES_EVERY_S
    _hooks[key] = hooks
    return memori


def settle(memori: Any) -> None:
    """Wait until Memori has extracted from all that it was given."""
    while not memori.augmentation.wait():
        # It looks for what is under way once, a moment before the last of it is done.
        time.sleep(0.001)


def close(memori: Any) -> None:
    """Release what a `Memori` holds."""
    _hooks.pop(memori.config.embeddings.model, None)
    memori.close()


def replaying_client(reply: Callable[[], str | None]) -> Any:
    """An `openai.OpenAI` that sends nothing: `reply` says what the assistant answers, or None for nothing."""
    import openai
    from openai.types.chat import ChatCompletion

    def create(**request: Any) -> ChatCompletion:
        message = {"role": "assistant", "content": reply()}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        envelope = {"id": "replayed", "object": "chat.completion", "created": 0, "model": request["model"]}
        return ChatCompletion.model_validate({**envelope, "choices": [choice]})

    client: Any = openai.OpenAI(api_key="unused", base_url="http://127.0.0.1/v1")
    client.chat.completions.create = create
    return client


def unique_key(fact: str) -> str:
    """What Memori takes two facts for the same by: their letters a to z and digits alone."""
    return str(import_module("memori._utils").generate_uniq([fact]))


def _put_hooks_in() -> None:
    embedding: Any = import_module("memori.embeddings._api")
    invoking: Any = import_module("memori.llm.invoke.invoke")
    native, inject = embedding.embed_texts_native, invoking.inject_recalled_facts

    def embed(texts: Any, model: str) -> Any:
        hooks = _hooks.get(model)
        return native(texts, model=model) if hooks is None else hooks.embed_query(texts)

    def injected(call: Any, request: dict[str, Any]) -> Any:
        hooks = _hooks.get(call.config.embeddings.model)
        return inject(call, request) if hooks is None else hooks.recalling(request, lambda: inject(call, request))

    embedding.embed_texts_native, invoking.inject_recalled_facts = embed, injected
