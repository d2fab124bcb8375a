"""The closed loop, end to end: memory, evaluator, attribution, proposers and gate are real, the model is scripted."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Reply, ScriptedServer, prompt_of
from scripted_world import WeakModel, kind_of, memory, world

from attribution.methods import survival
from attribution.signals import Signal
from experiments.systems.fact_memory import FactMemory
from optimizer.evaluation.evaluator import Evaluator
from optimizer.evaluation.scores import Score, SplitName, Splits
from optimizer.gating.verdict import Verdict
from optimizer.proposers.rewrites import Rewrite
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import open_optimizer
from optimizer.search.rounds import LIMITED_PATIENCE, PATIENCE
from optimizer.tuning.failures import Failures
from optimizer.tuning.reserve import MARGIN
from optimizer.tuning.results import LoopResult, LoopSettings
from optimizer.tuning.round import RewriteRecord, RoundRecord
from tracing.errors import RunError
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits

BASELINE = {name: spec.text for name, spec in FactMemory.prompts.items()}


class Notes:
    """What an observer was told, and how many calls had been made when each phase began and ended."""

    def __init__(self, calls: Callable[[], int]) -> None:
        self.calls = calls
        self.baselines: dict[SplitName, float] = {}
        self.blames: list[dict[str, float]] = []
        self.records: list[RoundRecord] = []
        self.verdicts: list[Verdict] = []
        self.begun: dict[str, int] = {}
        self.ended: dict[str, int] = {}

    def baseline(self, split: SplitName, score: Score) -> None:
        self.baselines[split] = score.score

    def blame(self, n: int, signals: Sequence[Signal]) -> None:
        self.blames.append({signal.operation: signal.share for signal in signals})

    def round(self, record: RoundRecord) -> None:
        self.records.append(record)

    def verdict(self, verdict: Verdict) -> None:
        self.verdicts.append(verdict)

    def progress(self, phase: str, done: int, total: int, failed: int = 0) -> None:
        self.begun.setdefault(phase, self.calls())
        if done == total:
            self.ended[phase] = self.calls()


Run = Callable[..., tuple[LoopResult, Notes]]


@pytest.fixture
def run(scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], tmp_path: Path) -> Run:
    """Runs the loop on a model, without a response cache and in a folder of its own, so that each call is seen."""

    def run_it(
        model: Callable[[dict[str, Any]], Reply | str],
        splits: Splits | None = None,
        *,
        limits: Limits | None = None,
        clock: Callable[[], float] | None = None,
        **settings: Any,
    ) -> tuple[LoopResult, Notes]:
        scripted_server.script = model
        access = open_access(limits, cache=False, retries=0, concurrency=1, clock=clock or time.monotonic)
        folder = tmp_path / f"memories{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        system = memory()
        notes = Notes(lambda: access.budget.spent.calls)
        result = optimize(
            evaluator=Evaluator(system, access, "short_contains", folder),
            splits=splits or world(),
            baseline=BASELINE,
            settings=LoopSettings(**{"rounds": 1, "proposals": 2, **settings}),
            access=access,
            failures=Failures(survival, access, system.operations),
            observer=notes,
            optimizer=open_optimizer("closed-loop"),
        )
        return result, notes

    return run_it


@pytest.mark.parametrize(
    ("weak", "operation", "prompt"), [("answer", "answer", "answer"), ("extract", "extract_facts", "extract")]
)
def test_the_weak_operation_is_blamed_its_prompt_edited_and_the_gain_confirmed_on_test(
    run: Run, weak: str, operation: str, prompt: str
) -> None:
    model = WeakModel(weak)  # type: ignore[arg-type]
    result, notes = run(model, world(test=6), rounds=2)
    assert notes.blames[0][operation] == 1
    (record,) = result.rounds
    assert (record.edited, record.accepted, record.validation_score) == ((prompt,), True, 1.0)
    champion = result.champion_candidate
    assert {name for name in BASELINE if champion[name] != BASELINE[name]} == {prompt}
    assert len(record.rewrites) == record.proposals
    (kept,) = [rewrite for rewrite in record.rewrites if rewrite.text == champion[prompt]]
    assert (kept.prompt, kept.screening) == (prompt, 0.5)
    assert kept.gate is not None
    assert str(kept.gate).startswith("accepted")
    assert any(cure in champion[prompt] for cure in model.cures)
    edit = record.edit
    assert edit is not None
    assert list(edit.diffs) == [prompt]
    assert any(f"+{cure}" in edit.diffs[prompt] for cure in model.cures)
    # The questions about the parrots, on the conversations of train and validation that both champions were asked on.
    assert {case.asked.split()[3] for case in edit.fixed} == {"parrot"}
    assert all(case.before != case.after for case in edit.fixed)
    assert {case.conversation for case in edit.fixed} >= {"validation-0", "validation-1", "validation-2"}
    assert (len(edit.broken), edit.compared) == (0, 2 * len(edit.fixed))
    assert notes.baselines == {"train": 0.5, "validation": 0.5, "test": 0.5}
    assert {split: score.score for split, score in result.champion.items()} == {"train": 1, "validation": 1, "test": 1}
    # Six conversations of six are better: two of the 64 ways to flip the signs are as extreme.
    assert (result.verdict, result.delta, result.p_value) == ("improved", 0.5, 2 / 64)
    assert result.delta_ci == pytest.approx((0.205, 0.795), abs=0.001)
    (verdict,) = notes.verdicts
    assert replace(verdict, score=None, tokens={}) == Verdict(
        "improved", 0.5, result.delta_ci, 2 / 64, result.power or 0.0
    )
    assert (verdict.score, verdict.tokens) == (result.champion["test"], result.tokens_per_question)
    assert str(result.stopped) == "no wrong answer is left on the train conversations"
    assert result.calls.made < result.calls.without_reuse
    assert set(result.tokens_per_question) == {"baseline", "champion"}


def test_replies_that_are_too_long_to_count_are_told_of_with_the_baseline(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    run(WeakModel("answer", curable=False), rounds=0)
    assert (
        "with the baseline prompts 50% of the replies contain an accepted answer in more than 12 words" in caplog.text
    )
    caplog.clear()
    run(WeakModel("extract", curable=False), rounds=0)
    assert "of the replies" not in caplog.text


def test_a_prompt_that_no_train_conversation_was_recorded_with_is_told_of(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    splits = world()
    run(WeakModel("answer", curable=False), splits, rounds=0)
    unused = [record.getMessage() for record in caplog.records if "was used in none" in record.getMessage()]
    # The scripted world decides on no fact.
    (told,) = unused
    assert told.startswith(f"the prompt decide was used in none of {len(splits.train)} train conversations")


@pytest.mark.slow
def test_a_search_whose_rounds_are_open_goes_on_until_its_budget_or_patience_ends(run: Run) -> None:
    splits, budget = world(test=6), Limits(calls=5000)
    nothing = [run(WeakModel("answer", curable=False), splits, limits=each, open_ended=True) for each in (None, budget)]
    assert [(str(result.stopped), len(result.rounds)) for result, _ in nothing] == [
        (f"{rounds} rounds in a row brought no better prompts", rounds) for rounds in (PATIENCE, LIMITED_PATIENCE)
    ]
    # What helps is tried in a later round.
    cured, late = WeakModel("answer"), nothing[1][0].rounds[2:]
    texts = [rewrite.text for record in late for rewrite in record.rewrites]
    cured.cures = [cure for cure in cured.cures if any(cure in text for text in texts)][-1:]
    assert cured.cures
    short, _ = run(cured, splits, limits=budget)
    assert (short.verdict, str(short.stopped)) == ("inconclusive", "all rounds done")
    long, _ = run(cured, splits, limits=budget, open_ended=True)
    assert long.verdict == "improved"
    assert len(long.rounds) > 2


@pytest.mark.parametrize("name", ["calls", "tokens"])
def test_a_search_leaves_the_test_what_it_needs_of_a_budget(run: Run, name: str) -> None:
    model, splits = WeakModel("answer", curable=False), world(test=6)
    whole, _ = run(model, splits, rounds=0)
    limit = 2 * (whole.calls.made if name == "calls" else 60 * whole.calls.made)
    result, _ = run(model, splits, limits=Limits(**{name: limit}), open_ended=True)
    assert result.verdict == "inconclusive"
    assert str(result.stopped) in (
        f"budget: the remaining {name} are reserved for the test conversations",
        f"{LIMITED_PATIENCE} rounds in a row brought no better prompts",
    )


def test_where_nothing_helps_nothing_is_accepted_and_the_verdict_is_inconclusive(run: Run) -> None:
    result, notes = run(WeakModel("answer", curable=False), rounds=2)
    assert [record.accepted for record in result.rounds] == [False] * 2
    assert all(record.proposals for record in result.rounds)
    tried = [rewrite for record in result.rounds for rewrite in record.rewrites]
    assert {(rewrite.screening, rewrite.gate) for rewrite in tried} == {(0.0, None)}
    assert result.champion_candidate == BASELINE
    assert result.champion == result.baseline
    assert (result.verdict, result.delta, result.delta_ci, result.p_value) == ("inconclusive", 0.0, None, 1.0)
    assert str(result.stopped) == "all rounds done"
    assert len(notes.verdicts) == 1


def test_test_conversations_are_met_last_and_once_by_baseline_and_champion(
    run: Run, scripted_server: ScriptedServer
) -> None:
    splits = world(test=3)
    names = [name for each in splits.test for name in each.speakers]

    def met(texts: Iterable[str]) -> list[int]:
        return [n for n, text in enumerate(texts) if any(name in text for name in names)]

    result, notes = run(WeakModel("answer"), splits, proposals=4)
    assert result.rounds[0].accepted
    chats, embeddings = scripted_server.requests, scripted_server.embedding_requests
    chatted, embedded = met(map(prompt_of, chats)), met(str(body["input"]) for body in embeddings)
    # Everything that names a test conversation comes in one block at the end.
    assert chatted == list(range(chatted[0], len(chats)))
    assert embedded == list(range(embedded[0], len(embeddings)))
    assert chatted[0] + embedded[0] == notes.begun["baseline test"] < notes.begun["champion test"]
    asked = Counter(
        (question.question, any(cure in prompt_of(chats[n]) for cure in WeakModel("answer").cures))
        for n in chatted
        for each in splits.test
        for question in each.questions
        if kind_of(chats[n]) == "answer" and question.question in prompt_of(chats[n])
    )
    assert asked == {(q.question, champion): 1 for c in splits.test for q in c.questions for champion in (False, True)}
    # Two sessions each; baseline and champion differ in their answers only, so that nothing is built twice.
    assert [kind_of(chats[n]) for n in chatted].count("extract") == 3 * 2


def test_a_calls_budget_ends_a_round_midway_with_the_best_so_far_and_its_verdict(run: Run) -> None:
    model = WeakModel("answer", overlooked=["Zibbeltrain2"])
    whole, notes = run(model, rounds=2)
    first, second = whole.rounds
    assert (first.accepted, first.edited, second.edited) == (True, ("answer",), ("extract",))
    begun = min(calls for phase, calls in notes.begun.items() if phase.startswith("round 2: screening"))
    # Baseline and champion on two conversations, each with the calls of one of the three of train, and a tenth more.
    kept = math.ceil(MARGIN * 2 * 2 * notes.begun["baseline validation"] / 3)

    result, told = run(model, rounds=2, limits=Limits(calls=begun + 2 + kept))
    assert str(result.stopped) == "budget: the remaining calls are reserved for the test conversations"
    assert result.champion_candidate == whole.champion_candidate != BASELINE
    assert [(record.n, record.accepted) for record in result.rounds] == [(1, True), (2, False)]
    assert result.calls.made <= begun + 2 + kept
    assert (result.verdict, len(told.verdicts)) == (whole.verdict, 1)


def test_calls_allowed_to_the_search_end_it_and_leave_the_verdict(run: Run, scripted_server: ScriptedServer) -> None:
    model = WeakModel("answer", overlooked=["Zibbeltrain2"])
    whole, notes = run(model, rounds=2)
    searching = {phase: calls for phase, calls in notes.begun.items() if phase.startswith("round")}
    begun, ended = min(searching.values()), notes.begun["baseline test"]
    assert whole.search is not None
    assert (whole.search.calls, whole.search.tokens > 0) == (ended - begun, True)
    first = whole.rounds[0].search_calls
    assert first is not None
    assert whole.rounds[0].calls_made <= first < whole.search.calls == whole.rounds[1].search_calls

    result, told = run(model, rounds=2, calls=first + 2)
    assert str(result.stopped).startswith(f"budget: search.calls: {first + 2} calls are made, and no more are allowed")
    assert result.search is not None
    assert result.search.calls == first + 2
    assert result.champion_candidate == whole.champion_candidate != BASELINE
    assert result.verdict == whole.verdict is not None
    assert told.verdicts


def test_a_score_of_an_earlier_champion_is_not_shown_as_the_last_ones(run: Run) -> None:
    result, _ = run(WeakModel("answer"), rounds=1)
    assert result.rounds[0].accepted
    assert {split: score.score for split, score in result.champion.items()} == {"validation": 1.0, "test": 1.0}


def test_a_budget_spent_before_the_first_round_leaves_the_baseline(run: Run) -> None:
    result, _ = run(WeakModel("answer"), limits=Limits(calls=25))
    assert (result.champion_candidate, result.rounds, result.verdict) == (BASELINE, (), None)
    assert result.champion == result.baseline
    assert set(result.baseline) == {"train"}
    assert result.calls.made == 25 <= result.calls.without_reuse


@pytest.mark.parametrize(
    ("seconds", "accepted", "verdict"),
    [(80, [], "inconclusive"), (94, [False], "inconclusive"), (108, [True], "improved")],
)
def test_the_time_that_the_test_takes_is_kept_for_it(
    run: Run, scripted_server: ScriptedServer, seconds: int, accepted: list[bool], verdict: str
) -> None:
    # A second a chat call: four a conversation (two sessions, two questions), so 28 for the baseline, 48 for the test,
    # for which a tenth more is kept; then 8 for a screening, 16 for the validation, 12 for the train conversations.
    begun = scripted_server.count
    result, _ = run(
        WeakModel("answer", overlooked=["Zibbeltrain2"]),
        world(validation=4, test=6),
        rounds=3,
        limits=Limits(seconds=seconds),
        clock=lambda: float(scripted_server.count - begun),
    )
    assert str(result.stopped) == "budget: the remaining time is reserved for the test conversations"
    assert [record.accepted for record in result.rounds] == accepted
    assert result.verdict == verdict
    assert scripted_server.count <= seconds


def test_equal_seeds_give_equal_runs(run: Run, scripted_server: ScriptedServer) -> None:
    model = WeakModel("answer", overlooked=["Zibbeltrain2"])
    first, _ = run(model, rounds=2, proposals=4, seed=5)
    once = [prompt_of(body) for body in scripted_server.requests]
    scripted_server.requests.clear()
    second, _ = run(model, rounds=2, proposals=4, seed=5)
    assert [prompt_of(body) for body in scripted_server.requests] == once
    assert second == first
    assert [record.proposals for record in first.rounds] == [4, 4]


CURED = BASELINE["answer"].replace("\n", f"\n{WeakModel('answer').cures[0]}\n", 1)


def by_hand(prompt: str, text: str) -> Rewrite:
    return Rewrite(prompt, text, "hand", f"written by hand: {prompt}.txt")


def test_rewrites_by_hand_race_first_all_of_them_and_for_their_own_prompt(run: Run) -> None:
    hand = (by_hand("answer", CURED), by_hand("answer", CURED + "\n"), by_hand("answer", BASELINE["answer"]))
    result, _ = run(WeakModel("answer"), rounds=1, proposals=1, hand=hand)
    (record,) = result.rounds
    assert [rewrite.source for rewrite in record.rewrites] == ["hand", "hand"]
    assert record.accepted
    assert result.champion_candidate["answer"] == CURED
    # Nothing blames the extraction, but somebody wrote a prompt for it.
    useless = BASELINE["extract"] + "\n"
    result, _ = run(WeakModel("answer"), rounds=2, proposals=2, hand=(by_hand("extract", useless),))
    assert [record.edited for record in result.rounds] == [("extract",), ("answer",)]
    assert result.rounds[0].rewrites[0].text == useless


def test_a_rewrite_by_hand_that_breaks_its_contract_is_not_tried(run: Run, scripted_server: ScriptedServer) -> None:
    result, _ = run(WeakModel("answer"), rounds=1, hand=(by_hand("extract", "no placeholders"),))
    assert result.rounds[0].edited == ("answer",)
    assert not any("no placeholders" in prompt_of(body) for body in scripted_server.requests)


def test_what_nobody_approves_does_not_become_the_champion(run: Run) -> None:
    asked: list[tuple[RewriteRecord, str]] = []

    def decline(rewrite: RewriteRecord, before: str) -> bool:
        asked.append((rewrite, before))
        return False

    result, _ = run(WeakModel("answer"), rounds=1, hand=(by_hand("answer", CURED),), approve=decline)
    assert result.champion_candidate == BASELINE
    (record,) = result.rounds
    assert not record.accepted
    assert {before for _, before in asked} == {BASELINE["answer"]}
    rewrite = asked[0][0]
    assert (rewrite.text, str(rewrite.gate or "")[:8]) == (CURED, "accepted")
    assert str(record.rewrites[0].gate or "").startswith("declined by hand, though accepted")
    approved, _ = run(WeakModel("answer"), rounds=1, hand=(by_hand("answer", CURED),), approve=lambda *_: True)
    assert approved.champion_candidate["answer"] == CURED


def test_what_an_author_writes_is_a_phase_which_ends_once_it_is_offered(run: Run) -> None:
    _, notes = run(WeakModel("answer", curable=False), rounds=1, proposals=9)
    writing = "reflection: rewriting answer"
    assert notes.ended[writing] - notes.begun[writing] >= 1


@pytest.mark.slow
def test_a_source_whose_offers_cannot_be_tried_is_not_paid(run: Run, scripted_server: ScriptedServer) -> None:
    run(WeakModel("answer", curable=False), proposals=2)
    assert "reflect" not in {kind_of(body) for body in scripted_server.requests}
    run(WeakModel("answer", curable=False), proposals=4)
    assert "reflect" in {kind_of(body) for body in scripted_server.requests}


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_champion_that_fails_on_a_conversation_is_kept_without_a_verdict(run: Run, split: str) -> None:
    """The gate saw it succeed, so it is worth keeping; a run that ended in an error here would end so again."""
    model = WeakModel("extract")

    def script(body: dict[str, Any]) -> Reply | str:
        text = prompt_of(body)
        cured = any(cure in text for cure in model.cures)
        cut = kind_of(body) == "extract" and cured and f"My parrot is called Zibbel{split}4" in text
        return Reply("{", finish_reason="length") if cut else model(body)

    result, _ = run(script, world(train=6, test=5), rounds=2)
    assert result.champion_candidate != BASELINE
    assert str(result.stopped).startswith(
        f"{split}-4: cannot be scored with the champion's prompts: scripted: cut short"
    )
    assert split not in result.champion
    assert (result.verdict is None) == (split == "test")
    assert result.baseline["test"].score == 0.5


def test_a_baseline_that_cannot_be_scored_ends_the_run_with_the_reason(run: Run) -> None:
    def script(body: dict[str, Any]) -> Reply | str:
        return Reply("out of order", status=500) if "Ankevalidation1" in prompt_of(body) else WeakModel()(body)

    with pytest.raises(RunError, match=r"validation-1: cannot be scored with the baseline's prompts: .*out of order"):
        run(script)
