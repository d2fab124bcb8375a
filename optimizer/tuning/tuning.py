"""A tuning in progress: what every optimizer works with, and what is the same for all optimizers."""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from attribution.signals import Signals, aggregate
from optimizer.evaluation.evaluator import Evaluator, Outcome, score_of
from optimizer.evaluation.scores import Score, SplitName, Splits
from optimizer.objectives.local_evaluation import LocalEvaluation
from optimizer.objectives.objectives import objectives_of
from optimizer.tuning.failures import blamed_on_all
from optimizer.tuning.fresh_replies import FreshReplies
from optimizer.tuning.reserve import TimeReserve, calls_with
from optimizer.tuning.results import LoopSettings, Observer, SearchCost
from optimizer.tuning.round import AcceptedEdit, Change, Ending, Round, RoundLog, SettingChange, accepted_edit
from optimizer.tuning.tried import Tried
from tracing.errors import BudgetExceededError, ContractError, RunError
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import Candidate, check_candidate

if TYPE_CHECKING:
    from attribution.cases import Attribution
    from optimizer.evaluation.evaluator import Progress
    from optimizer.evaluation.scores import Settings
    from optimizer.evaluation.variants import Variants
    from optimizer.proposers.sources import RewriteSources
    from optimizer.tuning.failures import Failures
    from tracing.llm.access import ModelAccess
    from tracing.llm.models import ChatModel
    from tracing.llm.threads import Threads
    from tracing.systems.prompts import PromptSpec
    from tracing.systems.protocol import OperationSpec

Champion = tuple["Candidate", "Settings"]
"""Texts, and the values of the settings that may be tuned."""

Learned = Literal["train", "validation"]
"""The splits that an optimizer sees. Test conversations are evaluated after it has ended."""


class ChampionUnscoredError(RunError):
    """The champion's prompts fail on a conversation. This ends the search or the test; the best so far is kept."""


