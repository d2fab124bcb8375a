from __future__ import annotations

from dataclasses import replace

import pytest
from scripted_memory import FACT_MEMORY

from attribution.cases import Attribution, Blame, Case, ErrorType, ReplayVerdict
from attribution.judging.words import judge
from attribution.signals import aggregate
from tracing.systems.conversations import Question
from tracing.systems.protocol import OperationSpec

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


def test_abstentions_and_faults_outside_the_system_are_counted_apart() -> None:
    rows = [
        attributed("c1", ("answer", "ResponseError", 0.9)),
        attributed("c1"),
        attributed("c2", ("annotation", "AnnotationError", 0.5)),
        attributed("c2", reply="yes"),
    ]
    found = aggregate(rows, FACT_MEMORY, total_cases=10, seed=0)
    assert (found.failures, found.abstained, found.outside, found.total) == (3, 1, 1, 10)
    assert found.signals[0].share == 1.0
    assert found.signals[0].loss == pytest.approx(0.1)


def test_what_another_step_of_the_trace_is_blamed_for_is_no_operations_loss() -> None:
    rows = [attributed("c1", ("answer", "ResponseError", 0.9)), attributed("c2", ("grade_reply", "ResponseError", 0.9))]
    found = aggregate(rows, FACT_MEMORY, total_cases=10, seed=0)
    assert (found.failures, found.abstained, found.outside) == (2, 0, 1)
    assert found.signals[0].operation == "answer"
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
    alone = aggregate(one, FACT_MEMORY, total_cases=1, seed=0).signals[0]
    assert (alone.share_ci, alone.first) == ((0.0, 1.0), None)
    rows = [
        attributed(f"c{at}", (name, "UpdateError", 0.9))
        for at in range(5)
        for name in ("store", "answer")[: at % 2 + 1]
    ]
    assert aggregate(rows, FACT_MEMORY, total_cases=9, seed=3) == aggregate(rows, FACT_MEMORY, total_cases=9, seed=3)


def test_intervals_do_not_depend_on_the_order_of_the_failures() -> None:
    rows = [attributed(f"c{at}", ("answer" if at % 3 else "store", "UpdateError", 0.5 + at / 20)) for at in range(9)]
    forward, backward = (
        {signal.operation: [*signal.share_ci, *signal.loss_ci] for signal in aggregated.signals}
        for aggregated in (aggregate(some, FACT_MEMORY, total_cases=20, seed=0) for some in (rows, rows[::-1]))
    )
    assert {name: pytest.approx(intervals) for name, intervals in forward.items()} == backward


def test_only_operations_with_a_prompt_are_fixable() -> None:
    signals = aggregate([], FACT_MEMORY, total_cases=0, seed=0).signals
    assert {signal.operation for signal in signals if signal.fixable} == {"extract_facts", "decide_update", "answer"}
    assert all(signal.share == signal.loss == 0.0 for signal in signals)


def test_conversations_that_fail_alike_leave_an_interval_of_some_width() -> None:
    rows = [attributed(f"c{at}", ("answer", "ResponseError", 0.9)) for at in range(6)]
    signals = aggregate(rows, FACT_MEMORY, total_cases=12, seed=0)
    first, second = signals.signals[0], signals.signals[1]
    assert (first.share, first.share_ci) == (1.0, pytest.approx((0.610, 1.0), abs=0.001))
    assert first.loss_ci == pytest.approx((0.305, 0.5), abs=0.001)
    assert (second.share, second.share_ci) == (0.0, pytest.approx((0.0, 0.390), abs=0.001))
    assert signals.prompts[0].loss_ci == first.loss_ci


