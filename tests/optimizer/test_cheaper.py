"""With the goal of fewer tokens, what answers do not need is cut, and the verdict is one of non-inferiority."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from marked_outcomes import outcomes
from scripted_server import ScriptedServer
from scripted_world import WeakModel, world

from attribution.methods import survival
from experiments.systems.fact_memory import FactMemory
from optimizer.evaluation.evaluator import Evaluator, Outcome
from optimizer.evaluation.scores import Settings
from optimizer.evaluation.variants import Variants
from optimizer.gating.gate import GateDecision, GateOutcome, compare, look_schedule
from optimizer.gating.verdict import cheaper_of, fewest_questions
from optimizer.proposers.rewrites import ANOTHER_TEXT, HAND, Rewrite
from optimizer.proposers.shortening import removable, without
from optimizer.proposers.template import take_apart
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import open_optimizer
from optimizer.tuning.failures import Failures
from optimizer.tuning.results import LoopResult, LoopSettings
from tracing.llm.access import ModelAccess
from tracing.systems.baseline import with_baseline
from tracing.systems.protocol import MemorySystem, Stage

SPLITS = world(train=4, validation=4, test=8)
BASELINE = {name: spec.text for name, spec in FactMemory.prompts.items()}
IDLE = ["Whoever asks, stay as polite and patient with them as a good host would.", "Mind your spelling."]


class Quiet:
    """Nobody is told."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *told, **more: None


Search = Callable[..., LoopResult]


def _opened(top_k: int, settings: Settings) -> FactMemory:
    return FactMemory(near=2.0, top_k=int(settings.get("top_k", top_k)))


@pytest.fixture
def cheaper(scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], tmp_path: Path) -> Search:
    def run(model: WeakModel, baseline: dict[str, str], *, top_k: int = 4, **settings: Any) -> LoopResult:
        scripted_server.script = model
        access = open_access(retries=0)
        system: MemorySystem = FactMemory(near=2.0, top_k=top_k)
        if settings.pop("alternatives", False):
            system = with_baseline(system, baseline)
        base = Evaluator(system, access, "short_contains", tmp_path / "memories")
        allowed = settings.pop("allowed", {})
        opened = partial(_opened, top_k)
        return optimize(
            evaluator=base,
            splits=SPLITS,
            baseline=baseline,
            settings=LoopSettings(**{"rounds": 1, "open_ended": True, "margin": 0.3, **settings}),
            access=access,
            failures=Failures(survival, access, base.system.operations),
            observer=Quiet(),  # type: ignore[arg-type]
            optimizer=open_optimizer("local-search"),
            variants=Variants(base, allowed, opened) if allowed else None,
        )

    return run


def with_lines(*lines: str) -> dict[str, str]:
    return {**BASELINE, "answer": "\n".join((*lines, "", BASELINE["answer"]))}


def test_lines_that_answers_do_not_need_are_cut_and_the_one_they_need_stays(cheaper: Search) -> None:
    model = WeakModel("answer")
    needed = model.cures[0]
    result = cheaper(model, with_lines(IDLE[0], needed, IDLE[1]))
    answer = result.champion_candidate["answer"]
    assert needed in answer
    assert not any(line in answer for line in IDLE)
    assert (result.verdict, result.delta, result.margin) == ("cheaper", 0.0, 0.3)
    assert result.bound is not None
    assert -0.3 < result.bound < 0
    assert result.tokens_per_question["champion"] < result.tokens_per_question["baseline"]
    assert str(result.stopped) == "nothing else could be cut"
    # What each line brings is told: without this one the operation fails on its recorded inputs.
    lines = {rewrite.reason: rewrite.local for record in result.rounds for rewrite in record.rewrites}
    assert lines[f"without: {needed}, and 1 before it"] == pytest.approx(-2 / 3)
    assert lines[f"without: {IDLE[0]}"] == 0


