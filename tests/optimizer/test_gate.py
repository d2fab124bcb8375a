import random
from collections.abc import Sequence

import pytest
from marked_outcomes import outcomes

from optimizer.evaluation.evaluator import Outcome
from optimizer.gating.gate import (
    ANCHORS_LOST,
    GATE_LEVEL,
    Comparison,
    GateDecision,
    GateOutcome,
    anchors_hold,
    compare,
    half_then_all,
    look_schedule,
)
from optimizer.gating.gate import decide as decided


def decide(
    champion: Sequence[Outcome], challenger: Sequence[Outcome], baseline: Sequence[Outcome] | None = None
) -> GateDecision:
    return decided(compare(champion, challenger, baseline))


def behind(champion: Sequence[Outcome], challenger: Sequence[Outcome]) -> GateDecision | None:
    """The look at half of the conversations, where all of them follow."""
    return half_then_all(2 * len(champion)).decision(compare(champion, challenger))


def test_an_improvement_of_every_conversation_is_accepted() -> None:
    decision = decide(outcomes("+--", "+--", "+--"), outcomes("++-", "++-", "++-"))
    assert decision.accepted
    assert decision.delta == pytest.approx(1 / 3)
    assert decision.p_value == 1 / 8
    assert decision.regressed_anchors == 0


def test_an_equal_or_worse_challenger_is_rejected() -> None:
    same = outcomes("+-", "+-", "+-")
    assert not decide(same, same).accepted
    assert not decide(same, outcomes("--", "--", "--")).accepted
    assert "not better" in str(decide(same, outcomes("-+", "-+", "-+")))


def test_a_gain_in_one_of_six_conversations_is_noise() -> None:
    decision = decide(outcomes(*["+---"] * 6), outcomes("++++", *["+---"] * 5))
    assert not decision.accepted
    assert "noise" in str(decision)


def test_a_challenger_that_mostly_swaps_answers_is_rejected() -> None:
    decision = decide(outcomes(*["++++-----"] * 4), outcomes(*["----+++++"] * 4))
    assert decision.p_value <= GATE_LEVEL
    assert not decision.accepted
    assert decision.regressed_anchors == 16
    assert "anchors" in str(decision)


def test_only_questions_that_the_baseline_passes_too_are_anchors() -> None:
    champion, challenger = outcomes(*["++---"] * 4), outcomes(*["-++++"] * 4)
    assert decide(champion, challenger).regressed_anchors == 4
    assert decide(champion, challenger, baseline=outcomes(*["-----"] * 4)).regressed_anchors == 0


def test_a_side_that_could_not_be_scored_is_never_accepted() -> None:
    good, better = outcomes("-", "-", "-"), outcomes("+", "+", "+")
    assert decide(good, better).accepted
    for pair in (
        (good, outcomes("+", "+", "+", tainted="call failed")),
        (outcomes("-", "-", "-", tainted="x"), better),
    ):
        decision = decide(*pair)
        assert not decision.accepted
        assert "could not be scored on c0" in str(decision)


def test_the_interim_look_only_turns_away_what_is_not_ahead() -> None:
    half = outcomes("+--", "+--", "+--")
    assert behind(half, outcomes("+--", "+--", "++-")) is None
    decision = behind(half, outcomes("-+-", "+--", "+--"))
    assert decision is not None
    assert not decision.accepted
    assert str(decision).startswith("rejected early, not ahead: ")
    unscored = behind(half, outcomes("+++", "+++", "+++", tainted="call failed"))
    assert unscored is not None
    assert "could not be scored" in str(unscored)


def test_a_decision_is_told_in_one_sentence_with_whom_it_is_about_and_what_it_takes_back() -> None:
    accepted = GateDecision(GateOutcome.ACCEPTED, "+0.100", about="extract and answer together")
    best = GateDecision(GateOutcome.BEST, "0.900 on 5 validation conversations")
    assert [
        str(GateDecision(outcome, overruled=decision))
        for outcome, decision in (
            (GateOutcome.UNCONFIRMED, accepted),
            (GateOutcome.DECLINED, best),
            (GateOutcome.DECLINED, None),
        )
    ] == [
        "not ahead again with fresh replies, though extract and answer together: accepted: +0.100",
        "declined by hand, though 0.900 on 5 validation conversations, the best so far",
        "declined by hand",
    ]
    assert [accepted.accepted, best.accepted, GateDecision(GateOutcome.OUTDONE).accepted] == [True, False, False]


def test_different_conversations_are_not_compared() -> None:
    with pytest.raises(ValueError, match="same conversations"):
        decide(outcomes("+", "+"), outcomes("+"))


def noisy(rng: random.Random, champion: Sequence[str], flips: float) -> list[str]:
    """The champion's answers with each mark redrawn as likely right as wrong in `flips` of the questions."""
    return ["".join(rng.choice("+-") if rng.random() < flips else mark for mark in row) for row in champion]


@pytest.mark.slow
def test_a_null_challenger_passes_at_most_one_time_in_five() -> None:
    rng = random.Random(0)  # noqa: S311
    accepted = 0
    for _ in range(250):
        truth = ["".join(rng.choice("+-") for _ in range(10)) for _ in range(6)]
        accepted += decide(outcomes(*noisy(rng, truth, 0.3)), outcomes(*noisy(rng, truth, 0.3))).accepted
    # 0.2 and two standard errors of 250 draws
    assert 0.01 < accepted / 250 <= 0.25


