"""Mem0 0.1.x and 1.0.x, each in an environment of its own; their steps and prompts are the same."""

from __future__ import annotations

from dataclasses import replace

from experiments.systems.mem0 import library
from experiments.systems.mem0.system import Mem0
from experiments.systems.worker import in_worker


class _InItsEnvironment(Mem0):
    """Mem0 without the prompts of the installed library, which this process does not have.

    Args:
        top_k: memories given to the answer.
        window: turns given to one `Memory.add`.
        max_tokens: maximum length of a reply of extraction and update.
        reply_schema: when reply schemas replace the `json_object` that Mem0 asks for; see `Mem0`.

    Raises:
        ConfigError: `reply_schema` is none of the known choices.
    """

    def __init__(
        self, *, top_k: int = 4, window: int = 4, max_tokens: int = 1024, reply_schema: str = "embedded"
    ) -> None:
        super().__init__(top_k=top_k, window=window, max_tokens=max_tokens, reply_schema=reply_schema)
        self.version = f"1 with {library.PACKAGE} {self.generation.release}"


@in_worker(requirements=[library.V0.requirement])
class Mem0First(_InItsEnvironment):
    """The real Mem0 0.1.x in its own environment."""

    name = "mem0@0.1"
    generation = library.V0


@in_worker(requirements=[library.V1.requirement])
class Mem0One(_InItsEnvironment):
    """The real Mem0 1.0.x in its own environment."""

    name = "mem0@1.0"
    generation = replace(library.V1, remedy="memtune system install mem0@1.0")
