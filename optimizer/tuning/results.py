"""What an optimization run takes, reports along the way, and returns: plain data without the loop's behaviour.

Splits are named `train`, `validation` and `test` wherever they are written down (summary, metrics, report). What
`RunFigures` holds is written to a run's `summary.json` as it stands here: its fields are keys of that file.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from optimizer.evaluation.noise import NoiseFloor
from optimizer.evaluation.scores import Interval, Score, SplitName
from optimizer.evaluation.unusable_replies import UnusableReplies
from optimizer.gating.verdict import Difference, Verdict, VerdictName
from optimizer.proposers.text_limits import TextLimits
from optimizer.racing.study_storage import Studies
from optimizer.tuning.round import UNWRITTEN, Approve, RoundRecord, SettingChange
from optimizer.tuning.stopped import Stopped
from optimizer.tuning.tried import TriedCandidate
from tracing.systems.prompts import Candidate

if TYPE_CHECKING:
    from attribution.signals import Signal
    from attribution.survival.matching.matcher import MatcherFactory
    from optimizer.evaluation.evaluator import Evaluator
    from optimizer.objectives.objectives import ObjectiveFactory
    from optimizer.proposers.rewrites import Rewrite
    from tracing.llm.access import ModelAccess

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
        approve: if it says no, the champion stays. None approves everything.
        limits: what users ask of every text.
        tune: names of the prompts that may be rewritten; None for all.
        selector: how rounds choose the prompts that they rewrite.
        blame: whether it guides the search; otherwise every wrong answer counts against every prompt.
        local_objectives: whether texts are first compared on recorded inputs.
        objectives: prompt name → what makes its local objective, where a user chose it.
        matcher: sets up what decides for local objectives what a text carries; None for its words.
        studies: keep the Optuna studies of the joint choices.
        calls: model calls that the search may make, without baselines and test; None for any number.
        margin: how much lower the score may be where fewer tokens are sought; None where a better score is.
        open_ended: a search that goes on by rounds need not stop after so many, but when its budget or patience ends.
        made: number → whether it was the last, of the rounds that a resumed run had made: they are made as they were.
    """

    rounds: int = 3
    proposals: int = 4
    seed: int = 0
    hand: tuple[Rewrite, ...] = ()
    approve: Approve | None = None
    limits: TextLimits = field(default_factory=TextLimits)
    tune: Collection[str] | None = None
    selector: Selector = "blame"
    blame: bool = True
    local_objectives: bool = True
    objectives: Mapping[str, ObjectiveFactory] = field(default_factory=dict)
    matcher: MatcherFactory | None = None
    studies: Studies = field(default_factory=Studies)
    calls: int | None = None
    open_ended: bool = False
    made: Mapping[int, bool] = field(default_factory=dict)
    margin: float | None = None


@dataclass(frozen=True, slots=True)
class SearchCost:
    """What a search cost, without baselines and test: calls made, their tokens in and out, and seconds.

    Equal searches take different times, so `seconds` are not compared, nor kept in a summary: read from one, they are
    not a number. `by_optimizer` has each one's part, where there are several.
    """

    calls: int
    tokens: int
    seconds: Annotated[float, UNWRITTEN] = field(default=math.nan, compare=False)
    by_optimizer: Mapping[str, SearchCost] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallCounts:
    """Model calls of a run: made, served from the cache, and what evaluating everything anew would have made.

    Nothing is reused for those of proposers, judge and reruns. `money` is what those made cost, in the currency of the
    models' prices; None where no prices are known. `empty` counts the replies without a text; `unusable` and `replies`
    are as of `UnusableReplies`. `estimated` counts the calls made whose tokens the endpoint did not tell; `cut_prompts`
    says of which models prompts are cut.
    """

    made: int
    cached: int
    without_reuse: int
    money: float | None = None
    empty: int = 0
    unusable: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    replies: Mapping[str, int] = field(default_factory=dict)
    estimated: int = 0
    cut_prompts: tuple[str, ...] = ()

    @property
    def estimated_sentence(self) -> str | None:
        """Of how many calls tokens and money are estimated; None if the endpoints told them all."""
        if not self.estimated:
            return None
        return (
            f"tokens and money of {self.estimated:,} of {self.made:,} calls are estimated: the endpoint tells no usage"
        )

    @property
    def unusable_replies(self) -> UnusableReplies:
        """The replies that could not be used."""
        return UnusableReplies(self.unusable, self.replies)

    @classmethod
    def so_far(cls, access: ModelAccess, evaluator: Evaluator) -> CallCounts:
        """The calls that were made until now."""
        totals, evaluation = access.meter.totals(), evaluator.calls
        made, cached = int(totals["calls_made"]), int(totals["calls_cached"])
        outside = made + cached - evaluation.sent - evaluation.cached
        without_reuse, money = evaluation.without_reuse + outside, counted_money(totals["cost"])
        empty, estimated, cut = int(totals["empty"]), int(totals["estimated"]), access.meter.cut_prompts()
        unusable = UnusableReplies.of(access.meter)
        return cls(made, cached, without_reuse, money, empty, unusable.counts, unusable.replies, estimated, cut)


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
        prompts_alone, settings_alone: as of the verdict.
        search: what the search cost; None if it was interrupted or failed.
        margin, bound: as of the verdict.
        tokens_per_question: `baseline` and `champion` → tokens in and out that a test question costs, the building of
            its memory included; with changed settings also `prompts_alone` and `settings_alone`; empty if not measured.
        tried: what met whole conversations of the search, those that take the fewest tokens first.
    """

    baseline: Mapping[SplitName, Score]
    champion: Mapping[SplitName, Score]
    verdict: VerdictName | None
    delta: float | None
    delta_ci: Interval | None
    p_value: float | None
    rounds: tuple[RoundRecord, ...]
    calls: CallCounts
    noise: NoiseFloor | None = None
    settings: Mapping[str, SettingChange] = field(default_factory=dict)
    prompts_alone: Difference | None = None
    settings_alone: Difference | None = None
    search: SearchCost | None = None
    margin: float | None = None
    bound: float | None = None
    tokens_per_question: Mapping[str, float] = field(default_factory=dict)
    tried: tuple[TriedCandidate, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LoopResult(RunFigures):
    """The result of a run, with what is not in its summary.

    Attributes:
        champion_candidate: the champion's prompts.
        power: of the test; None if the run stopped before it.
        stopped: why the search ended.
    """

    champion_candidate: Candidate
    power: float | None
    stopped: Stopped


def verdict_figures(verdict: Verdict | None, margin: float | None) -> dict[str, Any]:
    """The fields of a `LoopResult` that are those of its verdict, by name.

    None each where the test was not reached, but for the `margin`, which the run has from its start.
    """
    names = {field.name for field in fields(Verdict)} - {"score", "tokens"}
    return {name: getattr(verdict, name, None) for name in names} | {"margin": margin}


class Observer(Protocol):
    """Receives a run's progress, on the thread that runs it. An exception in an observer ends the run."""

    def baseline(self, split: SplitName, score: Score) -> None:
        """The baseline was scored on a split."""

    def blame(self, n: int, signals: Sequence[Signal]) -> None:
        """The failures of the current champion on the train split were attributed."""

    def round(self, record: RoundRecord) -> None:
        """A round ended."""

    def verdict(self, verdict: Verdict) -> None:
        """The champion was evaluated on the test conversations."""

    def progress(self, phase: str, done: int, total: int, failed: int = 0) -> None:
        """`done` of `total` conversations of a phase (`baseline train`) are evaluated, `failed` others could not be."""
