"""A tuning from its baselines to the test of its champion, and its result: what surrounds every optimizer's search."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from attribution.judging.words import refused_for_form
from optimizer.gating.verdict import NO_CHANGE, Verdict, verdict_of
from optimizer.tuning.call_counts import call_counts
from optimizer.tuning.results import LoopResult, verdict_figures
from optimizer.tuning.tuning import Tuning
from tracing.errors import BudgetExceededError

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Outcome
    from optimizer.evaluation.noise import NoiseFloor
    from optimizer.tuning.stopped import Stopped

_log = logging.getLogger(__name__)


class TuningRun(Tuning):
    """A tuning as a run has it; optimizers see what a `Tuning` has."""

    _verdict: Verdict | None = None
    _tokens: Mapping[Literal["baseline", "champion"], float] | None = None
    _searched = False

    def baselines(self) -> None:
        """Score the baseline on train and validation.

        Raises:
            RunError: the baseline cannot be scored.
            BudgetExceededError: a hard budget does not allow it.
        """
        self._score("train", self.baseline, self._baseline_scores)
        train, evaluator = self._baseline_scores["train"], self._systems.evaluator
        form_warning = refused_for_form(evaluator.metric, train.score, train.contains)
        if form_warning is not None and evaluator.model_judge is None:
            _log.warning("with the baseline prompts %s", form_warning)
        self.baseline_validation = self._score("validation", self.baseline, self._baseline_scores)
        self._round_log.search_begins()

    @contextmanager
    def searching(self) -> Iterator[None]:
        """Inside, calls are refused that would take what the test needs of a budget.

        Raises:
            BudgetExceededError: from what makes calls.
        """
        self._searched = True
        with self._access.budget.keeping(self._reserve.for_test):
            yield

    def test(self) -> None:
        """Evaluate baseline and champion on the test conversations, once.

        The champion has its settings and the baseline those of the run. If they differ, the champion's prompts are also
        evaluated under the run's own, so that what prompts gain is told apart.

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
            spent = _tokens_a_question(base)
            self._tokens = {"baseline": spent}
            if self.champion == self.baseline and not self._changed():
                self._tokens = {"baseline": spent, "champion": spent}
                self._verdict = NO_CHANGE
            else:
                best = self._score("test", self.champion, self._scores)
                self._tokens = {"baseline": spent, "champion": _tokens_a_question(best)}
                self._verdict = verdict_of(base, best, seed=self.settings.seed)
        try:
            # A budget that is spent by now, or an interruption, leaves the verdict as it is.
            with suppress(BudgetExceededError):
                self._verdict = replace(self._verdict, prompts_alone=self._prompts_alone(base))
            with suppress(BudgetExceededError):
                self._verdict = replace(self._verdict, noise=self._noise(base))
        finally:
            self._observer.verdict(self._verdict)

    def result(self, stopped: Stopped) -> LoopResult:
        """The result so far; `stopped` says why it ended."""
        return LoopResult(
            baseline=self._baseline_scores,
            champion=self._scores,
            champion_candidate=self.champion,
            rounds=tuple(self._round_log.records),
            stopped=stopped,
            calls=call_counts(self._access, self._systems.evaluator),
            tokens_per_question=self._tokens or {},
            settings=self._changed(),
            **verdict_figures(self._verdict),
        )

    def _noise(self, base: Sequence[Outcome]) -> NoiseFloor | None:
        """How much fresh replies to the baseline differ from their outcomes; None if the model samples none."""
        if self._fresh is None:
            return None
        baseline = self._systems.evaluator, self.baseline
        return self._fresh.noise(baseline, base, self._phases.evaluation("noise floor"))

    def _prompts_alone(self, base: Sequence[Outcome]) -> Verdict | None:
        """The champion's prompts under the run's own settings against the baseline's outcomes there."""
        if not self._changed():
            return None
        if self.champion == self.baseline:
            return NO_CHANGE
        test = self._splits.test
        alone = self.measure(self.champion, test, "champion's prompts alone, test", settings=self._systems.own)
        if any(outcome.tainted is not None for outcome in alone):
            return None
        return verdict_of(base, alone, seed=self.settings.seed)


def _tokens_a_question(outcomes: Sequence[Outcome]) -> float:
    return sum(outcome.tokens for outcome in outcomes) / sum(len(outcome.cases) for outcome in outcomes)