class Tuning:
    """One search for better prompts of a system.

    An optimizer reads `prompts`, `champion`, `settings` and `outcomes`, measures candidates with `measure`, and makes
    the better one the champion with `crown`. The rest is up to it. It must let `BudgetExceededError` through from any
    method: the best so far is kept, and the test still follows.

    Attributes:
        prompts: name → specification of each prompt that may be rewritten.
        operations: of the system, in pipeline order.
        train, validation: the conversations to learn from and to compare on.
        baseline: the texts that the search started from.
        champion: the best texts so far.
        settings: how long and how widely to search.
        sources: of rewrites, as configured.
        author: the model that writes prompts.
        local: measures texts on recorded inputs.
        variants: the system under other settings; None if none may be tuned.
        champion_settings: the best values so far of the settings that may be tuned.

    Example:
        >>> def try_opening(tuning):
        ...     candidate = {name: f"Think first. {text}" for name, text in tuning.champion.items()}
        ...     outcomes = tuning.measure(candidate, tuning.validation, "with an opening")
        ...     before = sum(outcome.score for outcome in tuning.outcomes("validation"))
        ...     if sum(outcome.score for outcome in outcomes) > before:
        ...         tuning.crown(candidate)
        ...     return Stopped("own", "the opening was tried")
    """

    def __init__(
        self,
        evaluator: Evaluator,
        splits: Splits,
        baseline: Candidate,
        settings: LoopSettings,
        access: ModelAccess,
        failures: Failures,
        sources: RewriteSources,
        observer: Observer,
        variants: Variants | None = None,
    ) -> None:
        specs = evaluator.system.prompts
        self._specs = settings.limits.applied(specs, splits.train, access.keys)
        self.prompts: Mapping[str, PromptSpec] = {
            name: spec for name, spec in self._specs.items() if settings.tune is None or name in settings.tune
        }
        self.operations: Sequence[OperationSpec] = evaluator.system.operations
        self.train, self.validation, self._splits = splits.train, splits.validation, splits
        self.baseline, self.champion = dict(baseline), dict(baseline)
        self.settings, self.sources = settings, sources
        self.author: ChatModel = access.proposer
        self.variants = variants
        self._evaluator = evaluator
        self._own_settings: Settings = variants.own if variants is not None else {}
        self.champion_settings = self._own_settings
        self._access, self._failures, self._observer = access, failures, observer
        self.local = self._local()
        # A model that samples is asked everything again before a crowning, and by the baseline after the test.
        self._fresh = FreshReplies()
        self._reserve = TimeReserve(access.budget, access.meter, self._tested(), access.concurrency)
        self._outcomes: dict[SplitName, tuple[Champion, list[Outcome]]] = {}
        self._baseline_scores: dict[SplitName, Score] = {}
        self._scores: dict[SplitName, Score] = {}
        self._round_log = RoundLog(access.meter, observer.round)
        self._tried = Tried(baseline, self._own_settings, splits)
        self.baseline_validation: list[Outcome] = []
        """The baseline's outcomes on the validation conversations."""
        self.costs: dict[str, SearchCost] = {}
        """What each of several optimizers has spent."""
        self._whole: Tuning | None = None
        self._name: str | None = None
        self._after = 0

    @property
    def seed(self) -> Candidate:
        """The baseline, under the name that optimizers know it by from before."""
        return self.baseline

    def beside(self, name: str) -> Tuning:
        """A search of its own for one of several optimizers, which begins with the champion and crowns its own.

        Its rounds follow those before it and are recorded under its name, with the champion of this tuning. Nobody
        is asked to approve what it finds.
        """
        search = copy.copy(self)
        search.champion, search.settings = dict(self.champion), replace(self.settings, approve=None)
        search._outcomes, search._scores = dict(self._outcomes), dict(self._scores)
        search._whole, search._name, search._after = self, name, self.last_round
        return search

    @property
    def last_round(self) -> int:
        """Number of the last round; 0 before the first."""
        return self._round_log.last

    @property
    def next_round(self) -> int:
        """Number of this search's next round."""
        return self.last_round - self._after + 1

    @property
    def limited(self) -> bool:
        """Whether a budget ends the search, if nothing else does."""
        limits = self._access.budget.limits
        allowed = limits.calls, limits.tokens, limits.money, limits.seconds, self.settings.calls
        return any(limit is not None for limit in allowed)

    @contextmanager
    def share(self, name: str, fraction: float) -> Iterator[None]:
        """Allow one of several optimizers this fraction of the budget that is left, and note what it spends.

        Raises:
            ShareSpentError: from all that spends.
        """
        budget = self._access.budget
        before, since = budget.spent, budget.seconds
        try:
            with budget.share(fraction):
                yield
        finally:
            spent = budget.spent - before
            self.costs[name] = SearchCost(spent.calls, spent.tokens, budget.seconds - since)

    @property
    def threads(self) -> Threads:
        """Threads that keep the models busy, for requests that do not wait for each other."""
        return self._access.threads

    def seed_of(self, n: int) -> int:
        """The seed of the random choices of round `n`."""
        return self.settings.seed * 1000 + n

    def outcomes(self, split: Learned) -> list[Outcome]:
        """The champion's outcomes on a split; evaluated if not done before.

        Raises:
            BudgetExceededError: a hard budget does not allow it.
        """
        latest = self._outcomes.get(split)
        if latest is not None and latest[0] == (self.champion, self.champion_settings):
            return latest[1]
        self.allow(len(self._splits.named()[split]))
        return self._score(split, self.champion, self._scores)

    def measure(
        self,
        candidate: Candidate,
        conversations: Sequence[Conversation],
        phase: str,
        *,
        before: Sequence[Outcome] = (),
        total: int | None = None,
        settings: Settings | None = None,
    ) -> list[Outcome]:
        """The outcomes of a candidate on conversations, in order; a tainted one has no score.

        Args:
            candidate: a text for each prompt.
            conversations: of train and validation.
            phase: what it is for, as shown in a progress bar.
            before, total: outcomes the phase already has, and how many it will have, if it takes several calls.
            settings: of the system, where they are to differ from the champion's.

        Raises:
            BudgetExceededError: a hard budget does not allow it.
            ContractError: a text breaks its prompt's contract, or is another one of a prompt that is not tuned.
        """
        self._check(candidate)
        progress = self._evaluation_progress(phase, before, total)
        evaluator = self._under(settings)
        outcomes = self._reserve.timed(lambda: evaluator.evaluate(candidate, conversations, progress=progress))
        self._tried.note(candidate, {**self.champion_settings, **(settings or {})}, outcomes)
        return outcomes

    def allow(self, conversations: int) -> None:
        """Make sure that this many conversations can be evaluated and the test still be finished in time.

        Raises:
            BudgetExceededError: the time that is left is needed for the test.
        """
        self._reserve.allow(conversations)

    def calls_with(self, prompts: Collection[str]) -> float:
        """How many calls a conversation takes with other texts of these prompts, by name, on average.

        What is before them in the pipeline is not executed again.
        """
        # Fresh replies are asked for everything.
        cached = self._access.caches and not self._access.task.samples
        return calls_with(self.outcomes("train"), {self.prompts[name].operation for name in prompts}, cached=cached)

    def step(self, phase: str, done: int, total: int, failed: int = 0) -> None:
        """Report that `done` of `total` steps of a phase are done, and that `failed` others could not be."""
        # Of several optimizers, each has its name before its phases.
        self._observer.progress(phase if self._name is None else f"{self._name}, {phase}", done, total, failed)

    def progress(self, phase: str, outcomes: Sequence[Outcome], total: int) -> None:
        """Report that a phase of `total` conversations ended with these outcomes; what was skipped counts as done."""
        failed = _tainted(outcomes)
        self.step(phase, total - failed, total, failed)

    def attribute(self, n: int) -> tuple[list[Attribution], Signals]:
        """Whose fault the champion's wrong answers on train are, by the run's method; `n` is the round it is for.

        Without attribution each counts against every prompt alike.

        Raises:
            BudgetExceededError: the method asks a model, and a hard budget does not allow it.
        """
        train = self.outcomes("train")
        if self.settings.blame:
            attributions = [attribution for outcome in train for attribution in self._failures.of(outcome)]
        else:
            attributions = blamed_on_all(train, self.operations)
        total = sum(len(outcome.cases) for outcome in train)
        signals = aggregate(attributions, self.operations, total_cases=total, seed=self.settings.seed)
        self._observer.blame(self._after + n, signals.signals)
        return attributions, signals

    def known_attributions(self, outcomes: Iterable[Outcome]) -> list[Attribution]:
        """Whose fault wrong answers are, as far as no model has to be asked for it; nobody's without blame."""
        if not self.settings.blame:
            return []
        known = self._failures.known_attributions
        return [attribution for outcome in outcomes for attribution in known(outcome).values()]

    def approves(self, change: Change) -> bool:
        """Whether a change may make another champion; asks the user if they wish to be asked."""
        approve = self.settings.approve
        return approve is None or approve(change, change.replaced(self.champion, self.champion_settings))

    def crown(self, candidate: Candidate, settings: Settings | None = None, *, confirm: bool = True) -> bool:
        """Make a candidate the champion. Its validation is evaluated, if that was not done before, and as far as the
        budget goes.

        With `settings`, where they differ from the champion's, these become the champion's too.

        If the task model samples, candidate and champion are evaluated there again, with fresh replies, and the
        candidate must be ahead again. A deterministic model would reply the same. Without `confirm`, for an optimizer
        that compares nothing, none of this is asked.

        Returns:
            Whether it became the champion.

        Raises:
            ContractError: it lacks a prompt, a text breaks a contract, or is another one of a prompt that is not
                tuned.
            ChampionUnscoredError: it cannot be scored on the validation conversations.
            BudgetExceededError: a hard budget does not allow it.
        """
        self._check(candidate)
        evaluator, crowned = self._under(settings), {**self.champion_settings, **(settings or {})}
        self._round_log.crowns()
        outcomes = evaluator.known_outcomes(candidate, self.validation)
        if len(outcomes) < len(self.validation):
            try:
                outcomes = self.measure(candidate, self.validation, "champion validation", settings=settings)
            except BudgetExceededError:
                # It is the champion by what it has met, and is scored on that.
                if not outcomes or self._access.task.samples:
                    raise
        tainted = next((outcome for outcome in outcomes if outcome.tainted is not None), None)
        if tainted is not None:
            raise ChampionUnscoredError(
                f"{tainted.conversation.id}: a candidate that cannot be scored became the champion"
            )
        if confirm and self._access.task.samples and (candidate, crowned) != (self.champion, self.champion_settings):
            self.allow(2 * len(self.validation))
            again = self._evaluation_progress("fresh replies before crowning")
            sides = (self._under(), self.champion), (evaluator, candidate)
            if not self._fresh.confirm(*sides, self.validation, again, self.settings.margin or 0.0):
                return False
            self._round_log.crowns()
        self.champion = dict(candidate)
        if crowned != self.champion_settings:
            self.champion_settings = crowned
            self._reserve.conversations = self._tested()
            self.local = self._local()
        self._outcomes["validation"] = (self.champion, self.champion_settings), outcomes
        self._scores["validation"] = score_of(outcomes)
        # Set again only when another round scores the new champion.
        self._scores.pop("train", None)
        return True

    @contextmanager
    def round(self, n: int) -> Iterator[Round]:
        """A round, recorded and reported at its end; its notes need not be complete."""
        # What one of several optimizers found is not the run's champion before it has won their race.
        whole = self._whole or self
        champion = self.champion, self.champion_settings

        def ending() -> Ending:
            changed = whole is self and (whole.champion, whole.champion_settings) != champion
            edit = self._edit_since(*champion) if changed else None
            asked_again = {} if self.local.asking is None else dict(self.local.asking.about)
            return Ending(dict(whole.champion), whole._scores["validation"], whole._changed(), edit, asked_again)

        with self._round_log.recorded(n, ending, after=self._after, optimizer=self._name) as noted:
            yield noted

    def _evaluation_progress(self, phase: str, before: Sequence[Outcome] = (), total: int | None = None) -> Progress:
        """What an evaluator reports to; `before` and `total` as of `measure`."""
        failed_before = _tainted(before)
        done_before = len(before) - failed_before

        def progress(done: int, conversations: int, failed: int) -> None:
            self.step(phase, done_before + done, total or conversations, failed_before + failed)

        return progress

    def _check(self, candidate: Candidate) -> None:
        check_candidate(self._specs, candidate)
        for name in self._specs.keys() - self.prompts.keys():
            if candidate[name] != self.baseline[name]:
                raise ContractError(f"{name}: is not among the prompts that may be rewritten")

    def _edit_since(self, champion: Candidate, settings: Settings) -> AcceptedEdit:
        learned = (*self.train, *self.validation)
        before = self._under(settings).known_outcomes(champion, learned)
        after = self._under().known_outcomes(self.champion, learned)
        return accepted_edit(champion, self.champion, before, after)

    def _under(self, settings: Settings | None = None) -> Evaluator:
        """The evaluator under the champion's settings, or under others where `settings` says so."""
        if self.variants is None:
            return self._evaluator
        return self.variants.under({**self.champion_settings, **(settings or {})})

    def _changed(self) -> dict[str, SettingChange]:
        """Settings of the champion that are not the run's own."""
        now = self.champion_settings
        return {name: SettingChange(own, now[name]) for name, own in self._own_settings.items() if now[name] != own}

    def _tested(self) -> int:
        """Evaluations of test conversations by two: half again for the noise, and for prompts and settings alone."""
        apart = bool(self._changed() and self.prompts)
        return math.ceil(len(self._splits.test) * (1 + self._access.task.samples / 2 + apart))

    def _local(self) -> LocalEvaluation:
        evaluator = self._under()
        all_objectives = objectives_of(evaluator, self.settings.objectives, self.settings.matcher)
        objectives = {name: objective for name, objective in all_objectives.items() if name in self.prompts}
        return LocalEvaluation(evaluator.system, self._specs, objectives, self._access)

    def _score(self, split: SplitName, candidate: Candidate, into: dict[SplitName, Score]) -> list[Outcome]:
        """Outcomes on a split that must be scored; the score goes into `into`; a baseline's is also reported."""
        whose = "baseline" if into is self._baseline_scores else "champion"
        own = self._own_settings if into is self._baseline_scores else None
        phase = f"{whose} {split}"
        outcomes = self.measure(candidate, self._splits.named()[split], phase, settings=own)
        for outcome in outcomes:
            if outcome.tainted is not None:
                raise (RunError if into is self._baseline_scores else ChampionUnscoredError)(
                    f"{outcome.conversation.id}: cannot be scored with the {whose}'s prompts: {outcome.tainted}; "
                    "fix the cause and start the run again (finished calls are cached)"
                )
        into[split] = score_of(outcomes)
        if into is self._baseline_scores:
            self._observer.baseline(split, into[split])
            if self.champion != self.baseline or self._changed():
                return outcomes
            self._scores[split] = into[split]
        self._outcomes[split] = (self.champion, self.champion_settings), outcomes
        return outcomes


def _tainted(outcomes: Sequence[Outcome]) -> int:
    """How many conversations are tainted."""
    return sum(outcome.tainted is not None for outcome in outcomes)
