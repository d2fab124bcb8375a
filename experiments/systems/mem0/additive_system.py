"""Mem0 2.x as a memory system: its own `add` extracts and stores, and nothing is changed or removed afterwards."""

from __future__ import annotations

from typing import Any, cast

from experiments.systems.mem0 import library
from experiments.systems.mem0.additive_prompts import CHOICES, prompts_of
from experiments.systems.mem0.additive_writer import AddingMemory, AddingWriter
from experiments.systems.mem0.connection import ConnectedMemory
from experiments.systems.mem0.system import AnyMem0
from experiments.systems.mem0.writer import Writer
from experiments.systems.worker import in_worker
from tracing.errors import ConfigError
from tracing.llm.access import ModelAccess
from tracing.suggestions import unknown_names
from tracing.systems.prompts import Candidate
from tracing.systems.protocol import OperationSpec


@in_worker(requirements=[library.V2.requirement])
class Mem0Two(AnyMem0):
    """The real Mem0 2.x in its own environment: extract, store, search, answer.

    Without the models of fastembed and spaCy, which it would download, its search is semantic only.

    Args:
        top_k: memories given to the answer.
        window: turns given to one `Memory.add`.
        max_tokens: maximum length of a reply of the extraction.
        reply_schema: when a reply schema replaces the `json_object` that Mem0 asks for; see `Mem0`.
        tuned: what is tuned of the extraction: its whole "system" prompt, which is a constant of the library, or the
            "instructions" that it appends, which are a key of its configuration.

    Raises:
        ConfigError: `reply_schema` or `tuned` is none of these.
    """

    name = "mem0@2"
    generation = library.V2
    operations = (
        OperationSpec("extract_facts", "extract", "extract"),
        OperationSpec("store", "update", None),
        OperationSpec("retrieve", "retrieve", None),
        OperationSpec("answer", "answer", "answer"),
    )

    def __init__(
        self,
        *,
        top_k: int = 4,
        window: int = 4,
        max_tokens: int = 1024,
        reply_schema: str = "embedded",
        tuned: str = "system",
    ) -> None:
        super().__init__(top_k=top_k, window=window, max_tokens=max_tokens, reply_schema=reply_schema)
        if tuned not in CHOICES:
            unknown = unknown_names([tuned], CHOICES)
            raise ConfigError(f"system_settings.tuned: unknown: {unknown}; choose one of {', '.join(CHOICES)}")
        self.tuned, self.prompts = tuned, prompts_of(tuned)
        self.operations = (OperationSpec("extract_facts", "extract", CHOICES[tuned].name), *type(self).operations[1:])
        self.version = f"1 with {library.PACKAGE} {self.generation.release}"

    @property
    def settings(self) -> dict[str, Any]:
        """Everything besides prompts and models that shapes the result."""
        return {**super().settings, "tuned": self.tuned}

    def caveats(self, *, embedded: bool) -> list[str]:
        """Caveats about results with this system, one sentence each."""
        return [
            *super().caveats(embedded=embedded),
            "Mem0 searched by meaning alone: its keyword search and its entities need models that it downloads.",
        ]

    def _writer(self, candidate: Candidate, access: ModelAccess) -> Writer:
        enforced = self.enforces_schema(embedded=access.task.settings.embedded)
        writer = AddingWriter(access, candidate, max_tokens=self.max_tokens, enforced=enforced)
        return cast("Writer", writer)  # it reads and takes alike, and keeps the same entries

    def _connected(self, access: ModelAccess) -> ConnectedMemory:
        return AddingMemory(access, {}, max_tokens=self.max_tokens)
