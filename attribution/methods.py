"""The method of attribution that memtune ships, set up for a recording."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, cast

if TYPE_CHECKING:
    from attribution.recordings import Recording
    from attribution.survival.matching.matcher import MatcherFactory
    from attribution.survival.survival_method import Survival
    from tracing.llm.access import ModelAccess


@dataclass(frozen=True)
class _Survival:
    """Information survival; by words, no model is asked."""

    matcher: MatcherFactory | None = None

    def matching(self, matcher: MatcherFactory) -> Self:
        return replace(self, matcher=matcher)

    def __call__(self, recording: Recording, access: ModelAccess | None = None) -> Survival:
        from attribution.survival.survival_method import Survival

        matcher = None
        if self.matcher is not None:
            matcher = self.matcher(recording.conversation, cast("ModelAccess", access))
        return Survival(recording.graph, recording.conversation, recording.operations, matcher=matcher)


survival = _Survival()
