"""A worker of the cluster: how it opens the memory system of a run, once for each process, and does step after step."""

from __future__ import annotations

import functools
import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from optimizer.cluster.steps import perform
from optimizer.evaluation.memories import digest
from tracing.errors import ConfigError
from tracing.llm.forwarding.forwarded_calls import error_written
from tracing.llm.threads import GivenUp
from tracing.plugins import look_in
from tracing.recording.redaction import Redaction
from tracing.systems.description import describe
from tracing.systems.protocol import ChecksItself, MemorySystem
from tracing.systems.registry import open_system
from tracing.version import memtune_version


class WorkerSetup(BaseModel):
    """What a worker is told of a run: nothing of it is secret.

    Attributes:
        system: the name of the memory system, for its registry.
        settings: of the system.
        modules: folders of the user's own modules; they must have the same paths on each machine.
        digest: of the system's description and code, and memtune's version, where the run is.
    """

    model_config = ConfigDict(frozen=True)

    system: str
    settings: dict[str, Any]
    modules: tuple[Path, ...]
    digest: str

    @classmethod
    def of(cls, name: str, settings: Mapping[str, Any], modules: tuple[Path, ...], system: MemorySystem) -> WorkerSetup:
        """The setup for workers of `system`, which `name` and `settings` opened here; a secret setting is refused."""
        secret = _secret(settings)
        if secret is not None:
            raise ConfigError(
                f"system_settings.{secret}: is named like a secret, which is not sent to workers; let the system read "
                "it from the environment of each worker"
            )
        return cls(system=name, settings=dict(settings), modules=modules, digest=_digest(system))

    def open(self) -> MemorySystem:
        """The system, in this process.

        Raises:
            ConfigError: it cannot be opened here, lacks what it needs, or is another one than where the run is.
        """
        for folder in self.modules:
            look_in(folder)
        try:
            system = open_system(self.system, self.settings)
            if isinstance(system, ChecksItself):
                system.require_library()
        except ConfigError as error:
            raise ConfigError(f"on the worker {socket.gethostname()}: {error}") from None
        if _digest(system) != self.digest:
            raise ConfigError(
                f"on the worker {socket.gethostname()}: {self.system!r} has other code than where the run is; install "
                "the same versions of it and of memtune on each machine"
            )
        return system


def work(setup: str, step: str, name: str, mailbox: Any) -> str:
    """Do a step; its calls go to the mailbox under `name`. All texts are JSON."""
    import ray

    def ask(request: str) -> str:
        try:
            answer: str = ray.get(mailbox.ask.remote(name, request))
        except ray.exceptions.RayError as error:
            raise GivenUp(f"the run cannot be reached ({type(error).__name__})") from None
        return answer

    try:
        system = _system(setup)
    except ConfigError as error:
        return json.dumps({"error": error_written(error)})
    return perform(system, step, ask)


@functools.lru_cache(maxsize=1)
def _system(setup: str) -> MemorySystem:
    return WorkerSetup.model_validate_json(setup).open()


def _digest(system: MemorySystem) -> str:
    description = describe(system)
    return digest([description.name, description.version, description.settings, description.code, memtune_version()])


def _secret(settings: Mapping[str, Any], prefix: str = "") -> str | None:
    """The path of the first setting that is named like a secret; None if there is none."""
    hides = Redaction().hides
    for key, value in settings.items():
        if hides(key):
            return f"{prefix}{key}"
        secret = _secret(value, f"{prefix}{key}.") if isinstance(value, Mapping) else None
        if secret is not None:
            return secret
    return None
