"""What an optimization run takes, reports along the way, and returns: plain data without the loop's behaviour.

Splits are named `train`, `validation` and `test` wherever they are written down (summary, metrics, report). What
`RunFigures` holds is written to a run's `summary.json` as it stands here: its fields are keys of that file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from pydantic import AliasChoices, BeforeValidator, Field, PlainSerializer

from optimizer.evaluation.noise import NoiseFloor
from optimizer.evaluation.scores import Interval, Score, Setting, Settings, SplitName
from optimizer.gating.decision import GateDecision
from optimizer.gating.verdict import Difference, Verdict, VerdictName
from optimizer.objectives.alignment import Alignment
from optimizer.proposers.text_limits import TextLimits
from optimizer.racing.studies import Studies
from optimizer.tuning.accepted_edit import AcceptedEdit
from optimizer.tuning.stopped import Stopped
from tracing.systems.prompts import Candidate

if TYPE_CHECKING:
    from attribution.signals import Signal
    from attribution.survival.matching.matcher import MatcherFactory
    from optimizer.objectives.objectives import ObjectiveFactory
    from optimizer.proposers.rewrites import Rewrite

_UNWRITTEN = Field(exclude=True)
"""Marks what a summary leaves out."""
_ALSO_ITERATIONS = Field(validation_alias=AliasChoices("rounds", "iterations"))
"""Summaries of earlier commits call rounds iterations."""
_AS_SENTENCE = PlainSerializer(lambda decision: None if decision is None else str(decision))
_READ = BeforeValidator(lambda value: GateDecision.read(value) if isinstance(value, str) else value)

Selector = Literal["blame", "round-robin", "uniform", "all", "random"]
"""How a round chooses the prompts that it rewrites (`optimizer.search.selection.shares_of`)."""


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """How long and how widely the loop searches.

    Attributes:
        rounds: how many passes of attribute, rewrite and gate.
        proposals: rewrites tried on the validation conversations in one round, at most.
        seed: of every random choice of the loop.
        hand: rewrites that people wrote; their prompts are edited first, and all of them race.
        approve: called with a rewrite that the gate accepted and the text it would replace; if it says no, the
            champion stays. None approves everything.
        limits: what users ask of every text.
        tuned: names of the prompts that may be rewritten; None for all.
        selector: how rounds choose the prompts that they rewrite.
        attribution: whether blame guides the search; otherwise every wrong answer counts against every prompt.
        local_objectives: whether texts are first compared on recorded inputs.
        objectives: prompt name → what makes its local objective, where a user chose it.
        matcher: sets up what decides for local objectives what a text carries; None for its words.
        studies: keep the Optuna studies of the joint choices.
        calls: model calls that the search may make, without baselines and test; None for any number.
        open_ended: a search that goes on by rounds need not stop after so many, but when its budget or patience ends.
    """

    rounds: int = 3
    proposals: int = 4
    seed: int = 0
    hand: tuple[Rewrite, ...] = ()
    approve: Callable[[RewriteRecord, str], bool] | None = None
    limits: TextLimits = field(default_factory=TextLimits)
    tuned: Collection[str] | None = None
    selector: Selector = "blame"
    attribution: bool = True
    local_objectives: bool = True
    objectives: Mapping[str, ObjectiveFactory] = field(default_factory=dict)
    matcher: MatcherFactory | None = None
    studies: Studies = field(default_factory=Studies)
    calls: int | None = None
    open_ended: bool = False


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


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting that the search changed: the run's own value, and the champion's."""

    before: Setting
    after: Setting


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
        changed: name → setting of the champion that is not the run's own.
        search_calls: calls that the search had made by its end, those before and between rounds included.
        optimizer: the one of several that made the round; None if there is one, and for their last race.
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
    champion: Annotated[Candidate | None, _UNWRITTEN] = None
    rewrites: Annotated[tuple[RewriteRecord, ...], _UNWRITTEN] = ()
    alignment: Mapping[str, Alignment] = field(default_factory=dict)
    edit: AcceptedEdit | None = None
    settings: tuple[SettingsRecord, ...] = ()
    changed: Mapping[str, SettingChange] = field(default_factory=dict)
    search_calls: int | None = None
    optimizer: str | None = None
    validation_ci: Annotated[Interval | None, _UNWRITTEN] = None


