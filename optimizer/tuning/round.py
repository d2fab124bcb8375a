"""A round in progress, as an optimizer notes it, and the record that is made of it at its end.

Records are written to a run's `summary.json` as they stand here: their fields are keys of that file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer

from attribution.cases import Case
from attribution.signals import Signal
from optimizer.evaluation.evaluator import Outcome
from optimizer.evaluation.scores import Interval, Score, Setting, Settings, settings_text
from optimizer.gating.gate import GateDecision, GateOutcome
from optimizer.objectives.alignment import Alignment
from optimizer.objectives.retrieval import Retrieval
from optimizer.proposers.rewrites import Rewrite
from tracing.llm.accounting.meter import Meter
from tracing.systems.prompts import Candidate

UNWRITTEN = Field(exclude=True)
"""Marks what a summary leaves out."""
_AS_SENTENCE = PlainSerializer(lambda decision: None if decision is None else str(decision))
_NOT_TRIED = GateOutcome.NOT_TRIED
_READ = BeforeValidator(lambda value: GateDecision.read(value) if isinstance(value, str) else value)


@dataclass(frozen=True, slots=True)
class BlameShare:
    """Share (0..1) of the failures that one operation is blamed for, with its 95 % interval."""

    share: float
    ci: tuple[float, float]


def blame_shares(signals: Sequence[Signal]) -> dict[str, BlameShare]:
    """By operation name, the shares that its signals give it."""
    return {signal.operation: BlameShare(signal.share, signal.share_ci) for signal in signals}


@dataclass(frozen=True, slots=True)
class RewriteRecord:
    """One rewrite, and how far it got.

    Attributes:
        prompt: name of the prompt.
        source: kind of proposer.
        reason: what was changed, in one line.
        text: the rewrite.
        screening: its gain in mean score over the champion on the screening conversations; None if it could not be
            scored, or the run stopped first.
        local: its gain over the champion on recorded inputs of the prompt's operation; None if not measured there.
        gate: the decision on it; None if it did not get that far.
    """

    prompt: str
    source: str
    reason: str
    text: str
    screening: float | None = None
    gate: GateDecision | None = None
    local: float | None = None

    def replaced(self, champion: Candidate, settings: Settings) -> str:
        """The champion's text in its place."""
        return champion[self.prompt]

    @classmethod
    def of(cls, rewrite: Rewrite, *, local: float | None = None) -> RewriteRecord:
        """The record of a rewrite that has not come to the gate."""
        return cls(rewrite.prompt, rewrite.source, rewrite.reason, rewrite.text, local=local)


@dataclass(frozen=True, slots=True)
class SettingsRecord:
    """Other settings of the system, and how far they got.

    Attributes:
        settings: name → value, of those that differ from the champion's.
        prompts: names of the prompts whose texts were changed with them.
        recall: share of needs that are retrieved under them; None if not measured.
        context_tokens: mean number of tokens of what is retrieved, estimated; None if not measured.
        gain: in mean score over the champion on the conversations met; None if there is none.
        gate: the decision; None if another combination was ahead before one.
    """

    settings: Settings
    prompts: tuple[str, ...]
    recall: float | None
    context_tokens: float | None
    gain: float | None
    gate: Annotated[GateDecision | None, _AS_SENTENCE, _READ]

    @property
    def text(self) -> str:
        """A line for each setting."""
        return settings_text(self.settings, "\n")

    def replaced(self, champion: Candidate, settings: Settings) -> str:
        """The champion's settings in their place, as `text`."""
        return settings_text({name: settings[name] for name in self.settings}, "\n")


Change = RewriteRecord | SettingsRecord
"""What may make another champion."""