def test_the_systems_own_shorter_text_is_tried_before_single_lines(cheaper: Search) -> None:
    result = cheaper(WeakModel(), with_lines(*IDLE), alternatives=True, tune=("answer",))
    assert result.champion_candidate == BASELINE
    first, *_ = result.rounds
    assert [(rewrite.text, rewrite.reason, rewrite.local) for rewrite in first.rewrites] == [
        (BASELINE["answer"], ANOTHER_TEXT, 0.0)
    ]


def test_a_shorter_text_that_answers_worse_is_not_taken_and_lines_are_cut_as_before(cheaper: Search) -> None:
    model = WeakModel("answer")
    needed = model.cures[0]
    result = cheaper(model, with_lines(*IDLE, needed), alternatives=True, tune=("answer",))
    assert result.champion_candidate == with_lines(needed)
    rewrites = [rewrite for record in result.rounds for rewrite in record.rewrites]
    assert [rewrite.local for rewrite in rewrites if rewrite.reason == ANOTHER_TEXT] == [pytest.approx(-2 / 3)]


@pytest.mark.parametrize(("weak", "kept"), [(None, {"extract", "answer"}), ("answer", {"extract"})])
def test_shorter_texts_of_all_prompts_are_tried_together_and_then_alone(
    cheaper: Search, weak: Stage | None, kept: set[str]
) -> None:
    model = WeakModel(weak)
    needed = WeakModel("answer").cures[0]
    longer = {"extract": f"{IDLE[0]}\n{BASELINE['extract']}", "answer": with_lines(needed)["answer"]}
    result = cheaper(model, {**BASELINE, **longer}, alternatives=True, tune=tuple(longer), local_objectives=False)
    rewrites = result.rounds[0].rewrites
    assert {(rewrite.prompt, rewrite.text) for rewrite in rewrites} == {(name, BASELINE[name]) for name in longer}
    assert {rewrite.prompt for rewrite in rewrites if rewrite.gate is not None and rewrite.gate.accepted} == kept


def test_a_text_by_hand_is_tried_whatever_its_length_and_kept_if_fewer_tokens_are_taken(cheaper: Search) -> None:
    polite = Rewrite("answer", with_lines(*IDLE)["answer"], HAND, "by hand: polite.txt")
    short = Rewrite("answer", with_lines(IDLE[1])["answer"], HAND, "by hand: short.txt")
    result = cheaper(WeakModel(), with_lines(IDLE[0]), hand=(polite, short), tune=("answer",), local_objectives=False)
    gates = [(rewrite.reason, rewrite.gate) for record in result.rounds for rewrite in record.rewrites if rewrite.gate]
    assert (polite.reason, GateOutcome.NOT_FEWER) in [(reason, gate.outcome) for reason, gate in gates]
    assert (short.reason, GateOutcome.ACCEPTED) in [(reason, gate.outcome) for reason, gate in gates]
    # In a further round its own line was cut.
    assert not any(line in result.champion_candidate["answer"] for line in IDLE)


def test_a_text_by_hand_that_breaks_its_contract_is_never_sent(
    cheaper: Search, scripted_server: ScriptedServer
) -> None:
    leaking = Rewrite("answer", with_lines("As for ochretrain0:")["answer"], HAND, "by hand: leaking.txt")
    result = cheaper(WeakModel(), with_lines(IDLE[0]), hand=(leaking,), tune=("answer",))
    assert result.champion_candidate == BASELINE
    assert not any("As for ochretrain0:" in str(body["messages"]) for body in scripted_server.requests)


def test_a_context_is_trimmed_where_as_much_is_retrieved_in_fewer_tokens(
    cheaper: Search, scripted_server: ScriptedServer
) -> None:
    result = cheaper(WeakModel(), BASELINE, allowed={"top_k": [1, 9]}, tune=())
    assert {name: change.after for name, change in result.settings.items()} == {"top_k": 1}
    assert result.verdict == "cheaper"
    # All that was compared is told, what met no conversation too.
    more, fewer = result.rounds[0].settings
    assert (more.settings, fewer.settings) == ({"top_k": 9}, {"top_k": 1})
    assert more.gate is not None
    assert (more.gate.outcome, more.gain) == (GateOutcome.NOT_TRIED, None)
    assert (result.rounds[0].settings_sentence or "").startswith("of 2 other settings, top_k 1 retrieves ")


