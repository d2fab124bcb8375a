"""A round in progress, as an optimizer notes it, and the record that is made of it at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from optimizer.tuning.results import RoundRecord

if TYPE_CHECKING:
    from optimizer.evaluation.scores import Score
    from optimizer.objectives.alignment import Alignment
    from optimizer.tuning.accepted_edit import AcceptedEdit
    from optimizer.tuning.results import BlameShare, Observer, RewriteRecord, SettingChange, SettingsRecord
    from tracing.llm.accounting.meter import Meter
    from tracing.systems.prompts import Candidate


@dataclass(slots=True)
class Round:
    """What a round did so far; it is recorded at its end, even if a budget ends it.

    Attributes:
        n: counted from 1.
        blame: operation name → its share of the failures that the round started from.
        edited: names of the prompts that it tried to rewrite.
        rewrites: by a key of the optimizer's choice, the rewrites that were tried.
        alignment: prompt name → how well its local objective has predicted the answers so far.
        settings: the settings of the system that were tried.
    """

    n: int
    blame: Mapping[str, BlameShare] = field(default_factory=dict)
    edited: tuple[str, ...] = ()
    rewrites: dict[str, RewriteRecord] = field(default_factory=dict)
    alignment: Mapping[str, Alignment] = field(default_factory=dict)
    settings: list[SettingsRecord] = field(default_factory=list)


class Ending(NamedTuple):
    """What the run's champion is when a round ends: as in the round's record, which explains the fields.

    There is an edit if, and only if, the round changed the champion. `validation` is its score there.
    """

    champion: Candidate
    validation: Score
    changed: Mapping[str, SettingChange]
    edit: AcceptedEdit | None


class RoundLog:
    """Records and reports the rounds of a run, those of several optimizers in one list.

    Args:
        meter: of the run's calls.
        observer: of the run.

    Attributes:
        records: of the rounds that have ended.
    """

    def __init__(self, meter: Meter, observer: Observer) -> None:
        self._meter, self._observer = meter, observer
        self.records: list[RoundRecord] = []
        self._calls_before = 0

    @property
    def last(self) -> int:
        """Number of the last round; 0 before the first."""
        return self.records[-1].n if self.records else 0

    def search_begins(self) -> None:
        """Calls made so far are not the search's."""
        self._calls_before = int(self._meter.totals()["calls_made"])

    @contextmanager
    def recorded(self, n: int, ending: Callable[[], Ending], *, after: int, optimizer: str | None) -> Iterator[Round]:
        """Record a round at its end, however it ends.

        Args:
            n: counted from 1.
            ending: called at its end.
            after: rounds of the run before the first of this search.
            optimizer: the one of several that makes it.
        """
        before, noted = self._meter.totals(), Round(n)
        try:
            yield noted
        finally:
            now, end = self._meter.totals(), ending()
            record = RoundRecord(
                n=after + n,
                blame=noted.blame,
                edited=noted.edited,
                proposals=len(noted.rewrites),
                accepted=end.edit is not None,
                validation_score=end.validation.score,
                validation_ci=end.validation.ci,
                calls_made=int(now["calls_made"] - before["calls_made"]),
                calls_cached=int(now["calls_cached"] - before["calls_cached"]),
                tokens=int(_tokens(now) - _tokens(before)),
                champion=end.champion,
                rewrites=tuple(noted.rewrites.values()),
                alignment=noted.alignment,
                edit=end.edit,
                settings=tuple(noted.settings),
                changed=end.changed,
                search_calls=int(now["calls_made"]) - self._calls_before,
                optimizer=optimizer,
            )
            self.records.append(record)
            self._observer.round(record)


def _tokens(totals: Mapping[str, float]) -> float:
    return totals["prompt_tokens"] + totals["completion_tokens"]
