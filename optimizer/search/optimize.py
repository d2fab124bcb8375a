"""The steps around every optimizer: baselines, the search, the test of its champion, and the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from optimizer.evaluation.evaluator import Evaluator
from optimizer.evaluation.scores import Splits
from optimizer.proposers.rewrites import Means, ProposerFactory, open_proposers
from optimizer.proposers.sources import RewriteSources
from optimizer.search.optimizers import Optimizer
from optimizer.tuning.results import LoopResult, LoopSettings, Observer, SearchCost
from optimizer.tuning.stopped import Stopped
from optimizer.tuning.tuning import ChampionUnscoredError
from optimizer.tuning.tuning_run import TuningRun
from tracing.errors import BudgetExceededError, MemtuneError, PartSpentError
from tracing.systems.prompts import Candidate

if TYPE_CHECKING:
    from optimizer.evaluation.variants import Variants
    from optimizer.tuning.failures import Failures
    from tracing.llm.access import ModelAccess

_SEARCH_CALLS = "search.calls"

_EARLY = BudgetExceededError, ChampionUnscoredError
"""What ends a part of the run before it is done."""


def optimize(
    *,
    evaluator: Evaluator,
    splits: Splits,
    seed_candidate: Candidate,
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
    tuning = TuningRun(evaluator, splits, seed_candidate, settings, access, failures, sources, observer, variants)

    cost: SearchCost | None = None

    def search() -> Stopped:
        nonlocal cost
        if begin is not None:
            begin()
        tuning.baselines()
        budget = access.budget
        before, since = budget.spent, budget.seconds
        try:
            with tuning.searching(), budget.part(_SEARCH_CALLS, settings.calls):
                return Stopped.returned(optimizer(tuning))
        finally:
            spent = budget.spent - before
            cost = SearchCost(spent.calls, spent.tokens, budget.seconds - since, dict(tuning.costs))

    try:
        stopped = search()
    except _EARLY as error:
        stopped = _stopped_by(error)
    try:
        tuning.test()
    except _EARLY as error:
        stopped = _stopped_by(error)
    return replace(tuning.result(stopped), search=cost)


def _stopped_by(error: MemtuneError) -> Stopped:
    if isinstance(error, PartSpentError):
        return Stopped("search-calls", str(error).removeprefix(f"{_SEARCH_CALLS}: "))
    return Stopped("budget" if isinstance(error, BudgetExceededError) else "own", str(error))