def test_of_a_context_that_a_shorter_text_comes_before_nothing_false_is_told(cheaper: Search) -> None:
    """It was told that it promises less, and was accepted a round later."""
    prompts = {**with_lines(*IDLE), "extract": "\n".join((*IDLE, "", BASELINE["extract"]))}
    changes = {"allowed": {"top_k": [1]}, "tune": ("extract",), "local_objectives": False}
    first, second, *_ = cheaper(WeakModel(), prompts, alternatives=True, **changes).rounds
    assert (first.settings_sentence or "").startswith("of 1 other settings, none was tried; those of now retrieve ")
    assert [(record.gate.detail if record.gate else "").split(", and ")[-1] for record in first.settings] == [
        "other cuts come first"
    ]
    assert second.settings[-1].gate is not None
    assert second.settings[-1].gate.accepted


def test_nothing_is_cut_that_costs_more_than_the_margin(cheaper: Search) -> None:
    model = WeakModel("answer")
    baseline = with_lines(model.cures[0])
    result = cheaper(model, baseline, tune=("answer",), local_objectives=False)
    assert result.champion_candidate == baseline
    assert (result.verdict, result.margin, result.bound) == ("inconclusive", 0.3, None)
    decisions = [str(rewrite.gate) for record in result.rounds for rewrite in record.rewrites]
    assert decisions
    assert all("rejected, loses more than the margin: " in decision for decision in decisions)


def test_the_front_holds_what_nothing_else_beats(cheaper: Search) -> None:
    model = WeakModel("answer")
    result = cheaper(model, with_lines(IDLE[0], model.cures[0], IDLE[1]), allowed={"top_k": [1]}, tune=("answer",))
    front = [candidate for candidate in result.tried if candidate.front]
    (champion,) = [candidate for candidate in result.tried if candidate.champion]
    assert champion in front
    assert champion.change == "another answer, top_k 1"
    # What each makes alone is judged by what was sought, as the whole is.
    assert result.prompts_alone is not None
    assert (result.verdict, result.prompts_alone.verdict) == ("cheaper", "cheaper")
    (base,) = [candidate for candidate in result.tried if candidate.change == "the baseline"]
    assert (base.delta, base.saved, base.conversations, base.front) == (0.0, 0.0, 8, False)
    assert [candidate.saved for candidate in result.tried] == sorted(
        (candidate.saved for candidate in result.tried), reverse=True
    )


def test_a_search_for_better_scores_tells_its_front_too(cheaper: Search) -> None:
    result = cheaper(WeakModel("answer"), BASELINE, margin=None, open_ended=False)
    assert result.verdict == "improved"
    assert len(result.tried) > 1
    assert any(candidate.front and candidate.champion for candidate in result.tried)


def test_a_demonstration_is_a_piece_of_its_own_and_all_of_them_go_with_their_closing_line() -> None:
    plain = "Be exact.\n\nMemories: {context}\nQuestion: {question}\nAnswer:"
    text = take_apart(plain).with_demonstrations(["Memories: a\nAnswer: b", "Memories: c, d and e\nAnswer: f"]).text
    assert removable(text) == [
        "Example:\nMemories: c, d and e\nAnswer: f",
        "Example:\nMemories: a\nAnswer: b",
        "Be exact.",
    ]
    kept = without(text, removable(text)[:1])
    assert kept is not None
    assert ("Memories: a" in kept, "Memories: c" in kept, "Now this one:" in kept) == (True, False, True)
    assert without(text, removable(text)[:2]) == plain
    assert without(text, ["Be brief."]) is None