Approve = Callable[[Change, str], bool]
"""Whether a change that the gate accepted is to be made; told with what it replaces (`replaced`)."""


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting that the search changed: the run's own value, and the champion's."""

    before: Setting
    after: Setting


@dataclass(frozen=True, slots=True)
class ChangedCase:
    """A question that an edit changed the judgement of: ids of its conversation and its own, and both replies."""

    conversation: str
    question: str
    asked: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class AcceptedEdit:
    """An edit that made a new champion.

    Attributes:
        diffs: prompt name → unified difference of the texts, for each prompt that changed.
        compared: questions that both champions answered on train and validation.
        fixed, broken: those that only the new one, and only the old one, answers right.
    """

    diffs: dict[str, str]
    compared: int
    fixed: tuple[ChangedCase, ...]
    broken: tuple[ChangedCase, ...]


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One round of the loop.

    Attributes:
        n: counted from 1.
        blame: operation name → its share of the failures of the champion this round started from.
        edited: names of the prompts this round tried to rewrite.
        proposals: rewrites that kept their contract and were tried.
        accepted: whether one of them became the champion.
        validation_score, validation_ci: the champion's validation score after this round, and its 95 % interval.
        calls_made, calls_cached, tokens: what this round cost (tokens of the calls made, in and out).
        champion: the champion's prompts after this round, so that an observer can save the best so far.
        rewrites: the rewrites that were tried, in order.
        edit: what changed with the champion; None if it stayed.
        alignment: prompt name → how well its local objective has predicted the answers so far.
        settings: the settings that were tried.
        retrieved: what is retrieved under the settings that the round began with; None if no others were compared by
            it, or it cannot be measured.
        changed: name → setting of the champion that is not the run's own.
        search_calls: calls that the search had made when its champion was found, or else by its end, those before and
            between rounds included.
        optimizer: the one of several that made the round; None if there is one, and for their last race.
        asked_again: prompt name → how many of its recorded inputs can be asked again; of a system without `rerun`.
        last: whether it was searched as one that no other follows (`optimizer.search.rounds`).
    """

    n: int
    blame: Mapping[str, BlameShare]
    edited: tuple[str, ...]
    proposals: int
    accepted: bool
    validation_score: float
    calls_made: int
    calls_cached: int
    tokens: int
    champion: Annotated[Candidate | None, UNWRITTEN] = None
    rewrites: Annotated[tuple[RewriteRecord, ...], UNWRITTEN] = ()
    alignment: Mapping[str, Alignment] = field(default_factory=dict)
    edit: AcceptedEdit | None = None
    settings: tuple[SettingsRecord, ...] = ()
    changed: Mapping[str, SettingChange] = field(default_factory=dict)
    search_calls: int | None = None
    optimizer: str | None = None
    asked_again: Mapping[str, str] = field(default_factory=dict)
    retrieved: Retrieval | None = None
    last: bool = False
    validation_ci: Annotated[Interval | None, UNWRITTEN] = None

    @property
    def settings_sentence(self) -> str | None:
        """What was chosen of the settings by what is retrieved, or why nothing was; None if none were compared."""
        if not self.settings:
            return None
        last, before = self.settings[-1], self.retrieved
        if before is None:
            if last.gate is not None and last.gate.outcome is _NOT_TRIED:
                return f"settings are not chosen: {last.gate.detail}"
            return f"{settings_text(last.settings)}, tried on whole conversations: {last.gate or 'another was ahead'}"
        needed = f"of what {before.questions} questions need"
        others = f"of {len(self.settings)} other settings"
        if last.recall is None or last.context_tokens is None or (last.gate and last.gate.outcome is _NOT_TRIED):
            return (
                f"{others}, none was tried; those of now retrieve {before.recall:.3f} {needed} in "
                f"{before.tokens:.0f} tokens"
            )
        return (
            f"{others}, {settings_text(last.settings)} retrieves {last.recall:.3f} {needed} in "
            f"{last.context_tokens:.0f} tokens, from {before.recall:.3f} in {before.tokens:.0f}: "
            f"{last.gate or 'another was ahead'}"
        )


@dataclass(slots=True)
class Round:
    """What a round did so far; it is recorded at its end, even if a budget ends it.

    The fields are those of its record (`RoundRecord`). Each rewrite has a key of the optimizer's choice.
    """

    n: int
    blame: Mapping[str, BlameShare] = field(default_factory=dict)
    edited: tuple[str, ...] = ()
    rewrites: dict[str, RewriteRecord] = field(default_factory=dict)
    alignment: Mapping[str, Alignment] = field(default_factory=dict)
    settings: list[SettingsRecord] = field(default_factory=list)
    retrieved: Retrieval | None = None
    last: bool = False

    def edits(self, *names: str) -> None:
        """Prompts that it tries to rewrite, each told once."""
        self.edited = tuple(dict.fromkeys((*self.edited, *names)))