def test_of_few_anchors_a_smaller_share_may_be_lost_than_of_many() -> None:
    most = [max(lost for lost in range(anchors) if anchors_hold(lost, anchors)) / anchors for anchors in (10, 40, 160)]
    assert most == sorted(most)
    assert most[0] < most[-1] < ANCHORS_LOST
    assert anchors_hold(0, 0)
    assert not anchors_hold(4, 4)


def test_where_nearly_nothing_worked_a_lost_anchor_is_weighed_against_what_was_gained() -> None:
    champion = outcomes("+--", "+--", "+--", *["---"] * 3)
    assert decide(champion, outcomes("-++", *["+++"] * 2, *["++-"] * 3)).accepted
    assert [anchors_hold(1, 3, gained) for gained in (0, 4, 19)] == [False, False, True]
    assert not anchors_hold(8, 16, 12), "answers that are traded for others"


def test_where_no_anchor_is_lost_they_hold_however_few_they_are() -> None:
    assert all(anchors_hold(0, anchors, gained) for anchors in range(4) for gained in range(4))


def test_a_challenger_is_looked_at_early_only_if_there_are_conversations_enough() -> None:
    counts = [look_schedule(total).counts for total in (1, 5, 6, 8, 24)]
    assert counts == [(1,), (5,), (4, 5, 6), (4, 6, 8), (4, 6, 8, 12, 18, 24)]


def look(champion: Sequence[Outcome], challenger: Sequence[Outcome], total: int) -> GateDecision | None:
    return look_schedule(total).decision(compare(champion, challenger))


def test_each_look_rejects_what_is_behind_and_only_later_ones_accept() -> None:
    champion, slightly_behind, behind_it = "+----", "+----", "-----"
    ahead = "++---"
    first = [outcomes(*[row] * 4) for row in (champion, slightly_behind, behind_it, ahead)]
    assert look(first[0], first[1], 24) is None
    assert look(first[0], first[3], 24) is None
    rejected = look(first[0], first[2], 24)
    assert rejected is not None
    assert str(rejected).startswith("rejected early, not ahead")
    half = [outcomes(*[row] * 12) for row in (champion, slightly_behind, ahead)]
    even, sure = look(half[0], half[1], 24), look(half[0], half[2], 24)
    assert even is not None
    assert not even.accepted
    assert sure is not None
    assert sure.accepted
    unsure = outcomes(*[ahead] * 3, *[champion] * 9)
    assert look(half[0], unsure, 24) is None
    last = look(outcomes(*[champion] * 24), outcomes(*[ahead] * 4, *[champion] * 20), 24)
    assert last is not None
    assert last.accepted


def test_what_recorded_inputs_promised_too_is_accepted_sooner_but_never_against_the_conversations() -> None:
    deltas = (0.1, 0.1, 0.3, 0.0, -0.2, 0.2, -0.2, 0.1, 0.2, 0.2)

    def decision(doubt: float | None, deltas: tuple[float, ...] = deltas) -> GateDecision | None:
        return look_schedule(20).decision(Comparison(deltas, gained=20, lost=2, anchors=40, doubt=doubt))

    assert decision(None) is None
    assert decision(0.06) is None
    sure = decision(0.04)
    assert sure is not None
    assert sure.accepted
    assert sure.p_value > 0.075
    assert str(sure).endswith("2 of 40 anchors lost; with recorded inputs, chance of no gain 0.04")
    # One in four by chance, and the first look of all, at which nothing is accepted.
    assert decision(0.0, (0.3, 0.2, -0.2, 0.2, -0.2)) is None
    assert decision(0.0, (0.3, 0.3, 0.3, 0.3)) is None


@pytest.mark.parametrize("total", [6, 12, 24, 60])
def test_looking_several_times_accepts_a_null_challenger_no_more_often_than_the_level_says(total: int) -> None:
    rng, accepted, drawn = random.Random(total), 0, 1000  # noqa: S311
    for _ in range(drawn):
        deltas = tuple(round(rng.gauss(0, 2)) / 10 for _ in range(total))
        accepted += (
            look_schedule(total).first_decision(lambda count, deltas=deltas: Comparison(deltas[:count])).accepted
        )
    # The stated rate, and two standard errors.
    assert 0.03 < accepted / drawn <= 0.15 + 0.023


def test_what_gains_is_accepted_long_before_the_last_look() -> None:
    rng, met = random.Random(0), list[int]()  # noqa: S311
    for _ in range(200):
        deltas = tuple(round(rng.gauss(1.5, 2)) / 10 for _ in range(24))

        def compared(count: int, deltas: tuple[float, ...] = deltas) -> Comparison:
            met.append(count)
            return Comparison(deltas[:count])

        look_schedule(24).first_decision(compared)
    assert sum(count <= 8 for count in met) / 200 > 1.5
    assert sum(count > 12 for count in met) / 200 < 0.4


@pytest.mark.parametrize(
    "decision",
    [
        GateDecision(GateOutcome.ACCEPTED, "+0.100 over 8 conversations, one-sided p 0.004"),
        GateDecision(GateOutcome.DECLINED, overruled=GateDecision(GateOutcome.ACCEPTED, "+0.100")),
        GateDecision(GateOutcome.NOT_BETTER, "+0.000", about="answer and extract together"),
        GateDecision(GateOutcome.INCOMPARABLE, "champion could not be scored on c1: no reply"),
        GateDecision(GateOutcome.NOT_BEST, "0.400 on validation"),
        GateDecision(GateOutcome.UNCOMPARED),
        GateDecision(GateOutcome.OTHER, "words of an earlier version"),
    ],
    ids=str,
)
def test_a_decision_is_read_from_its_sentence(decision: GateDecision) -> None:
    assert GateDecision.read(str(decision)) == decision
