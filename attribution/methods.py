"""The methods of attribution that memtune ships, each set up for a recording."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from attribution.survival.matching.matcher import MatcherFactory
from attribution.survival.survival_method import Survival

if TYPE_CHECKING:
    from attribution.agent.agent_method import Agent
    from attribution.agent.triage import Triage
    from attribution.recordings import Recording
    from tracing.llm.access import ModelAccess


@dataclass(frozen=True, slots=True)
class _Survival:
    """Information survival; by words, no model is asked."""

    matcher: MatcherFactory | None = None

    def matching(self, matcher: MatcherFactory) -> _Survival:
        return _Survival(matcher)

    def __call__(self, recording: Recording, access: ModelAccess | None = None) -> Survival:
        matcher = None if self.matcher is None else self.matcher(recording.conversation, cast("ModelAccess", access))
        return Survival(recording.graph, recording.conversation, recording.operations, matcher=matcher)


@dataclass(frozen=True, slots=True)
class _Assisted:
    """Survival that asks a model short questions where words leave it unsure."""

    seconds: float | None = None
    matcher: MatcherFactory | None = None

    def within(self, seconds: float) -> _Assisted:
        return replace(self, seconds=seconds)

    def matching(self, matcher: MatcherFactory) -> _Assisted:
        return replace(self, matcher=matcher)

    def __call__(self, recording: Recording, access: ModelAccess) -> Survival:
        from attribution.agent.assisted import assisted

        matcher = None if self.matcher is None else self.matcher(recording.conversation, access)
        return assisted(recording, access.task, seconds=self.seconds, matcher=matcher)


@dataclass(frozen=True, slots=True)
class _Agent:
    """A model that explores the graph by tools."""

    seconds: float | None = None

    def within(self, seconds: float) -> _Agent:
        return replace(self, seconds=seconds)

    def __call__(self, recording: Recording, access: ModelAccess) -> Agent:
        from attribution.agent.agent_method import Agent

        return Agent(recording.graph, access.task, operations=recording.operations, seconds=self.seconds)


@dataclass(frozen=True, slots=True)
class _Triage:
    """Survival, and the agent where that is unsure."""

    second: _Agent = _Agent()
    first: _Survival = _Survival()

    def within(self, seconds: float) -> _Triage:
        return replace(self, second=self.second.within(seconds))

    def matching(self, matcher: MatcherFactory) -> _Triage:
        return replace(self, first=self.first.matching(matcher))

    def __call__(self, recording: Recording, access: ModelAccess) -> Triage:
        from attribution.agent.triage import Triage

        return Triage(self.first(recording, access), self.second(recording, access))


survival = _Survival()
ASSISTED, AGENT, TRIAGE = _Assisted(), _Agent(), _Triage()
