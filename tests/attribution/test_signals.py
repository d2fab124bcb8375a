from __future__ import annotations

import pytest
from scripted_memory import FACT_MEMORY

from attribution.cases import Attribution, Blame, Case, ErrorType
from attribution.judge import judge
from attribution.signals import aggregate
from tracing.systems.conversations import Question

COUNTER = iter(range(10_000))


def attributed(conversation: str, *blames: tuple[str, ErrorType, float], reply: str = "no") -> Attribution:
    question = Question(id=f"q{next(COUNTER):04}", question="?", answers=("yes",))
    case = Case(conversation, question, reply, judge(reply, question.answers))
    decisive = tuple(Blame(name, None, kind, confidence, "because") for name, kind, confidence in blames)
    return Attribution(case, decisive, None if decisive else "nothing is known")


def test_shares_add_up_and_the_greatest_comes_first() -> None:
    rows = [attributed(f"c{at % 4}", ("extract_facts", "ExtractionError", 0.9)) for at in range(6)]
    rows += [attributed(f"c{at}", ("answer", "ResponseError", 0.9)) for at in range(2)]
    signals = aggregate(rows, FACT_MEMORY, total_cases=20, seed=0).signals
    assert [signal.operation for signal in signals[:2]] == ["extract_facts", "answer"]
    assert sum(signal.share for signal in signals) == pytest.approx(1.0)
    assert signals[0].share == pytest.approx(0.75)
    assert signals[0].loss == pytest.approx(0.75 * 8 / 20)
    assert signals[0].share_ci[0] <= signals[0].share <= signals[0].share_ci[1]
    assert {signal.operation for signal in signals} == {spec.name for spec in FACT_MEMORY}


def test_a_case_with_several_blames_counts_once() -> None:
    rows = [attributed("c1", ("extract_facts", "ExtractionError", 0.9), ("answer", "ResponseError", 0.9))]
    signals = aggregate(rows, FACT_MEMORY, total_cases=1, seed=0).signals
    assert sum(signal.loss for signal in signals) == pytest.approx(1.0)
    assert [signal.share for signal in signals[:2]] == pytest.approx([0.5, 0.5])


def test_abstentions_and_faults_beyond_the_system_are_counted_apart() -> None:
    rows = [
        attributed("c1", ("answer", "ResponseError", 0.9)),
        attributed("c1"),
        attributed("c2", ("annotation", "AnnotationError", 0.5)),
        attributed("c2", reply="yes"),
    ]
    found = aggregate(rows, FACT_MEMORY, total_cases=10, seed=0)
    assert (found.failures, found.abstained, found.beyond, found.total) == (3, 1, 1, 10)
    assert found.signals[0].share == 1.0
    assert found.signals[0].loss == pytest.approx(0.1)


def test_representatives_are_the_surest_from_different_conversations() -> None:
    sure = [attributed("c1", ("answer", "ResponseError", 0.9 - at / 100)) for at in range(6)]
    others = [attributed(f"d{at}", ("answer", "ResponseError", 0.3)) for at in range(3)]
    cases = aggregate([*others, *sure], FACT_MEMORY, total_cases=9, seed=0).signals[0].cases
    assert cases[0] == sure[0].case.question.id
    assert set(cases[1:4]) == {row.case.question.id for row in others}
    assert cases[4] == sure[1].case.question.id


def test_one_conversation_gives_no_interval_and_the_seed_decides() -> None:
    one = [attributed("c1", ("answer", "ResponseError", 0.9))]
    assert aggregate(one, FACT_MEMORY, total_cases=1, seed=0).signals[0].share_ci == (0.0, 1.0)
    rows = [
        attributed(f"c{at}", (name, "UpdateError", 0.9))
        for at in range(5)
        for name in ("store", "answer")[: at % 2 + 1]
    ]
    assert aggregate(rows, FACT_MEMORY, total_cases=9, seed=3) == aggregate(rows, FACT_MEMORY, total_cases=9, seed=3)


def test_only_operations_with_a_prompt_are_fixable() -> None:
    signals = aggregate([], FACT_MEMORY, total_cases=0, seed=0).signals
    assert {signal.operation for signal in signals if signal.fixable} == {"extract_facts", "decide_update", "answer"}
    assert all(signal.share == signal.loss == 0.0 for signal in signals)
