"""Every optimizer leaves a whole result, stops on budgets, and ends the same for the same seed and replies."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Reply, ScriptedServer, prompt_of
from scripted_world import WeakModel, for_dspy, kind_of, memory, world

from attribution.methods import survival
from experiments.systems.fact_memory import FactMemory
from optimizer.evaluation.evaluator import Evaluator
from optimizer.proposers.rewrites import HAND, Means, Rewrite, RewriteRequest, open_proposers
from optimizer.proposers.template import EXAMPLE, take_apart, without_blank_ends
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import OPTIMIZERS, open_optimizer, refuse_rewrites_by_hand
from optimizer.tuning.failures import Failures
from optimizer.tuning.results import LoopResult, LoopSettings
from optimizer.tuning.tuning import Tuning
from tracing.errors import BudgetExceededError, ConfigError, RunError
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits

BASELINE = {name: spec.text for name, spec in FactMemory.prompts.items()}
BUILT_IN = sorted(OPTIMIZERS.built_in)
OURS_FIRST = [
    pytest.param(name, marks=pytest.mark.thorough) if name in ("bootstrap", "copro", "miprov2", "simba") else name
    for name in BUILT_IN
]
"""Those of DSPy share the code that three of the tests are about, so these try them in the long form only."""


class Silent:
    """Nobody is told."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *told, **more: None


class Author(WeakModel):
    """The weak model, which as an author of prompts knows what cures it."""

    def __call__(self, body: dict[str, Any]) -> Reply | str:
        text = prompt_of(body)
        if "[[ ## " in text:
            return for_dspy(text, self.cures[0])
        if "```" not in text:
            return super().__call__(body)
        current = re.search(r"```\n(.*?)\n```", text, re.DOTALL)
        assert current is not None
        return f"```\n{self.cures[0]}\n{current[1]}\n```"


class Uneven(Author):
    """One train conversation is right from the start, and one has a wrong answer that stays: SIMBA needs contrast."""

    def __call__(self, body: dict[str, Any]) -> Reply | str:
        reply, asked = super().__call__(body), prompt_of(body).rpartition("Question:")[2]
        if isinstance(reply, str) and kind_of(body) == "answer" and "[[ ## " not in asked and "```" not in asked:
            if "train0" in asked and (short := re.search(r"Zibbeltrain0", reply)):
                return short[0]
            if "train1" in asked and "parrot" not in asked:
                return "nonsense"
        return reply


def curable(name: str) -> Author:
    """A model with a weakness that the optimizer of this name can cure."""
    model = Uneven("answer") if name == "simba" else Author("answer")
    if name == "bootstrap":
        model.cures = [EXAMPLE]
    return model


Run = Callable[..., LoopResult]


@pytest.fixture
def run(scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], tmp_path: Path) -> Run:
    """Runs an optimizer through the scripted server; the response cache lasts for the test where it is wanted."""

    def run_it(
        optimizer: Any,
        model: Callable[[dict[str, Any]], Reply | str],
        *,
        limits: Limits | None = None,
        cache: bool = False,
        proposers: Any = None,
        **settings: Any,
    ) -> LoopResult:
        scripted_server.script = model
        access = open_access(limits, cache=cache, retries=0)
        folder = tmp_path / f"memories{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        system = memory()
        return optimize(
            evaluator=Evaluator(system, access, "short_contains", folder),
            splits=world(train=3, validation=4, test=6),
            baseline=BASELINE,
            settings=LoopSettings(**{"rounds": 3, "proposals": 3, **settings}),
            access=access,
            failures=Failures(survival, access, system.operations),
            observer=Silent(),
            optimizer=open_optimizer(optimizer) if isinstance(optimizer, str) else optimizer,
            proposers=proposers,
        )

    return run_it


@pytest.mark.parametrize("prompt", ["decide", "extract"])
def test_what_people_wrote_is_tried_of_a_prompt_that_nobody_blames(run: Run, prompt: str) -> None:
    text = f"{BASELINE[prompt]}\n"
    hand = (Rewrite(prompt, text, HAND, "written by hand"),)
    result = run("local-search", WeakModel("answer"), rounds=1, hand=hand, cache=True)
    tried = [rewrite for record in result.rounds for rewrite in record.rewrites if rewrite.source == HAND]
    assert [(rewrite.prompt, rewrite.text) for rewrite in tried] == [(prompt, text)]


