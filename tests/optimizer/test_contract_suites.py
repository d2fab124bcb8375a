"""What memtune ships keeps the contracts that users' own parts have to keep, and the suites notice what breaks them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from attribution.attributor import open_attributor
from attribution.cases import Attribution, Blame, Case
from attribution.conformance import AttributorConformance, MetricConformance
from attribution.judging.metrics import open_metric
from experiments.data.conformance import DatasetConformance
from experiments.data.datasets import sample
from optimizer.conformance import ObjectiveConformance, OptimizerConformance, ProposerConformance
from optimizer.objectives.objective import OBJECTIVES
from optimizer.proposers.rewrites import PROPOSERS, Rewrite, open_proposers
from optimizer.search.optimizers import OPTIMIZERS, open_optimizer
from tracing.errors import BudgetExceededError
from tracing.systems.conversations import Conversation


@pytest.fixture(autouse=True, params=["one"])
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    from impatience import wait_little

    wait_little(monkeypatch)


class TestSurvival(AttributorConformance):
    def factory(self) -> Any:
        return open_attributor("survival")


class TestClosedLoop(OptimizerConformance):
    name = "closed-loop"

    def optimizer(self) -> Any:
        return open_optimizer(self.name)


class TestLocalSearch(TestClosedLoop):
    name = "local-search"


class TestRandom(TestClosedLoop):
    name = "random"


class TestGepa(TestClosedLoop):
    name = "gepa"


class TestMiproV2(TestClosedLoop):
    name = "miprov2"


class TestSimba(TestClosedLoop):
    name = "simba"


class TestCopro(TestClosedLoop):
    name = "copro"


class TestBootstrap(TestClosedLoop):
    name = "bootstrap"


class TestReference(TestClosedLoop):
    name = "reference"


class TestSeveral(TestClosedLoop):
    name = "local-search,gepa"


class TestBank(ProposerConformance):
    name = "bank"

    def factory(self) -> Any:
        (made,) = open_proposers([self.name])
        return made


class TestDemonstrations(TestBank):
    name = "demonstrations"


class TestStructure(TestBank):
    name = "structure"


class TestReflection(TestBank):
    name = "reflection"


class TestAnswerObjective(ObjectiveConformance):
    def factory(self) -> Any:
        return OBJECTIVES.open("answer")


class TestShortContains(MetricConformance):
    name = "short_contains"

    def metric(self) -> Any:
        return open_metric(self.name)


class TestEm(TestShortContains):
    name = "em"


class TestF1(TestShortContains):
    name = "f1"


class TestContains(TestShortContains):
    name = "contains"


class TestSample(DatasetConformance):
    def loader(self) -> Any:
        return sample


def test_every_optimizer_and_proposer_is_checked_above() -> None:
    optimizers = (TestClosedLoop, TestLocalSearch, TestRandom, TestGepa)
    published = (TestMiproV2, TestSimba, TestCopro, TestBootstrap, TestReference)
    assert {each.name for each in (*optimizers, *published)} == set(OPTIMIZERS.built_in)
    assert {TestBank.name, TestDemonstrations.name, TestStructure.name, TestReflection.name} == set(PROPOSERS.built_in)


def broken(suite: type, **methods: Any) -> list[str]:
    """The tests of a suite that a part fails."""
    made = type("Suite", (suite,), methods)()
    failed = []
    for name in (name for name in dir(made) if name.startswith("test_")):
        try:
            getattr(made, name)()
        except (AssertionError, BudgetExceededError):
            failed.append(name)
    return failed


def deaf(tuning: Any) -> str:
    with tuning.round(1):
        for text in ("one {context} {question}", "two {context} {question}"):
            try:
                tuning.measure({"answer": text}, tuning.validation, "a try")
            except BudgetExceededError:
                return "whatever"
    return "done"


def drawing(tuning: Any) -> str:
    tuning.crown({"answer": f"{random.random()} {{context}} {{question}}"})  # noqa: S311
    return "done"


class Nameless:
    def __init__(self, recording: Any, access: Any) -> None: ...

    def attribute(self, case: Case) -> Attribution:
        return Attribution(case, (Blame("nobody", None, "ResponseError", 0.5, "so"),))


class Sure(Nameless):
    def attribute(self, case: Case) -> Attribution:
        return Attribution(case, (Blame("answer", None, "ResponseError", 7, "so"),))


class Contrary:
    name = "contrary"

    def __init__(self, means: Any) -> None: ...

    def propose(self, request: Any) -> list[Rewrite]:
        return [Rewrite(request.prompt.name, "no placeholder", "x", "y")]


def strict(reply: str, answers: Sequence[str]) -> float:
    return 2.0 if reply == answers[0] else 0.0


def growing(path: Path | None) -> Iterable[Conversation]:
    return random.sample(sample(path), 8)


@pytest.mark.parametrize(
    ("suite", "method", "part", "expected"),
    [
        (OptimizerConformance, "optimizer", deaf, "test_a_spent_budget_ends_it_with_the_best_so_far"),
        (
            OptimizerConformance,
            "optimizer",
            drawing,
            "test_the_same_seed_leads_to_the_same_champion_and_the_same_rewrites",
        ),
        (OptimizerConformance, "optimizer", drawing, "test_rounds_are_told_in_order_with_the_champion_of_each"),
        (AttributorConformance, "factory", Nameless, "test_blames_name_operations_of_the_recording"),
        (AttributorConformance, "factory", Sure, "test_every_wrong_answer_is_blamed_or_abstained_from"),
        (
            ProposerConformance,
            "factory",
            Contrary,
            "test_it_proposes_no_more_than_is_asked_for_and_what_the_contract_admits",
        ),
        (MetricConformance, "metric", strict, "test_every_reply_has_a_score_from_0_to_1"),
        (DatasetConformance, "loader", growing, "test_it_gives_the_same_at_every_call"),
    ],
)
def test_a_suite_notices_a_part_that_breaks_the_contract(suite: type, method: str, part: Any, expected: str) -> None:
    assert expected in broken(suite, **{method: lambda self: part})
