"""Gives a Mem0 its prompts, and builds a memory with it, step by step: before 2.0, and from 2.0 on."""

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
from typing import Any, ClassVar

from experiments.systems.building_blocks.recall import recorded
from experiments.systems.building_blocks.structured_replies import LONGEST_SHOWN, read_reply
from experiments.systems.mem0.connection import ConnectedMemory, id_of
from experiments.systems.mem0.decisions import (
    Decided,
    Decision,
    decisions_of,
    facts_of,
    json_of,
    left_alone,
    memories_of,
    reply_of,
)
from experiments.systems.mem0.library import WHOLE, Generation, Instance
from experiments.systems.mem0.prompts import ATTRIBUTED, BY, MEMORIES_SCHEMA, PROMPTS
from experiments.systems.mem0.reply_schemas import update_schema
from tracing.errors import MalformedReplyError, ModelError
from tracing.graph.elements import Variable
from tracing.llm.access import ModelAccess
from tracing.llm.booking import note_malformed
from tracing.recording.operations import ActiveOperation, operation
from tracing.recording.redaction import excerpt
from tracing.recording.trace_context import variable
from tracing.systems.entries import Entry
from tracing.systems.interventions import Change, Step, intervening
from tracing.systems.prompts import Candidate, render
from tracing.systems.texts import Text, variables_of


def native_prompts(candidate: Candidate, generation: Generation) -> dict[str, str]:
    """The prompts of a candidate as Mem0 takes them: by configuration key, and rendered, since it has no templates."""
    return {key: render(candidate[name], {}) for name, key in generation.keys.items() if name in candidate}


@dataclass(slots=True)
class AddCall:
    """One call of `Memory.add`: its input, and its results so far; `alone`: nothing follows from the model's reply."""

    time: str
    messages: Sequence[Text] = ()
    preset_facts: Sequence[Text] | None = None
    facts: list[Text] | None = None
    shown_ids: dict[str, None] = field(default_factory=dict)
    decided: list[Decided] = field(default_factory=list)
    alone: bool = False