class Ending(NamedTuple):
    """What the run's champion is when a round ends: as in the round's record, which explains the fields.

    There is an edit if, and only if, the round changed the champion. `validation` is its score there.
    """

    champion: Candidate
    validation: Score
    changed: Mapping[str, SettingChange]
    edit: AcceptedEdit | None
    asked_again: Mapping[str, str]


class RoundLog:
    """Records and reports the rounds of a run, those of several optimizers in one list.

    Args:
        meter: of the run's calls.
        report: called with the record of each.

    Attributes:
        records: of the rounds that have ended.
    """

    def __init__(self, meter: Meter, report: Callable[[RoundRecord], None]) -> None:
        self._meter, self._report = meter, report
        self.records: list[RoundRecord] = []
        self._calls_before = 0
        self._crowned_at: int | None = None

    @property
    def last(self) -> int:
        """Number of the last round; 0 before the first."""
        return self.records[-1].n if self.records else 0

    def search_begins(self) -> None:
        """Calls made so far are not the search's."""
        self._calls_before = int(self._meter.totals()["calls_made"])

    def crowns(self) -> None:
        """A new champion is found, with the calls made so far."""
        self._crowned_at = int(self._meter.totals()["calls_made"])

    @contextmanager
    def recorded(self, n: int, ending: Callable[[], Ending], *, after: int, optimizer: str | None) -> Iterator[Round]:
        """Record a round at its end, however it ends.

        Args:
            n: counted from 1.
            ending: called at its end.
            after: rounds of the run before the first of this search.
            optimizer: the one of several that makes it.
        """
        before, noted, self._crowned_at = self._meter.totals(), Round(n), None
        try:
            yield noted
        finally:
            now, end = self._meter.totals(), ending()
            made = int(now["calls_made"])
            reached = made if end.edit is None or self._crowned_at is None else self._crowned_at
            record = RoundRecord(
                n=after + n,
                blame=noted.blame,
                edited=noted.edited,
                proposals=len(noted.rewrites),
                accepted=end.edit is not None,
                validation_score=end.validation.score,
                validation_ci=end.validation.ci,
                calls_made=made - int(before["calls_made"]),
                calls_cached=int(now["calls_cached"] - before["calls_cached"]),
                tokens=int(_tokens(now) - _tokens(before)),
                champion=end.champion,
                rewrites=tuple(noted.rewrites.values()),
                alignment=noted.alignment,
                edit=end.edit,
                settings=tuple(noted.settings),
                retrieved=noted.retrieved,
                last=noted.last,
                changed=end.changed,
                search_calls=reached - self._calls_before,
                optimizer=optimizer,
                asked_again=end.asked_again,
            )
            self.records.append(record)
            self._report(record)


def _tokens(totals: Mapping[str, float]) -> float:
    return totals["prompt_tokens"] + totals["completion_tokens"]


def accepted_edit(old: Candidate, new: Candidate, before: Sequence[Outcome], after: Sequence[Outcome]) -> AcceptedEdit:
    """The edit from one candidate to another, over the questions that were asked under both."""
    earlier, later = _cases(before), _cases(after)
    both = [(earlier[key], later[key]) for key in earlier if key in later]
    return AcceptedEdit(
        diffs={name: _diff(old[name], text) for name, text in new.items() if text != old[name]},
        compared=len(both),
        fixed=tuple(_changed(old, new) for old, new in both if new.passed and not old.passed),
        broken=tuple(_changed(old, new) for old, new in both if old.passed and not new.passed),
    )


def _diff(old: str, new: str) -> str:
    return "\n".join(unified_diff(old.splitlines(), new.splitlines(), "before", "after", lineterm=""))


def _changed(before: Case, after: Case) -> ChangedCase:
    question = before.question
    return ChangedCase(before.conversation, question.id, question.question, before.reply, after.reply)


def _cases(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], Case]:
    return {(case.conversation, case.question.id): case for outcome in outcomes for case in outcome.cases}
