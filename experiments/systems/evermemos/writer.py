"""The state of one build: messages that wait for the end of their episode, the entries so far, and their clusters.

A cluster holds episodes that are alike and near in time; no model is asked for it beside the embedding model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from experiments.systems.building_blocks.recall import memory_of, recorded
from experiments.systems.evermemos.extraction import (
    WrittenEpisode,
    detect_boundaries,
    extract_facts,
    init_profile,
    update_profile,
    write_episode,
)
from tracing.llm.access import ModelAccess
from tracing.recording.operations import operation
from tracing.systems.conversations import DialogueSession, moment_of
from tracing.systems.entries import Entry, similarity
from tracing.systems.interventions import Change, Step, intervening
from tracing.systems.prompts import Candidate, tokens_of
from tracing.systems.protocol import Memory
from tracing.systems.texts import Text, noted, variables_of


@dataclass(frozen=True, slots=True)
class EpisodeLimits:
    """Settings of the building; see `EverMemOS`."""

    cell_tokens: int
    cell_messages: int
    cluster_similarity: float
    cluster_days: float


@dataclass(frozen=True, slots=True)
class _Waiting:
    message: Text
    time: str


class EpisodeWriter:
    """Reads sessions one after the other into entries: episodes, facts and profiles."""

    def __init__(self, limits: EpisodeLimits, candidate: Candidate, access: ModelAccess) -> None:
        self._limits, self._candidate, self._access = limits, candidate, access
        self._clusters = Clusters(similarity=limits.cluster_similarity, days=limits.cluster_days)
        self._waiting: list[_Waiting] = []
        self._entries: dict[str, Entry] = {}
        self._count: dict[str, int] = {}

    def memory(self) -> Memory:
        """What was stored."""
        return memory_of(self._entries.values())

    def read(self, dialogue: DialogueSession, *, last: bool) -> None:
        """Read a session; after the last one nothing waits."""
        for turn in dialogue.turns:
            message = noted(turn.spoken, name=turn.id, kind="message")
            tokens = sum(tokens_of(waiting.message.text) for waiting in self._waiting)
            full = len(self._waiting) >= self._limits.cell_messages
            if self._waiting and (full or tokens + tokens_of(message.text) > self._limits.cell_tokens):
                self._close(len(self._waiting))
            self._waiting.append(_Waiting(message, dialogue.time))
        if not self._waiting:
            return
        messages = [waiting.message for waiting in self._waiting]
        boundaries, waits = detect_boundaries(messages, self._candidate["boundary"], self._access.task)
        closed = 0
        for number in boundaries:
            self._close(number - closed)
            closed = number
        if self._waiting and (last or not waits):
            self._close(len(self._waiting))

    def store(self, facts: Sequence[Text], time: str, episode: WrittenEpisode | None = None) -> None:
        """Store facts, with the episode that they are from if there is one, and keep the profile of their cluster."""
        if not facts and episode is None:
            return
        cluster, stored = self._cluster(facts, time, episode)
        if cluster is not None:
            self._profile(cluster, stored["f"] or stored["e"])

    def _close(self, count: int) -> None:
        """Make an episode of the first messages that wait."""
        cell, self._waiting = self._waiting[:count], self._waiting[count:]
        time = noted(cell[0].time or "unknown", name="time", kind="value")
        messages = [waiting.message for waiting in cell]
        episode = write_episode(messages, time, self._candidate["episode"], self._access.task)
        if episode is not None:
            facts = extract_facts(episode.content, time, messages, self._candidate["facts"], self._access.task)
            self.store(facts, cell[0].time, episode)

    def _cluster(
        self, facts: Sequence[Text], time: str, episode: WrittenEpisode | None
    ) -> tuple[Cluster | None, dict[str, list[Text]]]:
        """Find the cluster of an episode by its embedding, and store the episode and its facts there.

        Returns:
            The cluster, and the entries made of the episode (`e`) and of facts (`f`).
        """
        items = [("e", episode.content)] if episode is not None else []
        items += [("f", fact) for fact in facts]
        title = f"{episode.title.text}: " if episode is not None and episode.title.text else ""
        inputs = {"facts": variables_of(facts)}
        if episode is not None:
            inputs = {"title": [episode.title.variable], "content": [episode.content.variable], **inputs}
        stored: dict[str, list[Text]] = {"e": [], "f": []}
        with operation("cluster", inputs=inputs) as op:
            changes = [(kind, Change("ADD", text=item.text)) for kind, item in items]
            outcomes = [
                (kind, intervening().stored(Step("cluster", op.id), change, change)) for kind, change in changes
            ]
            additions = [
                (kind, _dated(title + change.text if kind == "e" else change.text, time))
                for kind, change in outcomes
                if change.event == "ADD"
            ]
            if not additions:
                return None, stored
            vectors = self._access.embedding.embed([text for _, text in additions])
            cluster = self._clusters.joined(vectors[0], time)
            for (kind, text), vector in zip(additions, vectors, strict=True):
                name = self._named(kind)
                output = op.output("entries", text, name=name, kind="memory_entry", cluster=cluster.name)
                self._entries[name] = Entry(name, text, tuple(vector), output.id)
                stored[kind].append(Text(text, output))
        return cluster, stored

    def _profile(self, cluster: Cluster, facts: Sequence[Text]) -> None:
        current = self._entries.get(cluster.profile or "")
        if current is not None:
            (variable,) = recorded([current]) or [noted(current.text, name=current.id, kind="memory_entry").variable]
            profile: Entry | None = update_profile(
                current, Text(current.text, variable), facts, self._candidate, self._access
            )
        else:
            profile = init_profile(self._named("p"), facts, self._candidate, self._access)
        if profile is not None:
            cluster.profile = profile.id
            self._entries[profile.id] = profile

    def _named(self, kind: str) -> str:
        self._count[kind] = self._count.get(kind, 0) + 1
        return f"{kind}{self._count[kind]}"


def _dated(text: str, time: str) -> str:
    return f"{text} ({time})" if time else text


@dataclass(slots=True)
class Cluster:
    """Episodes on one matter.

    Attributes:
        name: of the cluster.
        total: sum of the vectors of its episodes.
        last: time of its latest episode; None if no time is known.
        profile: name of the entry that is its profile; None before there is one.
    """

    name: str
    total: tuple[float, ...]
    last: datetime | None
    profile: str | None = None

    def likeness(self, vector: Sequence[float]) -> float:
        """Cosine of a normalised vector and the cluster's mean."""
        length = math.hypot(*self.total) or 1.0
        return similarity(vector, self.total) / length

    def is_near(self, moment: datetime | None, days: float) -> bool:
        """Whether a time is within so many days of the latest episode; so is one that is not known."""
        return moment is None or self.last is None or abs(moment - self.last) <= timedelta(days=days)


class Clusters:
    """The clusters of one memory; for the limits see `EverMemOS`."""

    def __init__(self, *, similarity: float, days: float) -> None:
        self._similarity, self._days = similarity, days
        self._known: list[Cluster] = []

    def joined(self, vector: Sequence[float], time: str) -> Cluster:
        """The cluster of a new episode: the likest that is near in time, or a new one."""
        moment = _local(time)
        near = [cluster for cluster in self._known if cluster.is_near(moment, self._days)]
        likest = max(near, key=lambda cluster: cluster.likeness(vector), default=None)
        if likest is None or likest.likeness(vector) < self._similarity:
            likest = Cluster(f"g{len(self._known) + 1}", tuple(vector), moment)
            self._known.append(likest)
            return likest
        likest.total = tuple(a + b for a, b in zip(likest.total, vector, strict=True))
        likest.last = max(filter(None, (likest.last, moment)), default=None)
        return likest


def _local(time: str) -> datetime | None:
    """A session's time without its zone, so that it can be compared with that of any other; None if not known."""
    moment = moment_of(time)
    return None if moment is None else moment.replace(tzinfo=None)
