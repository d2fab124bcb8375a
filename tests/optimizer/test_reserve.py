"""The time of conversations is estimated from calls that were really made, and the test's is kept for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Reply, ScriptedServer, prompt_of
from scripted_world import WeakModel, kind_of, memory, world

from attribution.methods import survival
from experiments.systems.fact_memory import FactMemory
from experiments.systems.rag import Rag
from optimizer.evaluation.evaluator import Evaluator
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import open_optimizer
from optimizer.tuning.failures import Failures
from optimizer.tuning.reserve import Affordable, TimeReserve, affordable
from optimizer.tuning.results import LoopResult, LoopSettings
from tracing.errors import BudgetExceededError
from tracing.llm.access import ModelAccess
from tracing.llm.accounting.budget import Holdback
from tracing.llm.accounting.ledger import Ledger
from tracing.llm.settings import Limits

SEED = {name: spec.text for name, spec in FactMemory.prompts.items()}
EDITED = {**SEED, "answer": f"Think first.\n{SEED['answer']}"}


class SlowModel(WeakModel):
    """A model on a clock of its own: calls take seconds by what they ask for, the first few longer.

    Those on conversations named like `slow_on` take `times` as long.
    """

    def __init__(
        self,
        *weak: Any,
        extract: float = 1.0,
        answer: float = 1.0,
        first: float = 0.0,
        slow_on: str = "",
        times: float = 1.0,
    ) -> None:
        super().__init__(*weak, overlooked=["Zibbeltrain2"])
        self.seconds, self.first, self.asked = {"extract": extract, "answer": answer}, first, 0
        self.slow_on, self.times = slow_on, times
        self.now = 0.0

    def __call__(self, body: dict[str, Any]) -> Reply | str:
        self.asked += 1
        took = self.first if self.first and self.asked <= 4 else self.seconds[kind_of(body)]
        self.now += took * (self.times if self.slow_on and f"Anke{self.slow_on}" in prompt_of(body) else 1.0)
        return super().__call__(body)


Open = Callable[..., ModelAccess]


@pytest.fixture
def slow(scripted_server: ScriptedServer, open_access: Open) -> Callable[..., ModelAccess]:
    """An access, one call at a time, whose budget's clock is the model's."""

    def opened(model: SlowModel, *, cache: bool, seconds: float = 1000.0) -> ModelAccess:
        scripted_server.script = model
        return open_access(Limits(seconds=seconds), cache=cache, retries=0, concurrency=1, clock=lambda: model.now)

    return opened


def evaluator(access: ModelAccess, folder: Path) -> Evaluator:
    folder.mkdir()
    return Evaluator(memory(), access, "short_contains", folder)


def test_replies_from_the_cache_make_no_conversation_look_faster(slow: Open, tmp_path: Path) -> None:
    model, train = SlowModel(extract=5.0), world(train=4).train
    evaluator(slow(model, cache=True), tmp_path / "other").evaluate(SEED, train[:3])
    access = slow(model, cache=True)
    ours = evaluator(access, tmp_path / "ours")
    reserve = TimeReserve(access.budget, access.meter, 2, 1)
    reserve.timed(lambda: ours.evaluate(SEED, train[:3]))
    assert (reserve.seconds_a_conversation(), reserve.conversations_left()) == (0.0, None)
    reserve.timed(lambda: ours.evaluate(SEED, train[3:]))
    # Two sessions are extracted, and two questions answered.
    assert reserve.seconds_a_conversation() == pytest.approx(12.0)
    # An edit of the answer prompt rebuilds nothing.
    reserve.timed(lambda: ours.evaluate(EDITED, train))
    assert reserve.seconds_a_conversation() == pytest.approx(12.0)
    assert reserve.conversations_left() == pytest.approx((1000 - access.budget.seconds) / 12 - 4.4)


def test_a_conversation_takes_what_it_takes_by_the_latest_speed(slow: Open, tmp_path: Path) -> None:
    access = slow(SlowModel(slow_on="validation", times=5.0), cache=False)
    ours, splits = evaluator(access, tmp_path / "ours"), world(train=12, validation=6)
    reserve = TimeReserve(access.budget, access.meter, 2, 1)
    reserve.timed(lambda: ours.evaluate(SEED, splits.train))
    assert reserve.seconds_a_conversation() == pytest.approx(4.0)
    reserve.timed(lambda: ours.evaluate(SEED, splits.validation))
    # Three of its four calls name the first speaker.
    assert reserve.seconds_a_conversation() == pytest.approx(16.0)
    assert reserve.for_test().seconds == pytest.approx(1.1 * 2 * 2 * 16)


def test_while_time_is_kept_no_call_takes_it_and_what_is_untimed_may_end(slow: Open, tmp_path: Path) -> None:
    model = SlowModel()
    budget = slow(model, cache=False, seconds=100.0).budget
    with budget.keeping(lambda: Holdback(30.0)):
        model.now = 69.0
        budget.check_time()
        assert budget.remaining_seconds() == 1.0
        model.now = 70.0
        with pytest.raises(BudgetExceededError, match="reserved for the test"):
            budget.check_time()
    budget.check_time()
    model.now = 101.0
    with budget.untimed():
        budget.check_time()
        assert budget.remaining_seconds() is None
    with pytest.raises(BudgetExceededError, match="100 seconds"):
        budget.check_time()


def test_an_operation_has_as_many_executions_in_its_time_as_its_own_calls_are_fast(slow: Open, tmp_path: Path) -> None:
    access = slow(SlowModel(extract=9.0), cache=False)
    ours, reserve = evaluator(access, tmp_path / "ours"), TimeReserve(access.budget, access.meter, 2, 1)
    train = reserve.timed(lambda: ours.evaluate(SEED, world(train=3).train))
    found = affordable(train, {"extract_facts", "answer"}, 2, access.budget, reserve, cached=True)
    assert found is not None
    assert found.conversations == pytest.approx(940 / 20 - 4.4)
    assert found.executions["extract_facts"] == pytest.approx(found.conversations * 20 / 9)
    assert found.executions["answer"] == pytest.approx(found.conversations * 20)


def test_calls_that_no_prompt_changes_are_not_paid_again(
    scripted_server: ScriptedServer, open_access: Open, tmp_path: Path
) -> None:
    scripted_server.script = WeakModel()
    access, rag = open_access(Limits(calls=10_000)), Rag()
    ours = Evaluator(rag, access, "short_contains", tmp_path)
    reserve, conversations = TimeReserve(access.budget, access.meter, 2, 1), world(train=3).train
    seed = {name: spec.text for name, spec in rag.prompts.items()}
    train = ours.evaluate(seed, conversations)
    left = access.budget.remaining_calls()[0]
    assert left is not None
    found = affordable(train, {"answer"}, 0, access.budget, reserve, cached=True)
    plain = affordable(train, {"answer"}, 0, access.budget, reserve, cached=False)
    ours.evaluate({**seed, "answer": f"Think first.\n{seed['answer']}"}, conversations)
    after = access.budget.remaining_calls()[0]
    assert found is not None
    assert plain is not None
    assert after is not None
    assert found.conversations == pytest.approx(left * len(train) / (left - after))
    assert plain.conversations == pytest.approx(left * len(train) / (10_000 - left))
    assert plain.conversations < found.conversations


@pytest.mark.parametrize(("prompt", "operation"), [("extract", "extract_facts"), ("answer", "answer")])
def test_another_text_takes_the_calls_from_its_operation_on_but_embeds_the_same_questions(
    prompt: str, operation: str, scripted_server: ScriptedServer, open_access: Open, tmp_path: Path
) -> None:
    """It finds the parrots, so that other facts are embedded, and other contexts read."""
    scripted_server.script = weak = WeakModel("extract")
    access = open_access(Limits(calls=10_000))
    ours, conversations = evaluator(access, tmp_path / "ours"), world(train=3).train
    reserve = TimeReserve(access.budget, access.meter, 2, 1)
    train = ours.evaluate(SEED, conversations)
    left = access.budget.remaining_calls()[0]
    found = affordable(train, {operation}, 0, access.budget, reserve, cached=True)
    ours.evaluate({**SEED, prompt: f"{weak.cures[0]}\n{SEED[prompt]}"}, conversations)
    after = access.budget.remaining_calls()[0]
    assert found is not None
    assert left is not None
    assert after is not None
    assert found.conversations == pytest.approx(left * len(train) / (left - after))


def test_rounds_share_a_budget_unless_their_shares_would_be_too_small_to_decide_anything() -> None:
    left = Affordable(60.0, {"answer": 600.0})
    assert left.shared(2, 20) == (30.0, {"answer": 300.0})
    assert left.shared(50, 20) == (20.0, {"answer": 200.0})
    assert left.shared(50, 80) == left == left.shared(0, 20)


Run = Callable[[ModelAccess, Path], LoopResult]


@pytest.fixture
def run() -> Run:
    def made(access: ModelAccess, folder: Path) -> LoopResult:
        system = memory()
        return optimize(
            evaluator=evaluator(access, folder),
            splits=world(validation=4, test=6),
            seed_candidate=SEED,
            settings=LoopSettings(rounds=1, proposals=2),
            access=access,
            failures=Failures(survival, access, system.operations),
            observer=type("Silent", (), {"__getattr__": lambda *_: lambda *told, **more: None})(),
            optimizer=open_optimizer("closed-loop"),
        )

    return made


def test_on_a_warm_cache_a_test_that_is_not_cached_keeps_its_time(slow: Open, run: Run, tmp_path: Path) -> None:
    """The test takes 24 s for the seed, and up to 12 s for a champion; the search would spend 16 s of 45."""
    model, splits = SlowModel("answer"), world(validation=4)
    evaluator(slow(model, cache=True), tmp_path / "other").evaluate(SEED, (*splits.train, *splits.validation))
    result = run(slow(model, cache=True, seconds=45.0), tmp_path / "ours")
    assert result.verdict is not None
    assert str(result.stopped) == "budget: the remaining time is reserved for the test conversations"


def test_a_machine_that_slows_down_in_the_test_leaves_no_champion_without_a_verdict(
    slow: Open, run: Run, tmp_path: Path
) -> None:
    model = SlowModel("answer", slow_on="test", times=30.0)
    result = run(slow(model, cache=False, seconds=200.0), tmp_path / "ours")
    assert [record.accepted for record in result.rounds] == [True]
    assert (result.verdict, result.champion["test"].n) == ("improved", 12)
    assert model.now > 200.0


def test_a_machine_that_slows_down_in_the_search_ends_it_and_the_test_is_told_beforehand(
    slow: Open, run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Validation takes 80 s then, after which the test would take as long as the whole run may."""
    model = SlowModel("answer", slow_on="validation", times=5.0)
    result = run(slow(model, cache=False, seconds=150.0), tmp_path / "ours")
    assert str(result.stopped) == "budget: the remaining time is reserved for the test conversations"
    assert (result.verdict, result.delta) == ("inconclusive", 0.0)
    assert "the test needs about" in caplog.text


