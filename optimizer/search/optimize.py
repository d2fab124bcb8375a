"""The steps around every optimizer: baselines, the search, the test of its champion, and the result."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from attribution.judging.words import refused_for_form
from optimizer.evaluation.evaluator import Evaluator, tokens_a_question
from optimizer.evaluation.scores import Splits
from optimizer.gating.verdict import NO_CHANGE, Difference, Verdict, cheaper_of, verdict_of
from optimizer.proposers.rewrites import Means, ProposerFactory, open_proposers
from optimizer.proposers.sources import RewriteSources
from optimizer.search.optimizers import Optimizer
from optimizer.tuning.results import CallCounts, LoopResult, LoopSettings, Observer, SearchCost, verdict_figures
from optimizer.tuning.stopped import Stopped
from optimizer.tuning.tuning import ChampionUnscoredError, Tuning
from tracing.errors import BudgetExceededError, MemtuneError, PartSpentError
from tracing.systems.prompts import Candidate

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Outcome
    from optimizer.evaluation.noise import NoiseFloor
    from optimizer.evaluation.scores import Settings
    from optimizer.evaluation.variants import Variants
    from optimizer.tuning.failures import Failures
    from tracing.llm.access import ModelAccess

_log = logging.getLogger(__name__)

_SEARCH_CALLS = "search.calls"

_EARLY = BudgetExceededError, ChampionUnscoredError
"""What ends a part of the run before it is done."""


def optimize(
    *,
    evaluator: Evaluator,
    splits: Splits,
    baseline: Candidate,
    settings: LoopSettings,
    access: ModelAccess,
    failures: Failures,
    observer: Observer,
    optimizer: Optimizer,
    proposers: Sequence[ProposerFactory] | None = None,
    variants: Variants | None = None,
    begin: Callable[[], None] | None = None,
) -> LoopResult:
    """Tune the prompts of a system on the train conversations, compare on validation, and test the champion once.

    A spent budget ends the search cleanly with the best so far, and so does a champion that fails on a conversation.
    Of a budget, as much as the test will take is reserved; a test under way may end after a time budget.
    `settings.calls` ends the search alone.

    Args:
        optimizer: searches.
        proposers: write the rewrites that an optimizer may take from `Tuning.sources`; the built-in ones by default.
        variants: the system under other settings, which the local search may tune too; None for its own alone.
        begin: called first, within the budgets, such as to calibrate a judge.

    Raises:
        RunError: the baseline cannot be scored because calls fail or are cut short; or the optimizer fails.
        ContractError: the baseline breaks a contract.
    """
    means = Means(access.proposer, access.proposer is not access.task, evaluator, splits.train)
    instances = [factory(means) for factory in (proposers if proposers is not None else open_proposers())]
    sources = RewriteSources(instances, settings.hand, own_author=means.own_author, progress=observer.progress)
    run = _TuningRun(evaluator, splits, baseline, settings, access, failures, sources, observer, variants)
    try:
        if begin is not None:
            begin()
        run.baselines()
        stopped = run.search(optimizer)
    except _EARLY as error:
        stopped = _stopped_by(error)
    try:
        run.test()
    except _EARLY as error:
        stopped = _stopped_by(error)
    return run.result(stopped)


class _TuningRun(Tuning):
    """A tuning from its baselines to the test of its champion; optimizers see what a `Tuning` has."""

    _verdict: Verdict | None = None
    _tokens: Mapping[str, float] = MappingProxyType({})
    _searched = False
    _cost: SearchCost | None = None

    def baselines(self) -> None:
        """Score the baseline on train and validation.

        Raises:
            RunError: the baseline cannot be scored.
            BudgetExceededError: a hard budget does not allow it.
        """
        self._score("train", self.baseline, self._baseline_scores)
        train, evaluator = self._baseline_scores["train"], self._evaluator
        form_warning = refused_for_form(evaluator.metric, train.score, train.contains)
        if form_warning is not None and evaluator.model_judge is None:
            _log.warning("with the baseline prompts %s", form_warning)
        self._tell_unused()
        self.baseline_validation = self._score("validation", self.baseline, self._baseline_scores)
        self._round_log.search_begins()

    def _tell_unused(self) -> None:
        """Warn of prompts that the baseline was recorded without: nothing can be learned of them."""
        graphs = [outcome.graph for outcome in self.outcomes("train") if outcome.tainted is None]
        recorded = {operation.name for graph in graphs for operation in graph.operations.values()}
        used = {spec.prompt for spec in self.operations if spec.name in recorded}
        for name in self.prompts if graphs else ():
            if name not in used:
                _log.warning(
                    "the prompt %s was used in none of %d train conversations, so nothing is learned about it: check "
                    "that the system sends it, and that it is known by the text that is sent",
                    name,
                    len(graphs),
                )

    def _tell_unmet(self) -> None:
        """Warn of texts by hand that the search tried on nothing."""
        met = {(rewrite.prompt, rewrite.text) for record in self._round_log.records for rewrite in record.rewrites}
        unmet = [rewrite.reason for rewrite in self.settings.hand if (rewrite.prompt, rewrite.text) not in met]
        if unmet:
            _log.warning("the search ended before these were tried: %s", "; ".join(unmet))

    def search(self, optimizer: Optimizer) -> Stopped:
        """Let an optimizer search; calls are refused that would take what the test needs of a budget.

        Raises:
            BudgetExceededError: from what makes calls.
        """
        self._searched = True
        budget = self._access.budget
        before, since = budget.spent, budget.seconds
        try:
            with budget.keeping(self._reserve.for_test), budget.part(_SEARCH_CALLS, self.settings.calls):
                return Stopped.returned(optimizer(self))
        finally:
            self._tell_unmet()
            spent = budget.spent - before
            self._cost = SearchCost(spent.calls, spent.tokens, budget.seconds - since, dict(self.costs))

    def test(self) -> None:
        """Evaluate baseline and champion on the test conversations, once.

        The champion has its settings and the baseline those of the run. If they differ, the champion's prompts are also
        evaluated under the run's own, and the baseline's under the champion's, so that their gains are told apart.

        Once there was a search, the time budget does not end the test: a machine that slows down would leave a champion
        without a verdict. It ends what is told beside the verdict.

        Raises:
            RunError: their prompts fail on one.
            BudgetExceededError: a hard budget does not allow it.
        """
        budget = self._access.budget
        remaining, needed = budget.remaining_time()[0], self._reserve.for_test().seconds
        if self._searched and remaining is not None and remaining < needed:
            _log.warning(
                "the test needs about %.1f minutes and %.1f are left of the budget: it goes on until its verdict",
                needed / 60,
                remaining / 60,
            )
        with budget.untimed() if self._searched else nullcontext():
            base = self._score("test", self.baseline, self._baseline_scores)
            spent = tokens_a_question(base)
            self._tokens = {"baseline": spent}
            if self.champion == self.baseline and not self._changed():
                self._tokens = {"baseline": spent, "champion": spent}
                self._verdict = replace(NO_CHANGE, margin=self.settings.margin)
            else:
                best = self._score("test", self.champion, self._scores)
                self._tokens = {"baseline": spent, "champion": tokens_a_question(best)}
                self._verdict = self._verdict_on(base, best)
        try:
            # A budget that is spent by now, or an interruption, leaves the verdict as it is.
            with suppress(BudgetExceededError):
                self._verdict = replace(self._verdict, prompts_alone=self._prompts_alone(base))
            with suppress(BudgetExceededError):
                self._verdict = replace(self._verdict, settings_alone=self._settings_alone(base))
            with suppress(BudgetExceededError):
                self._verdict = replace(self._verdict, noise=self._noise(base))
        finally:
            self._observer.verdict(replace(self._verdict, score=self._scores["test"], tokens=self._tokens))

    def result(self, stopped: Stopped) -> LoopResult:
        """The result so far; `stopped` says why it ended."""
        return LoopResult(
            baseline=self._baseline_scores,
            champion=self._scores,
            champion_candidate=self.champion,
            rounds=tuple(self._round_log.records),
            stopped=stopped,
            calls=CallCounts.so_far(self._access, self._evaluator),
            tokens_per_question=dict(self._tokens),
            tried=self._tried.candidates(self.champion, self.champion_settings),
            settings=self._changed(),
            search=self._cost,
            **verdict_figures(self._verdict, self.settings.margin),
        )

    def _noise(self, base: Sequence[Outcome]) -> NoiseFloor | None:
        """How much fresh replies to the baseline differ from their outcomes; None if the model samples none."""
        if not self._access.task.samples:
            return None
        baseline = self._evaluator, self.baseline
        return self._fresh.noise(baseline, base, self._evaluation_progress("noise floor"))

    def _prompts_alone(self, base: Sequence[Outcome]) -> Verdict | None:
        """The champion's prompts under the run's own settings against the baseline's outcomes there."""
        if not self._changed():
            return None
        if self.champion == self.baseline:
            self._tokens = {**self._tokens, "prompts_alone": self._tokens["baseline"]}
            return NO_CHANGE
        return self._alone(base, self.champion, self._own_settings, "prompts")

    def _settings_alone(self, base: Sequence[Outcome]) -> Difference | None:
        """The baseline's prompts under the champion's settings against their outcomes under the run's own."""
        if not self._changed() or self._verdict is None:
            return None
        if self.champion == self.baseline:
            verdict = self._verdict
            self._tokens = {**self._tokens, "settings_alone": self._tokens["champion"]}
            return Difference(verdict.verdict, verdict.delta, verdict.delta_ci, verdict.p_value)
        return self._alone(base, self.baseline, self.champion_settings, "settings")

    def _alone(self, base: Sequence[Outcome], candidate: Candidate, settings: Settings, whose: str) -> Verdict | None:
        alone = self.measure(candidate, self._splits.test, f"champion's {whose} alone, test", settings=settings)
        if any(outcome.tainted is not None for outcome in alone):
            return None
        self._tokens = {**self._tokens, f"{whose}_alone": tokens_a_question(alone)}
        return self._verdict_on(base, alone)

    def _verdict_on(self, base: Sequence[Outcome], other: Sequence[Outcome]) -> Verdict:
        """The verdict on other outcomes than the baseline's, by what is sought."""
        margin, seed = self.settings.margin, self.settings.seed
        return verdict_of(base, other, seed=seed) if margin is None else cheaper_of(base, other, margin, seed=seed)


def _stopped_by(error: MemtuneError) -> Stopped:
    if isinstance(error, PartSpentError):
        return Stopped("search-calls", str(error).removeprefix(f"{_SEARCH_CALLS}: "))
    return Stopped("budget" if isinstance(error, BudgetExceededError) else "own", str(error))
