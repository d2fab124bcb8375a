"""Memory systems for a cluster: one that tells where it runs, and one that its worker does not survive."""

from __future__ import annotations

import os
from pathlib import Path

from experiments.systems.fact_memory import FactMemory
from tracing.llm.access import ModelAccess
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import Candidate
from tracing.systems.protocol import Memory


class Located(FactMemory):
    """Leaves a file in `folder` named after the process that its own was started by: on Ray, that of the node."""

    def __init__(self, folder: str) -> None:
        super().__init__(near=2.0)
        self._folder = Path(folder)

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        (self._folder / str(os.getppid())).touch()
        return super().build(conversation, candidate, access)


class Deadly(FactMemory):
    """Ends its process when it has begun to read the conversation `deadly`, as too large a one would."""

    def __init__(self, deadly: str) -> None:
        super().__init__(near=2.0)
        self._deadly = deadly

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        if conversation.id == self._deadly:
            access.embedding.embed(["the first call"])
            os._exit(1)
        return super().build(conversation, candidate, access)
