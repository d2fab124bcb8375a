"""Several optimizers in one search: each finds its own, one race decides, and costs and origins are told apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_server import ScriptedServer
from scripted_world import WeakModel, memory, world

from attribution.methods import survival
from experiments.systems.fact_memory import FactMemory
from optimizer.evaluation.evaluator import Evaluator
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import Optimizer, open_optimizer
from optimizer.search.side_by_side import SideBySide
from optimizer.tuning.failures import Failures
from optimizer.tuning.results import LoopResult, LoopSettings
from optimizer.tuning.round import RoundRecord
from optimizer.tuning.tuning import Tuning
from tracing.errors import BudgetExceededError, ShareSpentError
from tracing.llm.access import ModelAccess
from tracing.llm.accounting.budget import Budget, Holdback, Spending
from tracing.llm.settings import Limits

BASELINE = {name: spec.text for name, spec in FactMemory.prompts.items()}
CURE = WeakModel("answer").cures[0]


def trying(prompt: str, *lines: str, crowns: bool = True, tries: int = 1) -> Optimizer:
    """Tries texts of a prompt on validation, `tries` times each in other words, and crowns the best one."""

    def search(tuning: Tuning, /) -> str:
        with tuning.round(1):
            best = sum(each.score for each in tuning.outcomes("validation"))
            for line in (f"{line}{' ' * n}" for line in lines for n in range(tries)):
                candidate = {**tuning.champion, prompt: f"{line}\n{tuning.baseline[prompt]}"}
                found = sum(each.score for each in tuning.measure(candidate, tuning.validation, "a try"))
                if crowns and found > best:
                    best = found
                    tuning.crown(candidate)
        return "all tried"

    return search


class Notes:
    """Keeps the records."""

    def __init__(self) -> None:
        self.records: list[RoundRecord] = []
        self.phases: list[str] = []

    def round(self, record: RoundRecord) -> None:
        self.records.append(record)

    def progress(self, phase: str, *told: int) -> None:
        self.phases.append(phase)

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *told: None


Run = Callable[..., tuple[LoopResult, Notes]]


@pytest.fixture
def run(scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], tmp_path: Path) -> Run:
    def made(
        searches: dict[str, Optimizer], *, limits: Limits | None = None, cache: bool = True, **settings: Any
    ) -> tuple[LoopResult, Notes]:
        scripted_server.script = WeakModel("answer")
        access, system, notes = open_access(limits, cache=cache, retries=0, concurrency=1), memory(), Notes()
        folder = tmp_path / f"memories{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        result = optimize(
            evaluator=Evaluator(system, access, "short_contains", folder),
            splits=world(train=3, validation=4, test=6),
            baseline=BASELINE,
            settings=LoopSettings(rounds=1, **settings),
            access=access,
            failures=Failures(survival, access, system.operations),
            observer=notes,  # type: ignore[arg-type]
            optimizer=SideBySide(searches),
        )
        return result, notes

    return made


def test_the_best_of_each_race_at_the_end_and_costs_and_origins_are_told_apart(
    run: Run, scripted_server: ScriptedServer
) -> None:
    searches = {
        "useless": trying("answer", "Be of good cheer."),
        "other": trying("extract", "Mind the weather."),
        "good": trying("answer", CURE),
    }
    result, notes = run(searches)
    assert list(result.rounds) == notes.records
    assert [(each.n, each.optimizer, each.accepted) for each in result.rounds] == [
        (1, "useless", False),
        (2, "other", False),
        (3, "good", False),
        (4, None, True),
    ]
    # Before the race nothing is the run's champion.
    assert [each.champion == BASELINE for each in result.rounds] == [True, True, True, False]
    assert result.rounds[2].validation_score == 0.5
    (kept,) = result.rounds[3].rewrites
    assert (kept.prompt, kept.source, kept.text) == ("answer", "good", result.champion_candidate["answer"])
    assert kept.gate is not None
    assert str(kept.gate).startswith("accepted")
    assert str(result.stopped) == "useless: all tried; other: all tried; good: all tried"
    assert (result.verdict, result.delta) == ("improved", 0.5)
    assert result.search is not None
    costs = result.search.by_optimizer
    assert set(costs) == set(searches)
    # The race asked nothing again.
    assert sum(each.calls for each in costs.values()) == result.search.calls
    assert "good, a try" in notes.phases
    before, (again, _) = scripted_server.asked, run(searches)
    assert scripted_server.asked == before
    assert again.champion_candidate == result.champion_candidate
    assert [each.rewrites for each in again.rounds] == [each.rewrites for each in result.rounds]


def test_texts_of_several_optimizers_meet_each_other_in_the_race(run: Run) -> None:
    """The one is right on its own and the other is none the worse for it."""

    def crowned(tuning: Tuning, /) -> str:
        with tuning.round(1):
            tuning.crown({**tuning.champion, "extract": f"Mind the weather.\n{BASELINE['extract']}"})
        return "done"

    result, _ = run({"crowned": crowned, "good": trying("answer", CURE)})
    raced = {(each.prompt, each.source) for each in result.rounds[-1].rewrites}
    assert raced == {("extract", "crowned"), ("answer", "good")}
    assert any("crowned and good together: " in str(each.gate or "") for each in result.rounds[-1].rewrites)


def test_where_nobody_finds_anything_there_is_no_race(run: Run) -> None:
    result, _ = run({"one": trying("answer", "Be merry."), "two": trying("answer", "Be glad.", crowns=False)})
    assert [each.optimizer for each in result.rounds] == ["one", "two"]
    assert (result.verdict, result.champion_candidate) == ("inconclusive", BASELINE)


def test_each_gets_its_share_of_the_calls_and_one_that_spends_it_does_not_end_the_others(run: Run) -> None:
    greedy = trying("answer", "Be merry.", tries=50)
    result, _ = run({"greedy": greedy, "good": trying("answer", CURE)}, cache=False, calls=60)
    assert result.search is not None
    assert result.search.by_optimizer["greedy"].calls <= 30
    assert result.rounds[-1].accepted
    assert str(result.stopped) == "greedy: its share of 30 calls is spent; good: all tried"
    assert result.verdict == "improved"


@pytest.mark.parametrize("calls", range(20, 44, 4))
def test_a_local_search_that_spends_its_share_ends_no_other(run: Run, calls: int) -> None:
    """Wherever it is when its share ends: among recorded inputs or whole conversations."""
    searches = {"local": open_optimizer("local-search"), "good": trying("answer", CURE)}
    result, _ = run(searches, cache=False, calls=2 * calls)
    assert result.search is not None
    assert set(result.search.by_optimizer) == set(searches)
    assert "; good: " in str(result.stopped)


def test_a_budget_that_is_spent_ends_the_search_and_what_was_found_until_then_still_races(run: Run) -> None:
    greedy = trying("answer", "Be merry.", tries=50)
    result, _ = run({"good": trying("answer", CURE), "greedy": greedy}, cache=False, calls=60)
    assert result.search is not None
    assert result.search.calls <= 60
    assert result.rounds[-1].accepted
    assert CURE in result.champion_candidate["answer"]


def test_whoever_approves_is_asked_once_and_what_they_decline_stays_out(run: Run) -> None:
    asked: list[str] = []

    def approve(rewrite: Any, before: str) -> bool:
        asked.append(rewrite.source)
        return False

    result, _ = run({"good": trying("answer", CURE)}, approve=approve)
    assert asked == ["good"]
    assert result.champion_candidate == BASELINE
    assert "declined by hand, though accepted" in str(result.rounds[-1].rewrites[0].gate or "")


def spent(budget: Budget, calls: int) -> None:
    for _ in range(calls):
        budget.reserve(Spending(calls=1, tokens=10))
        budget.settle(Spending(calls=1, tokens=10), Spending(calls=1, tokens=10))


def test_a_share_is_of_what_is_left_of_every_limit_and_lies_within_another_part() -> None:
    now = [0.0]
    budget = Budget(Limits(calls=100, tokens=900, seconds=100), clock=lambda: now[0])
    with budget.part("search.calls", 60):
        spent(budget, 20)
        with budget.keeping(lambda: Holdback(20.0)), budget.share(0.5):
            assert budget.remaining_calls() == (80, 20)
            assert budget.remaining_time() == (100, 40)
            spent(budget, 20)
            with pytest.raises(ShareSpentError, match="its share of 20 calls is spent"):
                spent(budget, 1)
        with budget.share(1.0):
            assert budget.remaining_calls() == (60, 20)
            now[0] = 99.0
            budget.check_time()
        with budget.share(0.0), pytest.raises(ShareSpentError, match="its share of the time is over"):
            budget.check_time()
        spent(budget, 20)
        with pytest.raises(BudgetExceededError, match=r"search\.calls: 60 calls are made"):
            spent(budget, 1)
    spent(budget, 20)
    assert budget.remaining_calls() == (20, None)
    with budget.share(0.5), pytest.raises(ShareSpentError, match="its share of 50 tokens is spent"):
        spent(budget, 9)


def test_what_is_spent_beside_the_parts_counts_for_the_whole_alone() -> None:
    budget = Budget(Limits(calls=10))
    with budget.part("search.calls", 3):
        spent(budget, 1)
        with budget.beside_parts():
            spent(budget, 5)
        assert budget.remaining_calls() == (4, 2)
        with budget.share(0.5):
            assert budget.remaining_calls() == (4, 1)
        with budget.beside_parts(), pytest.raises(BudgetExceededError, match="calls"):
            spent(budget, 5)
    assert budget.remaining_calls() == (0, None)
