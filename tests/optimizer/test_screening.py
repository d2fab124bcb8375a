from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from marked_outcomes import outcomes

from experiments.systems.rag import Rag
from optimizer.evaluation.evaluator import Outcome
from optimizer.evaluation.scores import Settings
from optimizer.gating.gate import GateDecision, GateOutcome
from optimizer.proposers.examples import Example
from optimizer.proposers.rewrites import Rewrite
from optimizer.search.closed_loop import race
from optimizer.search.rounds import SCREENED, crown_winner, drawn
from optimizer.tuning.round import RewriteRecord
from optimizer.tuning.tuning import ChampionUnscoredError
from tracing.systems.prompts import Candidate

BATCH = outcomes("+---", "++--")


def rewrites(*texts: str) -> dict[str, RewriteRecord]:
    return {text: RewriteRecord("answer", "bank", "", text) for text in texts}


PROMPT = Rag.prompts["answer"]


def scripted(**rows: tuple[str, ...]) -> tuple[Callable[[RewriteRecord, Outcome], Outcome], list[tuple[str, str]]]:
    """Outcomes by rewrite and conversation, and what was measured, in order; `x` is a failed build."""
    measured: list[tuple[str, str]] = []

    def measure(rewrite: RewriteRecord, reference: Outcome) -> Outcome:
        name = reference.conversation.id
        measured.append((rewrite.text, name))
        row = rows[rewrite.text][int(name[1:])]
        return outcomes(row, tainted="cut" if row == "x" else None)[0]

    return measure, measured


def failed_in(train: Sequence[Outcome], *places: int) -> list[Example]:
    return [Example(PROMPT, train[place].cases[0], None, {}, ()) for place in places]


def test_a_winner_that_cannot_be_scored_on_what_the_gate_had_not_met_is_no_champion() -> None:
    """One reply that is always cut short ended the whole run, without a verdict."""
    rewrite = Rewrite("answer", "Be brief. {question}", "bank", "shorter")
    record = replace(RewriteRecord.of(rewrite), gate=GateDecision(GateOutcome.ACCEPTED))

    def crown(candidate: Candidate, settings: Settings | None) -> bool:
        raise ChampionUnscoredError("val-0: a candidate that cannot be scored became the champion")

    tuning: Any = SimpleNamespace(approves=lambda change: True, crown=crown)
    this_round: Any = SimpleNamespace(rewrites={rewrite.key: record}, settings=[])
    assert not crown_winner(tuning, this_round, [rewrite.key], {"answer": rewrite.text})
    assert str(this_round.rewrites[rewrite.key].gate).startswith("cannot be scored")


def test_the_mean_gain_over_the_conversations_is_noted() -> None:
    measure, _ = scripted(good=("++--", "++++"), same=("+---", "++--"))
    raced = race(rewrites("good", "same"), BATCH, measure)
    assert {text: rewrite.screening for text, rewrite in raced.items()} == {"good": 0.375, "same": 0.0}


def test_gains_and_losses_that_cancel_out_are_no_gain() -> None:
    batch = outcomes("+++-------", "++--------", "+---------")
    measure, _ = scripted(shuffled=("++++++----", "----------", "----------"))
    raced = race(rewrites("shuffled"), batch, measure)
    assert raced["shuffled"].screening == 0.0


def test_who_falls_behind_runs_no_further() -> None:
    measure, measured = scripted(bad=("----", "++++"), good=("++--", "++++"))
    raced = race(rewrites("bad", "good"), BATCH, measure)
    assert measured == [("bad", "c0"), ("good", "c0"), ("good", "c1")]
    assert raced["bad"].screening == -0.25


def test_a_rewrite_that_cannot_be_scored_has_no_gain() -> None:
    measure, measured = scripted(late=("++++", "x"), early=("x", "++++"))
    raced = race(rewrites("late", "early"), BATCH, measure)
    assert [rewrite.screening for rewrite in raced.values()] == [None, None]
    assert ("early", "c1") not in measured


def test_screened_are_conversations_where_the_prompt_failed_whatever_their_scores() -> None:
    train = outcomes("++++", "+---", "++--", "+---")
    failed = failed_in(train, 0, 0, 2, 3)
    batches = {tuple(each.conversation.id for each in drawn(train, failed, seed=seed)) for seed in range(30)}
    assert {name for batch in batches for name in batch} == {"c0", "c2", "c3"}
    assert {batch[0] for batch in batches} == {"c0", "c2", "c3"}
    assert drawn(train, failed, seed=3) == drawn(train, failed, seed=3)


def test_others_fill_up_where_the_prompt_failed_on_too_few() -> None:
    train = outcomes("++++", "+---", "++--", "+---")
    assert drawn(train, failed_in(train, 2), seed=0)[0] is train[2]
    assert len(drawn(train, failed_in(train, 2), seed=0)) == len(drawn(train, [], seed=0)) == SCREENED