@dataclass(frozen=True, slots=True)
class SearchCost:
    """What a search cost, without baselines and test: calls made, their tokens in and out, and seconds.

    Equal searches take different times, so `seconds` are not compared, nor kept in a summary: read from one, they are
    not a number. `by_optimizer` has each one's part, where there are several.
    """

    calls: int
    tokens: int
    seconds: Annotated[float, _UNWRITTEN] = field(default=math.nan, compare=False)
    by_optimizer: Mapping[str, SearchCost] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallCounts:
    """Model calls of a run: made, served from the cache, and what evaluating everything anew would have made.

    `money` is what those made cost, in the currency of the models' prices; None where no prices are known. `empty`
    counts the replies without a text.
    """

    made: int
    cached: int
    without_reuse: int
    money: float | None = None
    empty: int = 0


def counted_money(spent: float) -> float | None:
    """Money as it is kept; sums in another order are the same money."""
    return round(spent, 6) or None


@dataclass(frozen=True, kw_only=True)
class RunFigures:
    """What a run came to, even one that a budget stopped, as its summary keeps it.

    Attributes:
        baseline, champion: scores by split, as far as they were measured.
        verdict … p_value: of the test conversations; None if the run stopped before the test; `delta_ci` also if there
            was only one.
        noise: as of the verdict.
        settings: name → setting of the champion that is not the run's own.
        prompts_alone: as of the verdict.
        search: what the search cost; None if it was interrupted or failed.
    """

    baseline: Mapping[SplitName, Score]
    champion: Mapping[SplitName, Score]
    verdict: VerdictName | None
    delta: float | None
    delta_ci: Interval | None
    p_value: float | None
    rounds: Annotated[tuple[RoundRecord, ...], _ALSO_ITERATIONS]
    calls: CallCounts
    noise: NoiseFloor | None = None
    settings: Mapping[str, SettingChange] = field(default_factory=dict)
    prompts_alone: Difference | None = None
    search: SearchCost | None = None


@dataclass(frozen=True, kw_only=True)
class LoopResult(RunFigures):
    """The result of a run, with what is not in its summary.

    Attributes:
        champion_candidate: the champion's prompts.
        power: of the test; None if the run stopped before it.
        stopped: why the search ended.
        tokens_per_question: `baseline` and `champion` → tokens in and out that a test question costs, the building of
            its memory included; empty if not measured.
    """

    champion_candidate: Candidate
    power: float | None
    stopped: Stopped
    tokens_per_question: Mapping[Literal["baseline", "champion"], float] = field(default_factory=dict)


def verdict_figures(verdict: Verdict | None) -> dict[str, Any]:
    """The fields of a `LoopResult` that are those of its verdict, by name; None each where the test was not reached."""
    return {field.name: getattr(verdict, field.name, None) for field in fields(Verdict)}


class Observer(Protocol):
    """Receives a run's progress, on the thread that runs it. An exception in an observer ends the run."""

    def baseline(self, split: SplitName, score: Score) -> None:
        """The baseline was scored on a split."""
        ...

    def blame(self, n: int, signals: Sequence[Signal]) -> None:
        """The failures of the current champion on the train split were attributed."""
        ...

    def round(self, record: RoundRecord) -> None:
        """A round ended."""
        ...

    def verdict(self, verdict: Verdict) -> None:
        """The champion was evaluated on the test conversations."""
        ...

    def progress(self, phase: str, done: int, total: int, failed: int = 0) -> None:
        """`done` of `total` conversations of a phase (`baseline train`) are evaluated, `failed` others could not be."""
        ...
