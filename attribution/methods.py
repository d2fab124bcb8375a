"""The methods of attribution that memtune ships, each set up for a recording."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, cast

from attribution.cases import Attribution, Case
from attribution.explanations import Explained, explained
from tracing.errors import OutOfTimeError

if TYPE_CHECKING:
    from attribution.agent.agent_method import Agent
    from attribution.attributor import Attributor
    from attribution.recordings import Recording
    from attribution.survival.matching.matcher import Matcher, MatcherFactory
    from attribution.survival.survival_method import Survival
    from tracing.llm.access import ModelAccess

UNSURE = 0.8
"""Below it are about a tenth of survival's verdicts, sources of `python -m benchmarks calibration` counting alike."""


@dataclass(frozen=True, slots=True)
class Triage:
    """An `Attributor` that asks `first`, and `second` if `first` abstains or its confidence is below `unsure`.

    If both name something, the more confident one wins and the other is kept as an alternative.
    """

    first: Attributor
    second: Attributor
    unsure: float = UNSURE

    def attribute(self, case: Case) -> Attribution:
        """Whose fault the case is. If `second` runs out of time, what `first` says is kept, unless that abstains."""
        return self.explain(case).attribution

    def explain(self, case: Case) -> Explained:
        """As `attribute`, with the steps of both."""
        first = explained(self.first, case)
        cheap = first.attribution
        if case.passed or (cheap.main is not None and cheap.main.confidence >= self.unsure):
            return first
        try:
            second = explained(self.second, case)
        except OutOfTimeError:
            if cheap.main is None:
                raise
            return first
        return Explained(better(cheap, second.attribution), (*first.steps, *second.steps))


def better(cheap: Attribution, costly: Attribution) -> Attribution:
    """The more confident of two verdicts on a case, with the other as an alternative; an abstention does not count."""
    if costly.main is None:
        return cheap if cheap.main is not None else costly
    if cheap.main is None:
        return costly
    surer, other = (costly, cheap) if costly.main.confidence > cheap.main.confidence else (cheap, costly)
    return replace(surer, alternatives=(*other.decisive, *surer.alternatives))


@dataclass(frozen=True)
class _WithModel:
    seconds: float | None = None

    def within(self, seconds: float) -> Self:
        return replace(self, seconds=seconds)


@dataclass(frozen=True)
class _WithMatcher:
    matcher: MatcherFactory | None = None

    def matching(self, matcher: MatcherFactory) -> Self:
        return replace(self, matcher=matcher)

    def _matcher_of(self, recording: Recording, access: ModelAccess | None) -> Matcher | None:
        return None if self.matcher is None else self.matcher(recording.conversation, cast("ModelAccess", access))


@dataclass(frozen=True)
class _Survival(_WithMatcher):
    """Information survival; by words, no model is asked."""

    def __call__(self, recording: Recording, access: ModelAccess | None = None) -> Survival:
        from attribution.survival.survival_method import Survival

        matcher = self._matcher_of(recording, access)
        return Survival(recording.graph, recording.conversation, recording.operations, matcher=matcher)


@dataclass(frozen=True)
class _Assisted(_WithModel, _WithMatcher):
    """Survival that asks a model short questions where words leave it unsure."""

    def __call__(self, recording: Recording, access: ModelAccess) -> Survival:
        from attribution.agent.assisted import assisted

        matcher = self._matcher_of(recording, access)
        return assisted(recording, access.task, seconds=self.seconds, matcher=matcher)


@dataclass(frozen=True)
class _Agent(_WithModel):
    """A model that explores the graph by tools."""

    def __call__(self, recording: Recording, access: ModelAccess) -> Agent:
        from attribution.agent.agent_method import Agent

        return Agent(recording.graph, access.task, operations=recording.operations, seconds=self.seconds)


@dataclass(frozen=True)
class _Triage(_WithModel, _WithMatcher):
    """Survival, and the agent where that is unsure."""

    def __call__(self, recording: Recording, access: ModelAccess) -> Triage:
        return Triage(_Survival(self.matcher)(recording, access), _Agent(self.seconds)(recording, access))


survival = _Survival()
ASSISTED, AGENT, TRIAGE = _Assisted(), _Agent(), _Triage()