def spending(tokens: int, *rows: str) -> list[Outcome]:
    return [replace(outcome, chat_tokens=tokens) for outcome in outcomes(*rows)]


HALF = "+++++-----"


@pytest.mark.parametrize(
    ("rows", "tokens", "margin", "verdict"),
    [
        ([HALF] * 20, 80, 0.02, "cheaper"),
        ([HALF] * 20, 100, 0.02, "inconclusive"),  # as good, and no cheaper
        ([HALF] * 10, 80, 0.02, "inconclusive"),  # a hundred equal questions are too few
        ([HALF] * 10, 80, 0.05, "cheaper"),
        (["----------"] * 3 + [HALF] * 17, 80, 0.05, "inconclusive"),
        (["++++------"] * 20, 80, 0.05, "worse"),
        (["++++------"] * 20, 80, 0.2, "cheaper"),  # shown to be worse, but by less than is allowed
    ],
)
def test_the_verdict_is_cheaper_where_the_loss_is_shown_to_be_less_than_the_margin(
    rows: list[str], tokens: int, margin: float, verdict: str
) -> None:
    base = spending(100, *[HALF] * len(rows))
    assert cheaper_of(base, spending(tokens, *rows), margin).verdict == verdict


def test_a_baseline_that_scores_no_more_than_the_margin_has_nothing_to_lose() -> None:
    few, none = ["+---------"] * 40, ["----------"] * 40
    assert cheaper_of(spending(100, *few), spending(50, *none), 0.15).verdict == "worse"
    assert cheaper_of(spending(100, *none), spending(50, *none), 0.15).verdict == "inconclusive"
    same = (cheaper_of(spending(100, *few), spending(50, *few), margin).verdict for margin in (0.15, 0.09))
    assert [*same] == ["inconclusive", "cheaper"]


def test_nothing_is_cut_of_prompts_that_score_no_more_than_the_margin(cheaper: Search) -> None:
    result = cheaper(WeakModel("answer"), with_lines(*IDLE), margin=0.6)
    assert result.champion_candidate == with_lines(*IDLE)
    assert str(result.stopped).startswith("the baseline prompts score 0.500 on train and validation, and a margin of ")
    assert result.verdict == "inconclusive"


def test_nothing_is_cut_where_no_tokens_were_recorded(cheaper: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optimizer.search.cheaper.tokens_a_question", lambda outcomes: 0.0)
    result = cheaper(WeakModel(), with_lines(*IDLE))
    assert result.champion_candidate == with_lines(*IDLE)
    assert str(result.stopped).startswith("no tokens of chat models were recorded")


def test_so_many_equal_questions_are_the_fewest_that_show_it() -> None:
    fewest = fewest_questions(0.02)
    assert fewest == 133
    base = spending(100, *["+"] * (fewest - 1))
    assert cheaper_of(base, spending(80, *["+"] * (fewest - 1)), 0.02).verdict == "inconclusive"
    assert cheaper_of([*base, *base[:1]], spending(80, *["+"] * fewest), 0.02).verdict == "cheaper"


def decided(champion: list[str], challenger: list[str], margin: float) -> GateDecision | None:
    comparison = replace(compare(outcomes(*champion), outcomes(*challenger)), margin=margin)
    return look_schedule(len(champion)).decision(comparison)


def test_the_gate_accepts_what_is_as_good_and_rejects_what_loses_more_than_the_margin() -> None:
    as_good, worse = decided([HALF] * 24, [HALF] * 24, 0.02), decided([HALF] * 24, ["+++-------"] * 24, 0.02)
    assert as_good is not None
    assert (as_good.accepted, as_good.delta) == (True, 0.0)
    assert worse is not None
    assert str(worse).startswith("rejected, loses more than the margin: -0.200 over 24 conversations")
    assert GateDecision.read(str(worse)).outcome is worse.outcome
    same_without_margin = decided([HALF] * 24, [HALF] * 24, 0.0)
    assert same_without_margin is not None
    assert str(same_without_margin).startswith("rejected, not better")