class Mem0Writer(ConnectedMemory):
    """Adds messages or facts to a new Mem0, and records what it extracts, decides and stores.

    As before 2.0, a second request of an `add` decides what happens because of each fact.
    """

    schema: ClassVar[Mapping[str, Any] | None] = PROMPTS["extract"].contract.reply_schema
    """Form of the reply to an extraction."""

    def __init__(self, access: ModelAccess, candidate: Candidate, instance: Instance, *, enforced: bool) -> None:
        """`enforced` says whether reply schemas replace `json_object`; for the others see `ConnectedMemory`."""
        super().__init__(access, native_prompts(candidate, instance.generation), instance)
        self._enforced = enforced
        self._step = AddCall("")
        self._extracted = self._added = 0
        self._prompts = {
            name: variable(text, name=name, kind="prompt") for name, text in candidate.items() if name != "answer"
        }
        store = self.memory.vector_store
        self._search, self._update, self._delete = store.search, store.update, store.delete
        store.search, store.insert = self._on_search, self._on_insert
        store.update, store.delete = self._on_update, self._on_delete
        self.memory.llm.generate_response = self._on_request

    def read(self, messages: Sequence[Text], time: str) -> None:
        """Let Mem0 read messages; all have the role `user`, the only one that it extracts from before 2.0.

        Raises:
            ModelError, BudgetExceededError: a model call failed, even if Mem0 swallowed the error.
        """
        self._add([message.text for message in messages], AddCall(time, messages=messages))

    def take(self, facts: Sequence[Text], time: str = "") -> None:
        """Let Mem0 continue as if it had extracted these facts. Raises as `read`."""
        self._add([fact.text for fact in facts], AddCall(time, preset_facts=facts))

    def extract_again(self, messages: Sequence[Text]) -> None:
        """Let Mem0 read recorded messages, and do nothing with the facts that it finds. Raises as `read`."""
        self._add([message.text for message in messages], AddCall("", messages=messages, alone=True))

    def decide_again(self, facts: Sequence[Text], memories: Sequence[Entry]) -> None:
        """Let a new Mem0 decide on recorded facts and the memories shown, and do nothing of it. Raises as `read`."""
        self.restore(memories)
        self._add([fact.text for fact in facts], AddCall("", preset_facts=facts, alone=True))

    def embedding_of(self, text: str) -> Mapping[str, Any]:
        """The fact that is embedded, or the text if the model reworded it."""
        facts = self._facts_with(text)
        return {"facts": facts} if facts else {"text": text}

    def _add(self, texts: Sequence[str], step: AddCall) -> None:
        self._step = step
        self._cross_threads("_add_to_vector_store")
        messages = [{"role": "user", "content": text} for text in texts]
        self.through(lambda: self.memory.add(messages, **self.ids))
        if step.alone:
            return
        # An earlier item of the same reply may remove the entry of an update or deletion; an addition cannot fail.
        lost = next((pending.decision.text for pending in step.decided if pending.decision.event == "ADD"), None)
        if lost is not None:
            raise ModelError(f"mem0 should have added {lost!r} but did not; its log says why")

    def _on_request(self, messages: Any, response_format: Any = None, **others: Any) -> str:
        """The first request of an `add` extracts, the second decides."""
        if self._step.facts is None:
            return self._extract(messages, response_format)
        return self._decide(messages, response_format)

    def _inputs(self) -> dict[str, Any]:
        """Inputs of an extraction beside the messages."""
        return {"prompt": self._prompts["extract"]}

    def _facts_in(self, reply: str) -> list[str]:
        """The facts that Mem0 finds in the reply to an extraction."""
        return facts_of(reply, finds_json=self.generation.finds_json)

    def _reply_with(self, facts: Sequence[str], reply: str = "") -> str:
        """A reply to an extraction with these facts, made of another one."""
        return json.dumps({"facts": list(facts)})

    def _extract(self, messages: Any, response_format: Any) -> str:
        step = self._step
        if step.preset_facts is not None:
            step.facts = list(step.preset_facts)
            return self._reply_with([fact.text for fact in step.preset_facts])
        messages_read = variables_of(step.messages)
        inputs = {"messages": messages_read, **self._inputs()}
        with operation("extract_facts", kind="llm", inputs=inputs) as op:
            reply = self.ask(messages, response_format, self.schema if self._enforced else None)
            texts = read_reply(self._facts_in, reply, op)
            if texts is None:
                texts, reply = [], self._reply_with([])
            facts = intervening().extracted(Step("extract_facts", op.id), messages_read, texts)
            step.facts = [self._fact(op, text) for text in facts]
        if step.alone:
            return self._reply_with([])
        return reply if facts == texts else self._reply_with(facts, reply)

    def _fact(self, op: ActiveOperation, text: str) -> Text:
        self._extracted += 1
        return Text(text, op.output("facts", text, name=f"fact{self._extracted}", kind="fact"))

    def _enter(self, op: ActiveOperation, key: str, text: str, vector: Sequence[float]) -> None:
        """Record the entry that was added last."""
        name = f"m{self._added}"
        self.entries[key] = Entry(
            name, text, tuple(vector), op.output("entry", text, name=name, kind="memory_entry").id
        )

    def _facts_with(self, text: str) -> list[Variable]:
        return [fact.variable for fact in self._step.facts or () if fact.text == text]

    def _decide(self, messages: Any, response_format: Any) -> str:
        step = self._step
        facts = variables_of(step.facts or ())
        texts = [fact.text for fact in step.facts or ()]
        entries = [self.entries[entry_id] for entry_id in step.shown_ids]
        memories, prompt = recorded(entries), self._prompts["update"]
        schema = update_schema(texts, len(entries)) if self._enforced else None
        # One request decides on all new facts; blame needs to know what was decided on each.
        inputs = {"facts": facts, "memories": memories, "prompt": prompt}
        with operation("update_memory", kind="llm", inputs=inputs):
            reply = self.ask(messages, response_format, schema)
            try:
                model_decisions = decisions_of(reply, texts, len(entries), finds_json=self.generation.finds_json)
                answered = reply
            except MalformedReplyError as error:
                model_decisions, answered = left_alone(texts, str(error)), reply_of(())
            if any(decision.problem is not None for decision in model_decisions):
                note_malformed(reply)
            decisions: list[Decision] = []
            for decision in model_decisions:
                about = [facts[number] for number in decision.facts]
                with operation("decide_update", inputs={"fact": about, "memories": memories, "prompt": prompt}) as op:
                    if decision.problem is not None:
                        op.annotate(malformed=decision.problem, reply=excerpt(reply, LONGEST_SHOWN))
                    decision = _intervened(Step("decide_update", op.id), decision, texts, entries)
                    decisions.append(decision)
                    target = None if decision.target is None else entries[decision.target].id
                    value = {"event": decision.event, "target": target}
                    recorded_as = op.output("decision", value, name="decision", kind="value")
                    step.decided.append(Decided(decision, target, about, recorded_as))
        if step.alone:
            return reply_of(())
        return answered if decisions == model_decisions else reply_of(decisions)

    def _on_search(self, query: str, vectors: Any, limit: int = 5, filters: Any = None) -> Any:
        """What it finds for the new facts is what the update request shows."""
        # All memories that were shown together are shown again, for whichever fact they were found.
        most = max(limit, len(self.entries)) if self._step.alone else limit
        hits = self._search(query=query, vectors=vectors, limit=most, filters=filters)
        self._step.shown_ids.update((hit.id, None) for hit in hits)
        return hits

    def _on_insert(self, vectors: Any, payloads: Any = None, ids: Any = None) -> None:
        """Sets the id and the times, so that they are reproducible."""
        (vector,), (payload,) = vectors, payloads
        with self._stored("ADD", payload["data"]) as op:
            self._added += 1
            pinned = id_of(self._added)
            times = {"created_at": self._step.time, "updated_at": self._step.time}
            self._insert(vectors=[vector], payloads=[{**payload, **times}], ids=[pinned])
            self._enter(op, pinned, payload["data"], vector)

    def _on_update(self, vector_id: str, vector: Any = None, payload: Any = None) -> None:
        """Hook of `vector_store.update`."""
        if vector is None:  # whose memory it is, of a fact that is known
            self._update(vector_id=vector_id, vector=None, payload={**payload, "updated_at": self._step.time})
            return
        old = self.entries[vector_id]
        with self._stored("UPDATE", payload["data"], old.id) as op:
            self._update(vector_id=vector_id, vector=vector, payload={**payload, "updated_at": self._step.time})
            stored = op.output(
                "entry", payload["data"], name=old.id, kind="memory_entry", previous=old.variable or None
            )
            self.entries[vector_id] = Entry(old.id, payload["data"], tuple(vector), stored.id)

    def _on_delete(self, vector_id: str) -> None:
        """Hook of `vector_store.delete`."""
        old = self.entries[vector_id]
        with self._stored("DELETE", None, old.id) as op:
            self._delete(vector_id=vector_id)
            op.output("entry", None, name=old.id, kind="delete_marker", previous=old.variable or None)
            del self.entries[vector_id]

    def _stored(self, event: str, text: str | None, target: str | None = None) -> ActiveOperation:
        """The operation that carries out the first matching decision not yet carried out."""
        for decided in self._step.decided:
            same = (decided.decision.event, decided.target) == (event, target)
            if same and text in (None, decided.decision.text):
                self._step.decided.remove(decided)
                return operation("store", inputs={"fact": decided.facts, "decision": decided.variable})
        return operation("store")


def _intervened(step: Step, decision: Decision, texts: Sequence[str], memories: Sequence[Entry]) -> Decision:
    """A decision as it is carried out; an unchanged one keeps its problem."""
    target = None if decision.target is None else memories[decision.target].id
    proposal = Change(decision.event, target, decision.text)
    fact = " ".join(texts[number] for number in decision.facts)
    change = intervening().decided(step, fact, memories, proposal)
    if change == proposal:
        return decision
    number = next((at for at, entry in enumerate(memories) if entry.id == change.target), None)
    return Decision(change.event, number, change.text, decision.facts)


_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_UNKNOWN_DATE = "unknown"


class AddingWriter(Mem0Writer):
    """Mem0 2.x: what is extracted is added, and nothing is changed or removed afterwards."""

    schema = MEMORIES_SCHEMA

    def __init__(self, access: ModelAccess, candidate: Candidate, instance: Instance, *, enforced: bool) -> None:
        super().__init__(access, candidate, instance, enforced=enforced)
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
            response = self.through(lambda: self.memory.add(messages, **self.ids))
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