def test_a_text_that_nothing_was_asked_of_is_told(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    hand = (Rewrite("extract", f"{BASELINE['extract']}\n", HAND, "written by hand: extract.txt"),)
    run("closed-loop", WeakModel("answer"), rounds=0, hand=hand)
    assert "ended before these were tried: written by hand: extract.txt" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILT_IN)
def test_each_finds_the_cure_and_leaves_a_whole_result(run: Run, name: str) -> None:
    model = curable(name)
    result = run(name, model, rounds=6)
    assert set(result.baseline) == {"train", "validation", "test"}
    assert result.baseline["test"].score == 0.5
    assert (result.champion["validation"].score, result.champion["test"].score) == (1.0, 1.0)
    assert any(cure in result.champion_candidate["answer"] for cure in model.cures)
    assert (result.verdict, result.delta) == ("improved", 0.5)
    assert set(result.tokens_per_question) == {"baseline", "champion"}
    assert [record.n for record in result.rounds] == list(range(1, len(result.rounds) + 1))
    (accepted,) = [record for record in result.rounds if record.accepted]
    assert accepted.validation_score == 1.0
    kept = [each for each in accepted.rewrites if each.text == result.champion_candidate[each.prompt]]
    assert kept
    assert kept[0].gate is not None
    assert str(result.stopped)
    assert result.calls.made < result.calls.without_reuse


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS_FIRST)
def test_a_spent_budget_ends_each_with_what_it_reached(run: Run, scripted_server: ScriptedServer, name: str) -> None:
    # The loop would end with the cure, which comes early.
    model = Author("answer", curable=name not in ("closed-loop", "local-search", "random"))
    calls = run(name, model).calls.made
    for most in (calls // 3, calls * 2 // 3):
        before = scripted_server.count
        result = run(name, model, limits=Limits(calls=most))
        # The local search tries less where the budget is small, so that it may reach its end.
        if name != "local-search" or result.verdict is None:
            assert str(result.stopped).startswith("budget: ")
        # What the test takes is kept of a budget that pays for it.
        assert ("test" in result.baseline) == (result.verdict is not None)
        assert scripted_server.count - before <= most + 3, "embeddings are not counted"


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS_FIRST)
def test_each_is_a_function_of_its_seed_and_goes_through_cached_replies_again(
    run: Run, scripted_server: ScriptedServer, name: str
) -> None:
    first = run(name, curable(name), cache=True, seed=3)
    before = scripted_server.count
    again = run(name, curable(name), cache=True, seed=3)
    assert scripted_server.count == before, "all replies were known"
    assert _course(again) == _course(first)


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS_FIRST)
def test_each_leaves_alone_the_prompts_that_may_not_be_rewritten(run: Run, name: str) -> None:
    result = run(name, Author("answer", curable=False), tune=("extract",))
    assert {each.prompt for record in result.rounds for each in record.rewrites} <= {"extract"}
    assert {edited for record in result.rounds for edited in record.edited} <= {"extract"}
    assert result.champion_candidate | {"extract": ""} == BASELINE | {"extract": ""}
    cured = run(name, curable(name), tune=("answer",), rounds=6)
    assert {name: text for name, text in cured.champion_candidate.items() if text != BASELINE[name]}.keys() == {
        "answer"
    }
    assert (cured.verdict, cured.delta) == ("improved", 0.5)


def test_a_local_search_that_is_cut_among_recorded_inputs_tells_what_it_tried(run: Run) -> None:
    result = run("local-search", Author("answer"), rounds=1, calls=3)
    assert str(result.stopped).startswith("budget: search.calls: 3 calls are made")
    (cut,) = result.rounds
    assert (len(cut.edited), cut.accepted) == (1, False)
    assert cut.proposals == len(cut.rewrites) > 0
    assert {(each.local, each.screening, each.gate) for each in cut.rewrites} == {(None, None, None)}


