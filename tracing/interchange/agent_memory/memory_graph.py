"""The graph of a memory, from the turns of an agent's dialogues: facts, entries with their versions, what was found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from msgspec.structs import replace

from tracing.graph.elements import Link, Operation, Session, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.agent_memory.notes import (
    EntryText,
    asked_in,
    likeness,
    notes_in,
    plain,
    says_nothing,
    text_in,
    told_of,
)
from tracing.interchange.agent_memory.roles import Role
from tracing.interchange.agent_memory.turns import Call, Turn

STAGE = "stage"
"""Attribute of an operation: what it does with information, empty for nothing that attribution follows."""
LINKED = "linked"
"""Attribute of what was linked to an entry or a message by its words alone: `by text`."""
BY_TEXT = "by text"

_ALIKE = 0.6


@dataclass(slots=True)
class _Lineage:
    """An entry of the memory.

    Attributes:
        name: its id, or a name made up for it; `named` says whether it is the id.
        user: whose it is.
        latest: the id of its present version; confirmed: whether a result has shown what was stored.
    """

    name: str
    user: str
    latest: str
    confirmed: bool
    named: bool


class MemoryGraph:
    """Builds the graph, turn by turn."""

    def __init__(self, role: Callable[[Call], Role]) -> None:
        self._role = role
        self._sessions: dict[str, Session] = {}
        self._variables: dict[str, Variable] = {}
        self._operations: dict[str, Operation] = {}
        self._lineages: list[_Lineage] = []
        self._counts: defaultdict[str, int] = defaultdict(int)
        self._said: dict[str, dict[str, str]] = defaultdict(dict)
        self._messages: list[tuple[str, str]] = []
        self._updated: tuple[_Lineage, str] | None = None

    def graph(self, attributes: Mapping[str, Any]) -> ExecutionGraph:
        """What was built."""
        return ExecutionGraph(
            self._variables.values(), self._operations.values(), self._sessions.values(), dict(attributes)
        )

    def add(self, turn: Turn, *, writes: bool) -> None:
        """Add a turn; `writes` says whether any turn writes a memory, so that to keep nothing means something."""
        self._counts[turn.conversation] += 1
        name = f"{turn.conversation or 'calls'}:{self._counts[turn.conversation]}"
        session = f"turn {name}"
        owner = {"user": turn.user} if turn.user else {}
        self._sessions[session] = Session(session, name, owner)
        retrieved: list[str] = []
        writing: list[tuple[Call, Role]] = []
        for call in turn.calls:
            role = self._role(call)
            if role in ("retrieve", "other"):
                retrieved += self._retrieve(call, turn, session, role)
            else:
                writing.append((call, role))
        if turn.text and turn.reply:
            self._answer(turn, name, session, retrieved)
        message = self._message(turn, name, owner) if turn.text and writes else None
        self._write(turn, writing, message, session, retrieved)
        if message is not None and not writing:
            self._extract(turn.chats[0], session, [("message", message)], [])

    # --- answers ---------------------------------------------------------------------------------------------------

    def _answer(self, turn: Turn, name: str, session: str, retrieved: list[str]) -> None:
        chat = turn.chats[-1]
        query = self._variable(f"{chat.id}/query", name, "query", turn.text, session)
        inputs: list[Link] = [("query", query), *(("context", vid) for vid in retrieved)]
        if turn.prompt is not None:
            self._variables.setdefault(turn.prompt.id, turn.prompt)
            of_prompt = turn.prompt.session or ""
            self._sessions.setdefault(of_prompt, Session(of_prompt, of_prompt))
            inputs.append(("prompt", turn.prompt.id))
        by_text = self._said[turn.conversation]
        inputs += [("history", vid) for vid in dict.fromkeys(by_text[text] for text in turn.earlier if text in by_text)]
        prediction = self._variable(f"{chat.id}/prediction", name, "prediction", turn.reply, session)
        by_text[turn.reply] = prediction
        self._operation(chat, chat.id, chat.name, "answer", session, inputs, [("prediction", prediction)])

    def _message(self, turn: Turn, name: str, owner: Mapping[str, str]) -> str:
        session = f"conversation {turn.conversation}"
        self._sessions.setdefault(session, Session(session, turn.conversation, owner))
        facts = {"role": "user", **owner}
        if turn.started > 0:
            facts["time"] = datetime.fromtimestamp(turn.started, UTC).strftime("%Y-%m-%d")
        vid = self._variable(f"{turn.chats[0].id}/message", name, "message", turn.text, session, facts)
        self._said[turn.conversation].setdefault(turn.text, vid)
        self._messages.append((vid, turn.user))
        return vid

    # --- retrieval -------------------------------------------------------------------------------------------------

    def _retrieve(self, call: Call, turn: Turn, session: str, role: Role) -> list[str]:
        """Add what a call found; the ids of the pieces of context."""
        operation = call.operation
        inputs: list[Link] = []
        if text := text_in(call.arguments):
            inputs.append(("query", self._variable(f"{operation.id}/query", call.tool, "query", text, session)))
        outputs: list[Link] = []
        for number, note in enumerate(notes_in(call.result), start=1):
            facts: dict[str, Any] = {}
            entry, by_text = self._entry_of(note, turn, session, operation) if role == "retrieve" else (None, False)
            if entry is not None:
                by_text = by_text or self._variables[entry].attributes.get(LINKED) == BY_TEXT
                facts = {"entry": entry} | ({LINKED: BY_TEXT} if by_text else {})
                inputs.append(("entry", entry))
            vid = f"{operation.id}/context {number}"
            outputs.append(("context", self._variable(vid, note.id or call.tool, "context", note.text, session, facts)))
        stage = "retrieve" if role == "retrieve" else ""
        self._operation(operation, operation.id, call.tool, stage, session, inputs, outputs)
        return [vid for _, vid in outputs]

    def _entry_of(self, note: EntryText, turn: Turn, session: str, operation: Operation) -> tuple[str | None, bool]:
        """The entry that a note shows, and whether it was found by its text; it is new if it has an unknown id."""
        lineage = (self._lineage(note.id, turn.user) or self._nameless(note)) if note.id else None
        if lineage is not None:
            self._correct(lineage, note)
            return lineage.latest, False
        if note.id:
            owner = {"user": note.user} if note.user else {}
            vid = self._variable(f"{operation.id}/found {note.id}", note.id, "memory_entry", note.text, session, owner)
            self._lineages.append(_Lineage(note.id, turn.user, vid, confirmed=True, named=True))
            return vid, False
        likely = max(self._lineages, key=lambda lineage: self._nearness(lineage, note.text, turn.user), default=None)
        if likely is None or self._nearness(likely, note.text, turn.user) < _ALIKE:
            return None, True
        return likely.latest, True

    def _nameless(self, note: EntryText) -> _Lineage | None:
        """The entry whose id no result told until this note: by its text, or by its number where ids count entries."""
        nameless = [lineage for lineage in self._lineages if not lineage.named]
        likely = max(nameless, key=lambda lineage: self._nearness(lineage, note.text, ""), default=None)
        if likely is None or self._nearness(likely, note.text, "") < _ALIKE:
            places = {
                at + _number(note.id) - _number(lineage.name)
                for at, lineage in enumerate(self._lineages)
                if lineage.named
            }
            at = places.pop() if len(places) == 1 else -1
            likely = self._lineages[at] if 0 <= at < len(self._lineages) and not self._lineages[at].named else None
        if likely is not None:
            for vid in self._versions(likely):
                version = self._variables[vid]
                facts = {**version.attributes, LINKED: BY_TEXT}
                self._variables[vid] = replace(version, name=note.id, attributes=facts)
            likely.name, likely.named = note.id, True
        return likely

    def _versions(self, lineage: _Lineage) -> list[str]:
        """The ids of all versions of an entry."""
        versions = [lineage.latest]
        while (previous := self._variables[versions[-1]].previous) is not None:
            versions.append(previous)
        return versions

    def _nearness(self, lineage: _Lineage, text: str, user: str) -> float:
        latest = self._variables[lineage.latest]
        if latest.kind == "delete_marker":
            return 0.0
        own = 0.01 if lineage.user == user else 0.0
        return likeness(str(latest.value), text) + own

    def _correct(self, lineage: _Lineage, note: EntryText) -> None:
        """Where a result did not tell what was stored, the first text that is shown of it does."""
        latest = self._variables[lineage.latest]
        if plain(str(latest.value)) in plain(note.text):
            return
        intended, updated_text = self._updated or (lineage, "")
        if intended is not lineage and plain(updated_text) == plain(note.text):
            self._move_update(intended, lineage)
        elif removal := self._wrong_removal(lineage, note):
            self._variables[removal.id] = removal
            self._variables[latest.id] = replace(self._variables[latest.id], value=note.text)
        elif not lineage.confirmed:
            self._variables[latest.id] = replace(latest, value=note.text)
        lineage.confirmed = True

    def _wrong_removal(self, lineage: _Lineage, note: EntryText) -> Variable | None:
        """The version that a removal made, where a piece that it was to take is shown again: it took what is not."""
        label, shown = f"{lineage.name}: ", plain(note.text)
        versions = [self._variables[vid] for vid in self._versions(lineage)]
        for after, before in pairwise(versions):
            left, pieces = (str(one.value or "").removeprefix(label).split("; ") for one in (after, before))
            if set(left) < set(pieces) and any(plain(piece) in shown for piece in set(pieces) - set(left)):
                return replace(after, value=label + "; ".join(piece for piece in pieces if plain(piece) in shown))
        return None

    def _move_update(self, intended: _Lineage, lineage: _Lineage) -> None:
        """The last update, whose result told nothing, was of this entry and not of the one that it was asked for."""
        version = self._variables[intended.latest]
        old = self._variables[lineage.latest]
        intended.latest = version.previous or intended.latest
        self._variables[version.id] = replace(version, name=old.name, previous=old.id, version=old.version + 1)
        lineage.latest, self._updated = version.id, None
        for operation in self._operations.values():
            if version.id in operation.output_ids():
                inputs = tuple(link for link in operation.inputs if link[0] != "entry")
                operation.inputs = (*inputs, ("entry", old.id))

    # --- writing ---------------------------------------------------------------------------------------------------

    def _write(
        self, turn: Turn, writing: list[tuple[Call, Role]], message: str | None, session: str, retrieved: list[str]
    ) -> None:
        """Add the calls that write the memory, and what made their arguments."""
        by_chat: dict[str, list[tuple[Call, Role]]] = defaultdict(list)
        for call, role in writing:
            by_chat[call.chat.id if call.chat is not None else ""].append((call, role))
        entries = dict.fromkeys(str(self._variables[vid].attributes.get("entry", "")) for vid in retrieved)
        entry_links: list[Link] = [("entry", vid) for vid in entries if vid]
        for calls in by_chat.values():
            facts = {call.operation.id: self._fact(call, session) for call, _ in calls}
            chat = calls[0][0].chat or (turn.chats[0] if turn.chats else None)
            source, linked = (message, False) if message is not None else self._likely_message(calls[0][0], turn)
            read: list[Link] = [("message", source)] if source is not None else []
            if chat is not None:
                self._extract(chat, session, [*read, *entry_links], [("fact", fact) for fact in facts.values() if fact])
            for call, role in calls:
                fact = facts[call.operation.id]
                inputs: list[Link] = [("fact", fact)] if fact else []
                inputs += read if chat is None else []
                self._change(call, role, inputs, turn, session, linked=linked)

    def _likely_message(self, call: Call, turn: Turn) -> tuple[str | None, bool]:
        """For a call that no recorded turn made: the message of the user that its text is most like."""
        text = text_in(call.arguments)
        own = [vid for vid, user in self._messages if not turn.user or user in ("", turn.user)]
        best = max(reversed(own), key=lambda vid: likeness(str(self._variables[vid].value), text), default=None)
        alike = best is not None and likeness(str(self._variables[best].value), text) >= _ALIKE
        return (best, True) if alike else (None, False)

    def _fact(self, call: Call, session: str) -> str | None:
        text = text_in(call.arguments)
        return self._variable(f"{call.operation.id}/fact", call.tool, "fact", text, session) if text else None

    def _extract(self, chat: Operation, session: str, inputs: list[Link], outputs: list[Link]) -> None:
        oid = f"{chat.id}/what to keep"
        self._operation(chat, oid, f"{chat.name}: what to keep", "extract", session, inputs, outputs)

    def _change(self, call: Call, role: Role, inputs: list[Link], turn: Turn, session: str, *, linked: bool) -> None:
        """Add a call that stores, updates or deletes entries."""
        operation = call.operation
        entries = asked_in(call.arguments, flat=role != "store")
        stored = told_of(call.result, text_in(call.arguments)) if call.result is not None else []
        failed = call.result is None and (operation.error is not None or operation.status == "error")
        notes = stored or [EntryText(entry.id, "") for entry in entries if not (failed or says_nothing(call.result))]
        whole = EntryText(entries[0].id, text_in(call.arguments))
        outputs: list[Link] = []
        for number, note in enumerate(notes, start=1):
            entry = entries[number - 1] if len(entries) == len(notes) else whole
            event, name = note.event.lower(), note.id or entry.id
            if event in ("none", "noop"):
                continue
            lineage = self._lineage(name, turn.user) if name else None
            if lineage is None and role != "store" and name:
                lineage = self._nameless(EntryText(name, ""))
            text = note.text or entry.text
            if role == "store" and entry.parts and note.text:  # of several pieces, a result tells which were kept
                entry = EntryText(name, text, parts=tuple(text.removeprefix(f"{name}: ").split("; ")))
            rest = entry.after(str(self._variables[lineage.latest].value or ""), role) if lineage is not None else None
            is_deleted = not rest if role == "delete" else event == "delete"
            if is_deleted and lineage is None:
                continue
            fresh = (
                role == "store" and event not in ("update", "delete") and (lineage is None or lineage.user != turn.user)
            )
            value = None if is_deleted else text if fresh or rest is None else rest
            vid = f"{operation.id}/{'deleted' if is_deleted else 'entry'} {number}"
            facts = {LINKED: BY_TEXT} if linked else {}
            kind = "delete_marker" if is_deleted else "memory_entry"
            if fresh or lineage is None:
                own = name or f"{call.tool} {len(self._lineages) + 1}"
                self._variable(vid, own, kind, value, session, facts)
                self._lineages.append(_Lineage(own, turn.user, vid, confirmed=bool(note.text), named=bool(name)))
            else:
                old = self._variables[lineage.latest]
                inputs.append(("entry", old.id))
                self._variables[vid] = Variable(
                    vid, old.name, kind, value, old.version + 1, old.id, session, attributes=facts
                )
                lineage.latest, lineage.confirmed = vid, bool(note.text)
                self._updated = (lineage, text) if not note.text else None
            outputs.append(("entry", vid))
        self._operation(operation, operation.id, call.tool, "update", session, inputs, outputs)

    def _lineage(self, name: str, user: str) -> _Lineage | None:
        """The entry with an id: the user's own, else the last of anyone's."""
        named = [lineage for lineage in self._lineages if lineage.name == name]
        return next((lineage for lineage in reversed(named) if lineage.user == user), named[-1] if named else None)

    def _variable(
        self, vid: str, name: str, kind: str, value: Any, session: str, facts: Mapping[str, Any] | None = None
    ) -> str:
        self._variables[vid] = Variable(vid, name, kind, value, session=session, attributes=facts or {})
        return vid

    def _operation(
        self, source: Operation, oid: str, name: str, stage: str, session: str, inputs: list[Link], outputs: list[Link]
    ) -> None:
        facts = {**source.attributes, STAGE: stage}
        inputs_once, outputs_once = tuple(dict.fromkeys(inputs)), tuple(dict.fromkeys(outputs))
        changes = {"id": oid, "name": name, "parent": None, "session": session, "attributes": facts}
        self._operations[oid] = replace(source, **changes, inputs=inputs_once, outputs=outputs_once)


def _number(name: str) -> int:
    """The number at the end of an id; 0 if it has none."""
    digits = name[len(name.rstrip("0123456789")) :]
    return int(digits[:9] or 0)
