"""Stored facts, and what a new one changes: it is added, or a model decides if similar ones are stored already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.systems.building_blocks.facts import EVENTS, decision_schema
from experiments.systems.building_blocks.recall import nearest, recorded
from experiments.systems.building_blocks.structured_replies import parsed_reply
from tracing.errors import MalformedReplyError
from tracing.graph.execution_graph import Variable
from tracing.llm.access import ModelAccess
from tracing.llm.reply_json import read_json
from tracing.recording.operations import operation
from tracing.recording.trace_context import session, variable
from tracing.systems.entries import Entry
from tracing.systems.interventions import Change, Step, intervening
from tracing.systems.layouts import Parts, numbered
from tracing.systems.prompts import PromptSpec, render
from tracing.systems.texts import Text, noted, noted_again, variables_of

MAX_DECIDE_TOKENS = 32


class FactStore:
    """The facts of one build.

    Args:
        spec: of the prompt that decides, with the placeholders `fact` and `memories`.
        template: its text.
        access: the models.
        near: cosine from which a stored fact counts as near a new one.
        compared: most near facts shown to the decision.
    """

    def __init__(self, spec: PromptSpec, template: str, access: ModelAccess, *, near: float, compared: int) -> None:
        self.entries: list[Entry] = []
        self._spec, self._template, self._access = spec, template, access
        self._near, self._compared = near, compared
        self._prompt = variable(template, name=spec.name, kind="prompt")
        self._added = 0

    def store(self, facts: Sequence[Text]) -> None:
        """Store new facts one after the other; each is compared with those before it too."""
        if not facts:
            return
        with operation("embed", kind="embedding", inputs={"facts": variables_of(facts)}):
            vectors = self._access.embedding.embed([fact.text for fact in facts])
        for fact, vector in zip(facts, vectors, strict=True):
            self._store(fact, vector)

    def store_sessions(self, sessions: Sequence[Sequence[str]]) -> None:
        """Store the given facts of each session in a session of its own."""
        for number, facts in enumerate(sessions, start=1):
            with session(f"given{number}"):
                self.store([noted(text, name="given", kind="fact") for text in facts])

    def _store(self, fact: Text, vector: Sequence[float]) -> None:
        near = [entry for entry, score in nearest(vector, self.entries, self._compared) if score >= self._near]
        # A fact without near memories is added.
        decision, decision_inputs = self.decide(fact, near) if near else (Change("ADD", text=fact.text), {})
        with operation("store", inputs={"fact": fact.variable, **decision_inputs}) as op:
            change = intervening().stored(Step("store", op.id), decision, decision)
            if change.text != decision.text:
                (vector,) = self._access.embedding.embed([change.text])
            target = next((entry for entry in self.entries if entry.id == change.target), None)
            if change.event == "ADD":
                self._added += 1
                name = f"m{self._added}"
                stored = op.output("entry", change.text, name=name, kind="memory_entry")
                self.entries.append(Entry(name, change.text, tuple(vector), stored.id))
            elif change.event == "UPDATE" and target:
                stored = op.output("entry", change.text, name=target.id, kind="memory_entry", previous=target.variable)
                position = self.entries.index(target)
                self.entries[position] = Entry(target.id, change.text, tuple(vector), stored.id)
            elif change.event == "DELETE" and target:
                op.output("entry", None, name=target.id, kind="delete_marker", previous=target.variable)
                self.entries.remove(target)

    def decide_again(self, parts: Parts) -> None:
        """Decide once on a recorded fact and the recorded memories that were near it."""
        (fact,) = noted_again(parts["fact"])
        near = noted_again(parts["memories"])
        self.decide(fact, [Entry(memory.variable.name, memory.text, (), memory.variable.id) for memory in near])

    def decide(self, fact: Text, near: Sequence[Entry]) -> tuple[Change, dict[str, Variable]]:
        """What to do about a fact, and the variable of that decision by its role."""
        listed = numbered([entry.text for entry in near])
        request = render(self._template, {"fact": fact.text, "memories": listed})
        schema = decision_schema(len(near))
        memories = recorded(near)
        inputs = {"fact": fact.variable, "memories": memories, "prompt": self._prompt}
        with operation(self._spec.operation, kind="llm", inputs=inputs) as op:
            reply = parsed_reply(_decision_in, self._access.task, request, schema, MAX_DECIDE_TOKENS, op)
            event = reply.get("event") if reply else None
            id_of_number = {str(number): entry.id for number, entry in enumerate(near, start=1)}
            target = id_of_number.get(str(reply.get("id"))) if reply else None
            # An unusable reply loses nothing: the fact is added.
            usable = event in EVENTS and (target is not None or event not in ("UPDATE", "DELETE"))
            proposal = Change(str(event) if usable else "ADD", target, fact.text)
            change = intervening().decided(Step(self._spec.operation, op.id), fact.text, near, proposal)
            value = {"event": change.event, "target": change.target}
            decision = op.output("decision", value, name="decision", kind="value")
            return Change(change.event, change.target, fact.text), {"decision": decision}


def _decision_in(reply: str) -> dict[str, Any]:
    value = read_json(reply, fields=("event",))
    if not isinstance(value, dict):
        raise MalformedReplyError("the reply is not a JSON object")
    return value
