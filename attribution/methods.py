"""The methods of attribution that memtune ships, each set up for a recording."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from attribution.survival.method import Survival

if TYPE_CHECKING:
    from attribution.agent.method import Agent
    from attribution.agent.triage import Triage
    from attribution.recordings import Recording
    from tracing.llm.access import ModelAccess


def survival(recording: Recording, access: ModelAccess | None = None) -> Survival:
    """Information survival; no model is asked."""
    return Survival(recording.graph, recording.conversation, recording.operations)


@dataclass(frozen=True, slots=True)
class _Assisted:
    """Survival that asks a model short questions where words leave it unsure."""

    seconds: float | None = None

    def within(self, seconds: float) -> _Assisted:
        return replace(self, seconds=seconds)

    def __call__(self, recording: Recording, access: ModelAccess) -> Survival:
        from attribution.agent.assisted import assisted

        return assisted(recording, access.task, seconds=self.seconds)


@dataclass(frozen=True, slots=True)
class _Agent:
    """A model that explores the graph by tools."""

    seconds: float | None = None

    def within(self, seconds: float) -> _Agent:
        return replace(self, seconds=seconds)

    def __call__(self, recording: Recording, access: ModelAccess) -> Agent:
        from attribution.agent.method import Agent

        return Agent(recording.graph, access.task, operations=recording.operations, seconds=self.seconds)


@dataclass(frozen=True, slots=True)
class _Triage:
    """Survival, and the agent where that is unsure."""

    second: _Agent = _Agent()

    def within(self, seconds: float) -> _Triage:
        return _Triage(self.second.within(seconds))

    def __call__(self, recording: Recording, access: ModelAccess) -> Triage:
        from attribution.agent.triage import Triage

        return Triage(survival(recording), self.second(recording, access))


ASSISTED, AGENT, TRIAGE = _Assisted(), _Agent(), _Triage()