def test_losses_have_intervals_by_operation_and_prompt_that_count_conversations_without_failures() -> None:
    rows = [attributed(f"c{at}", ("extract_facts", "ExtractionError", 0.9)) for at in range(4)]
    rows += [attributed("c4", ("answer", "ResponseError", 0.9))]
    few = aggregate(rows, FACT_MEMORY, total_cases=50, seed=0)
    many = aggregate(rows, FACT_MEMORY, total_cases=50, seed=0, conversations=50)
    assert [(one.prompt, one.loss) for one in many.prompts[:2]] == [
        ("extract", pytest.approx(4 / 50)),
        ("answer", pytest.approx(1 / 50)),
    ]
    for signals in (few, many):
        for one in (*signals.signals, *signals.prompts):
            assert one.loss_ci[0] <= one.loss <= one.loss_ci[1]
    # Where failures may be absent from a resample, the loss is less sure.
    assert many.signals[0].loss_ci[0] < few.signals[0].loss_ci[0]
    assert many.signals[0].loss_ci[1] > few.signals[0].loss_ci[1]


def test_the_stability_of_the_rank_is_how_often_resamples_agree_on_the_first() -> None:
    clear = [attributed(f"c{at}", ("extract_facts", "ExtractionError", 0.9)) for at in range(8)]
    close = [attributed(f"c{at}", ("answer", "ResponseError", 0.9)) for at in range(8, 15)]
    alone = aggregate(clear, FACT_MEMORY, total_cases=20, seed=0).signals
    assert alone[0].first == 1.0
    assert all(signal.first == 0 for signal in alone[1:])
    both = aggregate([*clear, *close], FACT_MEMORY, total_cases=20, seed=0).signals
    assert 0.4 < both[0].first < 0.8
    assert 0.2 < both[1].first < both[0].first


def test_replay_confirms_a_part_of_the_blames_by_confidence() -> None:
    rows = [attributed(f"c{at}", ("answer", "ResponseError", sure)) for at, sure in enumerate((0.9, 0.6, 0.5))]
    verdicts: tuple[ReplayVerdict | None, ...] = ("confirmed", "not repairable", None)
    rows = [
        replace(row, decisive=(replace(row.decisive[0], verdict=verdict),))
        for row, verdict in zip(rows, verdicts, strict=True)
    ]
    found = aggregate(rows, FACT_MEMORY, total_cases=3, seed=0)
    assert found.signals[0].confirmed == pytest.approx(0.6)
    assert all(signal.confirmed is None for signal in found.signals[1:])


def test_an_operation_blamed_twice_in_a_case_made_its_error_in_one_case() -> None:
    twice = attributed("c1", ("answer", "ResponseError", 0.4), ("answer", "ResponseError", 0.4))
    signal = aggregate([twice], FACT_MEMORY, total_cases=1, seed=0).signals[0]
    assert (signal.failures, signal.error_types) == (1, {"ResponseError": 1})


def test_what_a_prompt_can_fix_and_what_is_left_to_gain_is_told() -> None:
    rows = [attributed("c1", ("answer", "ResponseError", 0.9)), attributed("c2", ("store", "UpdateError", 0.9))]
    found = aggregate(rows, FACT_MEMORY, total_cases=4, seed=0, gains={"answer": 0.25})
    assert found.fixable_share == pytest.approx(0.5)
    assert {signal.operation: signal.attainable for signal in found.signals if signal.attainable} == {"answer": 0.25}


def test_what_operations_without_a_prompt_lose_is_beside_the_prompts_of_their_stage() -> None:
    rows = [
        attributed("c1", ("store", "UpdateError", 0.9)),
        attributed("c2", ("retrieve", "RetrievalError", 0.9)),
        attributed("c3", ("answer", "ResponseError", 0.9)),
    ]
    signals = aggregate(rows, FACT_MEMORY, total_cases=6, seed=0).signals
    assert {signal.operation: signal.beside for signal in signals if signal.beside} == {
        "decide_update": pytest.approx(1 / 6)
    }
    both = [*FACT_MEMORY, OperationSpec("ask", "retrieve", "ask"), OperationSpec("check", "retrieve", "check")]
    beside = {signal.operation: signal.beside for signal in aggregate(rows, both, total_cases=6, seed=0).signals}
    assert (beside["ask"], beside["check"]) == (pytest.approx(1 / 12), pytest.approx(1 / 12))