@pytest.mark.slow
def test_a_local_search_goes_the_same_way_whatever_its_budget(run: Run) -> None:
    free = run("local-search", Author("answer"), rounds=1)
    assert free.search is not None
    assert free.rounds[0].accepted
    limited = run("local-search", Author("answer"), rounds=1, calls=free.search.calls)
    assert _course(limited) == _course(free)


@pytest.mark.parametrize("calls", [30, 36, 42])
def test_what_the_gate_accepts_is_the_champion_though_the_calls_end_before_its_validation(run: Run, calls: int) -> None:
    """Which is then scored on the conversations that it has met."""
    result = run("local-search", Author("answer"), rounds=1, calls=calls)
    assert result.search is not None
    assert result.search.calls <= calls
    (record,) = result.rounds
    assert record.accepted == (result.champion_candidate != BASELINE)
    assert record.search_calls is not None
    assert record.search_calls <= calls
    if record.accepted:
        assert (result.verdict, record.validation_score) == ("improved", 1.0)


def test_what_passes_the_gate_and_cannot_be_crowned_is_not_told_as_accepted(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spent(*_: object, **__: object) -> bool:
        raise BudgetExceededError("spent")

    monkeypatch.setattr(Tuning, "crown", spent)
    result = run("local-search", Author("answer"), rounds=1)
    (gate,) = [str(each.gate) for each in result.rounds[0].rewrites if "accepted" in str(each.gate)]
    assert gate.startswith("the budget ended before its validation, though accepted: ")
    assert not result.rounds[0].accepted


def _course(result: LoopResult) -> Any:
    rewrites = [(each.n, each.accepted, each.validation_score, each.edited, each.rewrites) for each in result.rounds]
    return result.champion_candidate, result.champion, str(result.stopped), rewrites


def test_random_search_asks_no_attribution(run: Run) -> None:
    result = run("random", Author("answer"))
    assert all(record.blame == {} for record in result.rounds)
    assert all(rewrite.source != "random" for record in result.rounds for rewrite in record.rewrites)


@pytest.mark.parametrize("name", ["gepa", "miprov2", "simba", "copro", "bootstrap", "reference"])
def test_an_optimizer_from_elsewhere_takes_no_rewrites_by_hand(name: str) -> None:
    refuse_rewrites_by_hand("local-search,closed-loop,random,mine:search")
    with pytest.raises(ConfigError, match=f"the optimizer {name} takes no rewrites by hand"):
        refuse_rewrites_by_hand(f"local-search,{name}")


@pytest.mark.parametrize("name", ["gepa", "reference"])
def test_the_author_rewrites_an_instruction_and_the_data_stays(run: Run, name: str) -> None:
    requests: list[str] = []
    extract = FactMemory.prompts["extract"]

    class Writer(Author):
        def __call__(self, body: dict[str, Any]) -> Reply | str:
            if "```" in prompt_of(body):
                requests.append(prompt_of(body))
            return super().__call__(body)

    result = run(name, Writer("extract"))
    request = next(text for text in requests if extract.purpose in text)
    assert 'These lines follow it and stay:\nReply as JSON: {"facts": ["...", "..."]}' in request
    assert "{conversation}" not in request
    baseline, champion = take_apart(extract.text), take_apart(result.champion_candidate["extract"])
    assert without_blank_ends(champion.head) == (Author("extract").cures[0], *without_blank_ends(baseline.head))
    assert (champion.data, champion.cue) == (without_blank_ends(baseline.data), baseline.cue)


def test_gepa_meets_prompts_that_break_their_contract_with_no_call(run: Run, scripted_server: ScriptedServer) -> None:
    asked: list[str] = []

    class Careless(WeakModel):
        def __call__(self, body: dict[str, Any]) -> Reply | str:
            text = prompt_of(body)
            if "```" in text:
                return "```\nRead {conversation} or {context}, as {memories} are all.\n```"
            asked.append(text)
            return super().__call__(body)

    result = run("gepa", Careless("answer"))
    assert not any("are all" in text for text in asked)
    gates = [str(each.gate or "") for record in result.rounds for each in record.rewrites]
    assert gates
    assert all(gate.startswith("not tried: the instruction holds {") for gate in gates)
    assert result.champion_candidate == BASELINE
    assert result.verdict == "inconclusive"


def test_an_own_optimizer_searches_and_the_verdict_is_that_of_the_test_conversations(run: Run) -> None:
    cure = Author("answer").cures[0]

    def try_one(tuning: Tuning) -> str:
        assert not hasattr(tuning, "test_conversations")
        candidate = {**tuning.champion, "answer": f"{cure}\n{tuning.champion['answer']}"}
        with tuning.round(1) as this_round:
            this_round.edited = ("answer",)
            outcomes = tuning.measure(candidate, tuning.validation, "one try")
            if sum(each.score for each in outcomes) > sum(each.score for each in tuning.outcomes("validation")):
                tuning.crown(candidate)
        return "one try\nis enough"

    result = run(try_one, Author("answer"))
    assert (result.verdict, str(result.stopped)) == ("improved", "one try\nis enough")
    assert [(each.edited, each.accepted) for each in result.rounds] == [(("answer",), True)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return {'best': 1}", "'theirs:search' returned a dict; return why the search ended"),
        ("return None", "'theirs:search' returned a NoneType"),
        ("raise KeyError('a\\nb')", "'theirs:search' failed: KeyError"),
        (
            "tuning.crown({'answer': 'x'}); return 'x'",
            "gave a candidate that breaks its contracts: extract",
        ),
        (
            "tuning.crown({**tuning.baseline, 'decide': tuning.baseline['decide'] + ' Be brief.'}); return 'x'",
            "gave a candidate that breaks its contracts: decide: is not among the prompts that may be rewritten",
        ),
        ("tuning.crown(7); return 'x'", "'theirs:search' failed: "),
        ("tuning.nothing_like_it(); return 'x'", "no attribute 'nothing_like_it'"),
    ],
)
def test_an_optimizer_that_fails_or_returns_rubbish_is_named_in_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, expected: str
) -> None:
    (tmp_path / "theirs.py").write_text(f"def search(tuning):\n    {body}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "theirs", raising=False)
    with pytest.raises(RunError) as caught:
        run("theirs:search", Author("answer"), tune=("extract", "answer"))
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


class Shouting:
    """A proposer of the user's."""

    name = "shouting"

    def __init__(self, means: Means) -> None:
        self.known = {conversation.id for conversation in means.train}

    def propose(self, request: RewriteRequest) -> list[Rewrite]:
        text = f"{Author('answer').cures[0]}\n{request.text}"
        return [Rewrite(request.prompt.name, text, "something else", "louder")]


class Rubbish(Shouting):
    def propose(self, request: RewriteRequest) -> Any:
        return ["a text"]


class Failing(Shouting):
    def propose(self, request: RewriteRequest) -> Any:
        raise ZeroDivisionError("no\nway")


def test_an_own_proposer_is_the_source_of_what_it_writes(run: Run) -> None:
    result = run("closed-loop", Author("answer"), proposers=[*open_proposers(["structure"]), Shouting])
    tried = [rewrite for record in result.rounds for rewrite in record.rewrites]
    assert {rewrite.source for rewrite in tried} <= {"structure", "shouting"}
    assert any(rewrite.source == "shouting" and rewrite.gate for rewrite in tried)


@pytest.mark.parametrize(
    ("proposer", "expected"),
    [
        (Rubbish, r"proposers: 'shouting' returned \['a text'\], not a list of `Rewrite`s"),
        (Failing, "proposers: 'shouting' failed: ZeroDivisionError: no way; fix it"),
    ],
)
def test_a_proposer_that_fails_or_returns_rubbish_is_named_in_one_line(
    run: Run, proposer: Callable[[Means], Any], expected: str
) -> None:
    with pytest.raises(RunError, match=expected):
        run("closed-loop", Author("answer"), proposers=[proposer])
