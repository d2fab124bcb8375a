"""Building a memory with Mem0 2.x, recorded step by step through hooks on the instance."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from experiments.systems.building_blocks.recall import recorded
from experiments.systems.building_blocks.structured_replies import LONGEST_SHOWN
from experiments.systems.mem0.additive_prompts import ATTRIBUTED, BY, MEMORIES_SCHEMA
from experiments.systems.mem0.connection import USER, ConnectedMemory
from experiments.systems.mem0.decisions import json_of, memories_of
from experiments.systems.mem0.library import V2
from tracing.errors import MalformedReplyError, ModelError
from tracing.llm.access import ModelAccess
from tracing.recording.recorder import ActiveOperation, operation, variable
from tracing.recording.redaction import excerpt
from tracing.systems.entries import Entry
from tracing.systems.interventions import Step, intervening
from tracing.systems.prompts import Candidate, render
from tracing.systems.texts import Text, variables_of

CONFIG_KEY = "custom_instructions"
"""Mem0's configuration key for the prompt `instructions`."""

SYSTEM_PROMPT = "ADDITIVE_EXTRACTION_PROMPT"
"""The constant of `mem0.memory.main` that the prompt `extract` replaces: there is no key for it."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_UNKNOWN_DATE = "unknown"


@dataclass(slots=True)
class _Step:
    """One call of `Memory.add`: its input, and its results so far."""

    time: str
    messages: Sequence[Text] = ()
    preset_facts: Sequence[Text] | None = None
    facts: list[Text] | None = None
    shown_ids: dict[str, None] = field(default_factory=dict)


class AddingMemory(ConnectedMemory):
    """Mem0 2.x with both its clients on the gateway."""

    def __init__(self, access: ModelAccess, prompts: Mapping[str, str], *, max_tokens: int) -> None:
        """See `ConnectedMemory`."""
        super().__init__(access, prompts, max_tokens=max_tokens, generation=V2)
        self._embed_batch = self.memory.embedding_model.embed_batch
        self.memory.embedding_model.embed_batch = self._embedded_together

    def native_results(self, query: str, count: int) -> Mapping[str, Any]:
        """What Mem0's own search returns."""
        results: Mapping[str, Any] = self.memory.search(query, top_k=count, filters={"user_id": USER})
        return results

    def _embedded_together(self, texts: Sequence[str], memory_action: str = "add") -> list[list[float]]:
        # One request for all texts gives vectors that depend on how they were put together.
        return [self._embedded(text, memory_action) for text in texts]


class AddingWriter(AddingMemory):
    """Adds messages or facts to a new Mem0 2.x, and records extraction and storing."""

    def __init__(self, access: ModelAccess, candidate: Candidate, *, max_tokens: int, enforced: bool) -> None:
        """`enforced` says whether a reply schema replaces `json_object`."""
        (name,) = {"extract", "instructions"} & set(candidate)
        text = render(candidate[name], {})
        super().__init__(access, {CONFIG_KEY: text} if name == "instructions" else {}, max_tokens=max_tokens)
        self._enforced = enforced
        self._system_prompt = text if name == "extract" else None
        self._prompt = variable(candidate[name], name=name, kind="prompt")
        self._step = _Step("")
        self._extracted = self._added = self._numbers = 0
        store = self.memory.vector_store
        self._search = store.search
        store.search, store.insert = self._on_search, self._on_insert
        self.memory.llm.generate_response = self._on_request

    def read(self, messages: Sequence[Text], time: str) -> None:
        """Let Mem0 read messages; all have the role `user`.

        Raises:
            ModelError, BudgetExceededError: a model call failed, even if Mem0 swallowed the error.
        """
        self._add([message.text for message in messages], _Step(time, messages=messages))

    def take(self, facts: Sequence[Text], time: str = "") -> None:
        """Let Mem0 continue as if it had extracted these facts. Raises as `read`."""
        self._add([fact.text for fact in facts], _Step(time, preset_facts=facts))

    def embedding_of(self, text: str) -> Mapping[str, Any]:
        """The fact that is embedded; before there are any, the messages, for which memories are looked up."""
        facts = [fact.variable for fact in self._step.facts or () if fact.text == text]
        if facts:
            return {"facts": facts}
        return {"messages": variables_of(self._step.messages)} if self._step.facts is None else {"text": text}

    def _add(self, texts: Sequence[str], step: _Step) -> None:
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
            ours[SYSTEM_PROMPT] = self._system_prompt
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
        """Hook of `llm.generate_response`: the only request of an `add` extracts."""
        step = self._step
        if step.preset_facts is not None:
            step.facts = list(step.preset_facts)
            return _as_reply([fact.text for fact in step.preset_facts], ())
        schema = MEMORIES_SCHEMA if self._enforced else None
        messages_read, memories = (
            variables_of(step.messages),
            recorded([self.entries[entry_id] for entry_id in step.shown_ids]),
        )
        inputs = {"messages": messages_read, "memories": memories, "prompt": self._prompt}
        with operation("extract_facts", kind="llm", inputs=inputs) as op:
            reply = self.ask(messages, response_format, schema)
            try:
                texts = memories_of(reply)
            except MalformedReplyError as error:
                op.annotate(malformed=str(error), reply=excerpt(reply, LONGEST_SHOWN))
                texts, reply = [], _as_reply((), ())
            facts = intervening().extracted(Step("extract_facts", op.id), messages_read, texts)
            step.facts = [self._fact(op, text) for text in facts]
        return reply if facts == texts else _as_reply(facts, json_of(reply)["memory"])

    def _fact(self, op: ActiveOperation, text: str) -> Text:
        self._extracted += 1
        return Text(text, op.output("facts", text, name=f"fact{self._extracted}", kind="fact"))

    def _on_search(self, query: str, vectors: Any, top_k: int = 5, filters: Any = None) -> Any:
        """Hook of `vector_store.search`: what it finds for the messages is what the extraction request shows."""
        hits = self._search(query=query, vectors=vectors, top_k=top_k, filters=filters)
        self._step.shown_ids.update((hit.id, None) for hit in hits)
        return hits

    def _on_insert(self, vectors: Any, payloads: Any = None, ids: Any = None) -> None:
        """Hook of `vector_store.insert`; sets the times, so that they are reproducible."""
        times = {"created_at": self._step.time, "updated_at": self._step.time}
        self._insert(vectors=vectors, payloads=[{**payload, **times} for payload in payloads], ids=ids)
        for vector, payload, key in zip(vectors, payloads, ids, strict=True):
            text = payload["data"]
            about = [fact.variable for fact in self._step.facts or () if fact.text == text]
            with operation("store", inputs={"fact": about}) as op:
                self._added += 1
                name = f"m{self._added}"
                stored = op.output("entry", text, name=name, kind="memory_entry")
                self.entries[key] = Entry(name, text, tuple(vector), stored.id)


def _as_reply(texts: Sequence[str], items: Sequence[Mapping[str, Any]]) -> str:
    """A reply with these texts; one that an item has, keeps what else is in it."""
    by_text = {item.get("text"): item for item in reversed(items)}
    memories = [{**by_text.get(text, {ATTRIBUTED: BY}), "id": str(n), "text": text} for n, text in enumerate(texts)]
    return json.dumps({"memory": memories})
