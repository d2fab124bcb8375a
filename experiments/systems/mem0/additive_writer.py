"""Building a memory with Mem0 2.x, which adds what it extracts, and changes and removes nothing afterwards."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from experiments.systems.building_blocks.recall import recorded
from experiments.systems.mem0.connection import USER
from experiments.systems.mem0.decisions import json_of, memories_of
from experiments.systems.mem0.library import V2, WHOLE
from experiments.systems.mem0.prompts import ATTRIBUTED, BY, MEMORIES_SCHEMA
from experiments.systems.mem0.writer import AddCall, Mem0Writer
from tracing.errors import ModelError
from tracing.llm.access import ModelAccess
from tracing.recording.recorder import operation
from tracing.systems.prompts import Candidate, render
from tracing.systems.texts import variables_of

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_UNKNOWN_DATE = "unknown"


class AddingWriter(Mem0Writer):
    """Mem0 2.x: what is extracted is added, and nothing is changed or removed afterwards."""

    schema = MEMORIES_SCHEMA

    def __init__(self, access: ModelAccess, candidate: Candidate, *, max_tokens: int, enforced: bool) -> None:
        super().__init__(access, candidate, max_tokens=max_tokens, enforced=enforced, generation=V2)
        self._system_prompt = render(candidate["extract"], {}) if "extract" in candidate else None
        (self._prompt,) = self._prompts.values()
        self._numbers = 0

    def embedding_of(self, text: str) -> Mapping[str, Any]:
        """The fact that is embedded; before there are any, the messages, for which memories are looked up."""
        if self._step.facts is None:
            return {"messages": variables_of(self._step.messages)}
        return super().embedding_of(text)

    def _add(self, texts: Sequence[str], step: AddCall) -> None:
        self._step, before = step, len(self.entries)
        messages = [{"role": "user", "content": text} for text in texts]
        with self._pinned(step.time):
            response = self.through(lambda: self.memory.add(messages, user_id=USER))
        if len(self.entries) - before != len(response["results"]):
            raise ModelError("mem0 did not store what it says it has stored; its log says why")

    @contextlib.contextmanager
    def _pinned(self, time: str) -> Iterator[None]:
        """The library with our system prompt, the session's date for today's, and ids that are the same each time."""
        main = import_module("mem0.memory.main")
        date = match.group() if (match := _DATE.match(time)) else time or _UNKNOWN_DATE
        ask = functools.partial(main.generate_additive_extraction_prompt, current_date=date, timestamp=date)
        ours: dict[str, Any] = {
            "generate_additive_extraction_prompt": ask,
            "uuid": SimpleNamespace(uuid4=self._next_id),
        }
        if self._system_prompt is not None:
            ours[WHOLE] = self._system_prompt
        theirs = {name: getattr(main, name) for name in ours}
        vars(main).update(ours)
        try:
            yield
        finally:
            vars(main).update(theirs)

    def _next_id(self) -> uuid.UUID:
        self._numbers += 1
        return uuid.UUID(int=self._numbers)

    def _on_request(self, messages: Any, response_format: Any = None, **others: Any) -> str:
        """The only request of an `add` extracts."""
        return self._extract(messages, response_format)

    def _inputs(self) -> dict[str, Any]:
        return {"memories": recorded([self.entries[key] for key in self._step.shown_ids]), "prompt": self._prompt}

    def _facts_in(self, reply: str) -> list[str]:
        return memories_of(reply)

    def _reply_with(self, facts: Sequence[str], reply: str = "") -> str:
        return _as_reply(facts, json_of(reply)["memory"] if reply else ())

    def _on_search(self, query: str, vectors: Any, top_k: int = 5, filters: Any = None) -> Any:
        """What it finds for the messages is what the extraction request shows."""
        hits = self._search(query=query, vectors=vectors, top_k=top_k, filters=filters)
        self._step.shown_ids.update((hit.id, None) for hit in hits)
        return hits

    def _on_insert(self, vectors: Any, payloads: Any = None, ids: Any = None) -> None:
        """Sets the times, so that they are reproducible."""
        times = {"created_at": self._step.time, "updated_at": self._step.time}
        self._insert(vectors=vectors, payloads=[{**payload, **times} for payload in payloads], ids=ids)
        for vector, payload, key in zip(vectors, payloads, ids, strict=True):
            with operation("store", inputs={"fact": self._facts_with(payload["data"])}) as op:
                self._added += 1
                self._enter(op, key, payload["data"], vector)


def _as_reply(texts: Sequence[str], items: Sequence[Mapping[str, Any]]) -> str:
    """A reply with these texts; one that an item has, keeps what else is in it."""
    by_text = {item.get("text"): item for item in reversed(items)}
    memories = [{**by_text.get(text, {ATTRIBUTED: BY}), "id": str(n), "text": text} for n, text in enumerate(texts)]
    return json.dumps({"memory": memories})
