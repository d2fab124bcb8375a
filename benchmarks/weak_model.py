"""The scripted model with the habits of a weak one: it leaves out, makes up the number, and misreads.

A conversation of the bundled sample takes it about as many calls as the embedded model, some 45.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from benchmarks.scripted_model import UNKNOWN, ScriptedModel, serve
from experiments.data.loaders import load_dataset
from experiments.runs.config_file import load_config
from experiments.systems.building_blocks.facts import LONGEST_FACT, MAX_FACTS
from tracing.llm.serving.loopback import Request
from tracing.llm.settings import ModelSettings
from tracing.systems.conversations import Conversation

_FORGETS, _MISREADS = 0.4, 0.2
"""How often it leaves out a fact, and answers from a context as if it did not tell."""
_LINE = "Be careful: every detail counts."
"""What it proposes."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Requests that a server answered, and their tokens in and out."""

    calls: int = 0
    tokens: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(self.calls + other.calls, self.tokens + other.tokens)

    def __sub__(self, other: Traffic) -> Traffic:
        return Traffic(self.calls - other.calls, self.tokens - other.tokens)


class WeakModel(ScriptedModel):
    """Leaves facts out, fills the list with what was said, and misreads contexts; another wording, other mistakes.

    So every rewrite changes what is stored and asked afterwards, and no two candidates have much in common to reuse.
    Asked for a better prompt, it adds a line to the one it is shown.

    Args:
        conversations: that it knows.
        heeds: whether it leaves nothing out where its own line is in the prompt.

    Attributes:
        traffic: what it was sent so far, as its server sees it.
    """

    def __init__(self, conversations: Sequence[Conversation], *, heeds: bool = False) -> None:
        super().__init__(conversations)
        self._heeds = heeds
        self.traffic = Traffic()
        self._guard = threading.Lock()

    def chat(self, request: Request) -> dict[str, Any]:
        """The route for chats."""
        return self._counted(super().chat(request))

    def embeddings(self, request: Request) -> dict[str, Any]:
        """The route for embeddings."""
        return self._counted(super().embeddings(request))

    def reply(self, text: str, schema: str) -> str:
        """The reply to a request, by what it asks for."""
        if "one line at a time" in text:
            return json.dumps({"lines": [_LINE]})
        right, wording = super().reply(text, schema), _wording(text)
        if right.startswith('{"facts"'):
            forgets = 0.0 if self._heeds and _LINE in text else _FORGETS
            kept = [fact for fact in json.loads(right)["facts"] if _drawn(wording, fact) >= forgets]
            said = [turn[:LONGEST_FACT] for turn, _ in self._told if turn in text]
            said.sort(key=lambda each: _drawn(wording, each))
            return json.dumps({"facts": [*kept, *said][:MAX_FACTS]})
        return UNKNOWN if "Question: " in text and _drawn(wording, text) < _MISREADS else right

    def _counted(self, reply: dict[str, Any]) -> dict[str, Any]:
        with self._guard:
            self.traffic += Traffic(1, reply["usage"]["total_tokens"])
        return reply


def _wording(text: str) -> str:
    """What stands before the data of a request."""
    for label in ("Conversation:\n", "Memories:\n"):
        if label in text:
            return text.rpartition(label)[0]
    return text


def _drawn(*parts: str) -> float:
    """A number in 0..1 that is always the same for the same texts."""
    return int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:4], "big") / 2**32


def sample_models() -> dict[str, ModelSettings]:
    """The arguments of `memtune.run` that name a weak model of the bundled sample, served until the program ends."""
    splits = load_dataset(load_config(None)).splits.named()
    opened = ExitStack()
    models = opened.enter_context(serve(WeakModel([told for group in splits.values() for told in group], heeds=True)))
    atexit.register(opened.close)
    return {"model": models["task"], "embedding": models["embedding"]}
