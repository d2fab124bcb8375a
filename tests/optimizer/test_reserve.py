"""The time of conversations is estimated from calls that were really made, and the test's is kept for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Reply, ScriptedServer, prompt_of
from scripted_world import WeakModel, kind_of, memory, world

from attribution.judging.llm_judge import LlmJudge
from attribution.judging.metrics import JUDGE
from attribution.methods import survival
from experiments.systems.fact_memory import FactMemory
from experiments.systems.rag import Rag
from optimizer.evaluation.evaluator import Evaluator
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import open_optimizer
from optimizer.tuning.failures import Failures
from optimizer.tuning.reserve import TimeReserve, calls_with
from optimizer.tuning.results import LoopResult, LoopSettings
from tracing.errors import BudgetExceededError
from tracing.llm.access import ModelAccess
from tracing.llm.accounting.budget import Holdback
from tracing.llm.accounting.ledger import Ledger
from tracing.llm.settings import Limits

BASELINE = {name: spec.text for name, spec in FactMemory.prompts.items()}
EDITED = {**BASELINE, "answer": f"Think first.\n{BASELINE['answer']}"}


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
    evaluator(slow(model, cache=True), tmp_path / "other").evaluate(BASELINE, train[:3])
    access = slow(model, cache=True)
    ours = evaluator(access, tmp_path / "ours")
    reserve = TimeReserve(access.budget, access.meter, 2, 1)
    reserve.timed(lambda: ours.evaluate(BASELINE, train[:3]))
    assert reserve.seconds_a_conversation() == 0.0
    reserve.timed(lambda: ours.evaluate(BASELINE, train[3:]))
    # Two sessions are extracted, and two questions answered.
    assert reserve.seconds_a_conversation() == pytest.approx(12.0)
    # An edit of the answer prompt rebuilds nothing.
    reserve.timed(lambda: ours.evaluate(EDITED, train))
    assert reserve.seconds_a_conversation() == pytest.approx(12.0)


def test_a_conversation_takes_what_it_takes_by_the_latest_speed(slow: Open, tmp_path: Path) -> None:
    access = slow(SlowModel(slow_on="validation", times=5.0), cache=False)
    ours, splits = evaluator(access, tmp_path / "ours"), world(train=12, validation=6)
    reserve = TimeReserve(access.budget, access.meter, 2, 1)
    reserve.timed(lambda: ours.evaluate(BASELINE, splits.train))
    assert reserve.seconds_a_conversation() == pytest.approx(4.0)
    reserve.timed(lambda: ours.evaluate(BASELINE, splits.validation))
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


def test_what_is_kept_for_the_test_has_room_and_the_judges_tokens(
    scripted_server: ScriptedServer, open_access: Open, tmp_path: Path
) -> None:
    scripted_server.script = lambda body: "no" if "accepted answer" in prompt_of(body).lower() else "Zibbel"
    access = open_access(Limits(tokens=10**6), cache=False, concurrency=1)
    (tmp_path / "ours").mkdir()
    ours = Evaluator(memory(), access, "short_contains", tmp_path / "ours", model_judge=LlmJudge(access.judge))
    reserve = TimeReserve(access.budget, access.meter, 3, 1)
    outcomes = reserve.timed(lambda: ours.evaluate(BASELINE, world(train=2).train))
    judged = access.meter.usage_of(JUDGE)
    assert judged.calls_made > 0
    assert sum(outcome.tokens for outcome in outcomes) < access.budget.spent.tokens
    # Two candidates meet three conversations, where two took this.
    assert reserve.for_test().spending.tokens == math.ceil(1.1 * 2 * 3 / 2 * access.budget.spent.tokens)


def test_calls_that_no_prompt_changes_are_not_paid_again(
    scripted_server: ScriptedServer, open_access: Open, tmp_path: Path
) -> None:
    scripted_server.script = WeakModel()
    access, rag = open_access(Limits(calls=10_000)), Rag()
    ours = Evaluator(rag, access, "short_contains", tmp_path)
    conversations = world(train=3).train
    baseline = {name: spec.text for name, spec in rag.prompts.items()}
    train = ours.evaluate(baseline, conversations)
    left = access.budget.remaining_calls()[0]
    assert left is not None
    ours.evaluate({**baseline, "answer": f"Think first.\n{baseline['answer']}"}, conversations)
    after = access.budget.remaining_calls()[0]
    assert after is not None
    again = calls_with(train, {"answer"}, cached=True)
    assert again == pytest.approx((left - after) / len(train))
    assert again < calls_with(train, {"answer"}, cached=False) == pytest.approx((10_000 - left) / len(train))


@pytest.mark.parametrize(("prompt", "operation"), [("extract", "extract_facts"), ("answer", "answer")])
def test_another_text_takes_the_calls_from_its_operation_on_but_embeds_the_same_questions(
    prompt: str, operation: str, scripted_server: ScriptedServer, open_access: Open, tmp_path: Path
) -> None:
    """It finds the parrots, so that other facts are embedded, and other contexts read."""
    scripted_server.script = weak = WeakModel("extract")
    access = open_access(Limits(calls=10_000))
    ours, conversations = evaluator(access, tmp_path / "ours"), world(train=3).train
    train = ours.evaluate(BASELINE, conversations)
    left = access.budget.remaining_calls()[0]
    ours.evaluate({**BASELINE, prompt: f"{weak.cures[0]}\n{BASELINE[prompt]}"}, conversations)
    after = access.budget.remaining_calls()[0]
    assert left is not None
    assert after is not None
    assert calls_with(train, {operation}, cached=True) == pytest.approx((left - after) / len(train))


Run = Callable[[ModelAccess, Path], LoopResult]


@pytest.fixture
def run() -> Run:
    def made(access: ModelAccess, folder: Path) -> LoopResult:
        system = memory()
        return optimize(
            evaluator=evaluator(access, folder),
            splits=world(validation=4, test=6),
            baseline=BASELINE,
            settings=LoopSettings(rounds=1, proposals=2),
            access=access,
            failures=Failures(survival, access, system.operations),
            observer=type("Silent", (), {"__getattr__": lambda *_: lambda *told, **more: None})(),
            optimizer=open_optimizer("closed-loop"),
        )

    return made


def test_on_a_warm_cache_a_test_that_is_not_cached_keeps_its_time(slow: Open, run: Run, tmp_path: Path) -> None:
    """The test takes 24 s for the baseline, and up to 12 s for a champion; the search would spend 16 s of 45."""
    model, splits = SlowModel("answer"), world(validation=4)
    evaluator(slow(model, cache=True), tmp_path / "other").evaluate(BASELINE, (*splits.train, *splits.validation))
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
        reserve.timed(lambda ours=ours: ours.evaluate(BASELINE, world(train=3).train))  # type: ignore[misc]
        found.append(reserve.seconds_a_conversation())
        ledger.close()
    assert found == [pytest.approx(12.0)] * 2
