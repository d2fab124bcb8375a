"""Reads a conversation into a new EverOS, session by session, and records what it extracts and stores."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from experiments.systems.everos.operations import Asker
from experiments.systems.everos.own_config import OwnEverOs
from experiments.systems.everos.prompts import SLOTS, PromptRequest
from experiments.systems.everos.search import EPISODE, FACT, StoredEpisode
from experiments.systems.everos.server import OWNER, Chat, Server, ServerPool
from tracing.errors import MemorySystemError, MemtuneError, raise_first
from tracing.graph.elements import Variable
from tracing.llm.access import ModelAccess
from tracing.llm.models import ChatReply
from tracing.recording.operations import operation
from tracing.systems.conversations import DialogueSession, moment_of
from tracing.systems.prompts import Candidate
from tracing.systems.texts import Text, noted

_AT_ONCE = 400
"""Most turns EverOS gets before it is asked for episodes; it splits 500 without asking a model."""

_FIRST_DAY = datetime(2000, 1, 1, tzinfo=UTC)
_TURN_S = 120.0


@dataclass(slots=True)
class _Part:
    """What is read at once, and what came of it so far.

    Attributes:
        context: in which the requests that it leads to are made.
        segments: the stretches it was split into.
        episodes: what was extracted, in the order of the requests.
        facts: those of each episode.
        stored: the entries of the episodes; empty until EverOS has written them.
        names: their ids.
        released: whether facts may be asked for.
    """

    messages: Sequence[Text]
    context: Context
    segments: list[tuple[Sequence[Text], Variable]] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    episodes: list[Text | None] = field(default_factory=list)
    facts: dict[int, list[Text]] = field(default_factory=dict)
    stored: list[Text] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    released: bool = False
    turn: int = 0


class _Reading:
    """An EverOS that stores; its requests go to the one that has it."""

    def __init__(self, slots: Mapping[str, str], variables: Mapping[str, str]) -> None:
        self.chat: Chat = _not_asked
        self.builds = 0
        self.server = Server(slots, chat=lambda messages: self.chat(messages), variables=variables)

    @property
    def alive(self) -> bool:
        return self.server.alive

    def close(self) -> None:
        self.server.close()


_servers: ServerPool[_Reading] = ServerPool(1)


class EverOsIngestion(ExitStack):
    """Reads one conversation; a context manager.

    It has an EverOS for itself, which is kept for the next one with the same slots. Each has an `app_id` of
    its own, and so a folder of its own. After an error that EverOS is ended.

    EverOS asks for the facts of its episodes at the same time as for other episodes. Here they wait until all episodes
    of a part are stored, and go in their order, so that equal builds ask and record the same.

    Attributes:
        entries: what is stored, in the order stored.
    """

    def __init__(
        self,
        access: ModelAccess,
        candidate: Candidate,
        *,
        max_tokens: int,
        enforced: bool,
        own: OwnEverOs | None = None,
    ) -> None:
        super().__init__()
        self.entries: list[StoredEpisode] = []
        variables = own.variables if own is not None else {}
        limit = own.boundary_detection.hard_msg_limit if own is not None else _AT_ONCE
        self._at_once = min(_AT_ONCE, max(1, limit - 1))
        self._asker = Asker(access, candidate, max_tokens=max_tokens, enforced=enforced)
        self._requests = {name: PromptRequest(candidate[name]) for name in SLOTS}
        self._part = _Part((), Context())
        self._failures: list[MemtuneError] = []
        self._names: dict[str, StoredEpisode] = {}
        self._turns = threading.Condition()
        self._days = 0
        self._ended = False
        slots = {name: candidate[name] for name in SLOTS}
        reading = self.enter_context(
            _servers.borrowed(json.dumps([slots, variables]), lambda: _Reading(slots, variables))
        )
        reading.builds += 1
        self._app, self._server = f"b{reading.builds}", reading.server
        reading.chat = self._chat
        self.callback(setattr, reading, "chat", _not_asked)
        # Requests that wait for their turn would keep the server waiting.
        self.callback(self._end)

    def _end(self) -> None:
        with self._turns:
            self._ended = True
            self._turns.notify_all()

    def read(self, dialogue: DialogueSession) -> None:
        """Read a session."""
        began = self._began(dialogue.time)
        for start in range(0, len(dialogue.turns), self._at_once):
            turns = dialogue.turns[start : start + self._at_once]
            messages = [noted(turn.spoken, name=turn.id, kind="message") for turn in turns]
            self._part = part = _Part(messages, copy_context())
            sent = [
                {
                    "sender_id": OWNER,
                    "sender_name": turn.speaker,
                    "role": "user",
                    # EverOS puts messages in the order of their times.
                    "timestamp": int((began + timedelta(seconds=start + number)).timestamp() * 1000),
                    "content": turn.text,
                }
                for number, turn in enumerate(turns)
            ]
            session = {"session_id": dialogue.id, "app_id": self._app}
            self._through("/api/v2/memory/add", {**session, "messages": sent, "defer_extraction": True})
            self._through("/api/v2/memory/flush", session)
            self._note(EPISODE)
            with self._turns:
                part.released = True
                self._turns.notify_all()
            self._server.idle()
            raise_first(self._failures)
            self._note(FACT)

    def _through(self, path: str, body: Mapping[str, Any]) -> None:
        try:
            self._server.post(path, body)
        except MemorySystemError:
            raise_first(self._failures)
            raise

    def _chat(self, messages: Sequence[Mapping[str, str]]) -> ChatReply:
        """EverOS's request, as part of what is being read."""
        part, request = self._part, messages[-1]["content"]
        try:
            raise_first(self._failures)
            for name, ask in (("boundary_detection", self._boundaries), ("episode_extract", self._episode)):
                values = self._requests[name].values(request)
                if values is not None:
                    return part.context.copy().run(ask, part, request, values)
            return self._facts(part, request)
        except MemtuneError as error:
            self._failures.append(error)
            raise

    def _boundaries(self, part: _Part, request: str, values: Mapping[str, str]) -> ChatReply:
        reply, part.segments = self._asker.boundaries(request, values, part.messages)
        return reply

    def _episode(self, part: _Part, request: str, values: Mapping[str, str]) -> ChatReply:
        if part.requests[-1:] == [request]:
            # EverOS could not read the reply, and asks again.
            del part.requests[-1], part.episodes[-1]
        number = len(part.requests)
        stretch = part.segments[number : number + 1]
        messages = stretch[0][0] if stretch else part.messages
        reply, episode = self._asker.episode(request, values, messages, [segment for _, segment in stretch])
        part.requests.append(request)
        part.episodes.append(episode)
        return reply

    def _facts(self, part: _Part, request: str) -> ChatReply:
        with self._turns:
            self._turns.wait_for(lambda: part.released or self._ended)
            number = _of(part, request)
            self._turns.wait_for(lambda: part.turn >= number or self._ended, timeout=_TURN_S)
            if self._ended:
                raise MemorySystemError("everos was ended while it asked for facts")
        episode = part.stored[number] if number < len(part.stored) else None
        reply, part.facts[number] = part.context.copy().run(self._asker.facts, request, episode)
        with self._turns:
            part.turn = max(part.turn, number + 1)
            self._turns.notify_all()
        return reply

    def _note(self, kind: str) -> None:
        """Record the entries that EverOS has written since."""
        part = self._part
        fresh = [
            entry
            for entry in self._server.entries(self._app)
            if entry["kind"] == kind and entry["id"] not in self._names
        ]
        # EverOS writes episodes in the order of its requests, and the facts of each together.
        episodes = [episode for episode in part.episodes if episode is not None] if kind == EPISODE else []
        for number, entry in enumerate(fresh):
            parent = self._names.get(entry["inline"].get("parent_id", ""))
            text = entry["sections"].get("Content" if kind == EPISODE else "Fact", "").strip()
            if parent is not None:
                # Facts with the same text are told apart by their episode.
                facts = part.facts.get(part.names.index(parent.id), []) if parent.id in part.names else []
                source = next((fact.variable for fact in facts if fact.text.strip() == text), None)
            else:
                source = episodes[number].variable if number < len(episodes) else None
            with operation("store", inputs={"fact": [] if source is None else source}) as op:
                name = f"{'e' if kind == EPISODE else 'f'}{sum(earlier.kind == kind for earlier in self.entries) + 1}"
                output = op.output("entry", text, name=name, kind="memory_entry")
            stored = StoredEpisode(
                id=name,
                text=text,
                variable=output.id,
                kind=kind,
                time=entry["inline"].get("timestamp", ""),
                session=entry["inline"].get("session_id", ""),
                sections=dict(entry["sections"]),
                parent=parent.id if parent is not None else "",
            )
            self.entries.append(stored)
            self._names[entry["id"]] = stored
            if kind == EPISODE:
                part.stored.append(Text(text, output))
                part.names.append(name)

    def _began(self, time: str) -> datetime:
        """When a session began. EverOS needs a time, so sessions without a known one are on days after each other."""
        self._days += 1
        moment = moment_of(time)
        if moment is None:
            return _FIRST_DAY + timedelta(days=self._days)
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _not_asked(messages: Sequence[Mapping[str, str]]) -> ChatReply:
    raise MemorySystemError("everos asks a model while it reads nothing")


def _of(part: _Part, request: str) -> int:
    """The number of the episode whose facts a request asks for, of those not yet asked for."""
    inside = [number for number, episode in enumerate(part.stored) if episode.text in request]
    fresh = [number for number in inside if number not in part.facts]
    candidates = fresh or inside
    return max(candidates, key=lambda number: len(part.stored[number].text)) if candidates else len(part.stored)