def test_first_calls_that_are_slow_do_not_decide_for_the_whole_run(slow: Open, run: Run, tmp_path: Path) -> None:
    """Of four calls that take 20 s each, the first three conversations seem to take half a minute each."""
    result = run(slow(SlowModel("answer", first=20.0), cache=False, seconds=420.0), tmp_path / "ours")
    assert [record.accepted for record in result.rounds] == [True]
    assert result.verdict == "improved"


def test_a_resumed_run_knows_how_long_the_calls_took_that_it_does_not_make_again(slow: Open, tmp_path: Path) -> None:
    model, found = SlowModel(extract=5.0), []
    for name in ("killed", "resumed"):
        ledger = Ledger(tmp_path / "ledger.jsonl")
        access = slow(model, cache=True).with_ledger(ledger)
        ours, reserve = evaluator(access, tmp_path / name), TimeReserve(access.budget, access.meter, 2, 1)
        train = reserve.timed(lambda ours=ours: ours.evaluate(SEED, world(train=3).train))  # type: ignore[misc]
        found.append(
            (reserve.seconds_a_conversation(), affordable(train, {"answer"}, 2, access.budget, reserve, cached=True))
        )
        ledger.close()
    assert found[0][0] == pytest.approx(12.0)
    assert found[0] == found[1]
