"""The pool over rounds: what was best on some recorded inputs once is a parent as long as these are recorded."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from scripted_server import Reply, ScriptedServer, prompt_of
from scripted_world import LENGTHY, WeakModel, kind_of, memory, world

from attribution.methods import survival
from experiments.systems.fact_memory import FactMemory
from optimizer.evaluation.evaluator import Evaluator
from optimizer.objectives.objective import Credit, RecordedInput
from optimizer.proposers.rewrites import Means, Rewrite, RewriteRequest
from optimizer.racing.local_scores import Pool, compared
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import open_optimizer
from optimizer.tuning.failures import Failures
from optimizer.tuning.results import LoopResult, LoopSettings
from optimizer.tuning.round import RoundRecord
from tracing.llm.access import ModelAccess

BASELINE = {name: spec.text for name, spec in FactMemory.prompts.items()}
MOST, FEW, USELESS = "Rule of most.", "Rule of few.", "Rule of none."


def with_rule(rule: str, text: str) -> str:
    return f"{rule}\n{text}"


class Ruled(WeakModel):
    """Answers in a few words where a rule of its prompt says so: one for most conversations, one for the others."""

    def __call__(self, body: dict[str, Any]) -> Reply | str:
        reply, prompt = super().__call__(body), prompt_of(body)
        asked = re.search(r"parrot of Anke[a-z]+(\d+) called", prompt.rpartition("Question:")[2])
        if kind_of(body) != "answer" or asked is None:
            return reply
        rule = MOST if int(asked[1]) % 3 else FEW
        return reply if rule in prompt else LENGTHY.format(reply)


class Ruler:
    """Proposes both rules for the baseline, nothing else in the first round, and then the rule that a text lacks."""

    name = "ruler"
    asked: ClassVar[list[tuple[int, str]]] = []

    def __init__(self, means: Means) -> None:
        self.asked.clear()

    def propose(self, request: RewriteRequest) -> list[Rewrite]:
        if request.prompt.name != "answer":
            return []
        self.asked.append((request.seed, request.text))
        if request.text == BASELINE["answer"]:
            rules = [MOST, FEW]
        elif request.seed == 1:
            rules = []
        else:
            rules = [USELESS] if MOST in request.text else [MOST]
        return [
            Rewrite(request.prompt.name, with_rule(rule, request.text), "", f"adds {rule}")
            for rule in rules
            if with_rule(rule, request.text) not in request.tried
        ]


Run = Callable[..., LoopResult]


@pytest.fixture
def run(scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], tmp_path: Path) -> Run:
    scripted_server.script = Ruled()

    def made(rounds: int, before: Sequence[RoundRecord] = ()) -> LoopResult:
        access, system = open_access(retries=0), memory()
        return optimize(
            evaluator=Evaluator(system, access, "short_contains", tmp_path / "memories"),
            splits=world(train=6, validation=6, test=3),
            baseline=BASELINE,
            settings=LoopSettings(rounds=rounds, made={record.n: record.last for record in before}),
            access=access,
            failures=Failures(survival, access, system.operations),
            observer=type("Silent", (), {"__getattr__": lambda *_: lambda *told, **more: None})(),
            optimizer=open_optimizer("local-search"),
            proposers=[Ruler],
        )

    return made


@pytest.mark.slow
def test_a_text_of_the_first_round_that_is_the_best_on_some_inputs_is_a_parent_in_later_ones(
    run: Run, scripted_server: ScriptedServer
) -> None:
    few, most = with_rule(FEW, BASELINE["answer"]), with_rule(MOST, BASELINE["answer"])
    first = run(1)
    assert first.champion_candidate["answer"] in (few, most)
    found = run(4)
    # The last round waits; of those before it, each is the same whatever their number.
    assert run(3).rounds[0].rewrites == found.rounds[0].rewrites
    assert (MOST in found.champion_candidate["answer"], FEW in found.champion_candidate["answer"]) == (True, True)
    assert found.champion["test"].score == 1
    before, again = scripted_server.asked, run(4)
    assert scripted_server.asked == before
    assert [each.rewrites for each in again.rounds] == [each.rewrites for each in found.rounds]
    assert (again.champion_candidate, again.champion) == (found.champion_candidate, found.champion)


@pytest.mark.slow
def test_more_rounds_follow_the_last_one_without_making_it_again(run: Run) -> None:
    first = run(1)
    assert [record.last for record in first.rounds] == [True]
    more = run(2, first.rounds)
    assert [each.rewrites for each in more.rounds[:1]] == [each.rewrites for each in first.rounds]
    assert [record.last for record in more.rounds] == [True, True]
    assert more.rounds[0].calls_made == 0, "its calls are known"
    (open_ended,) = run(1, [replace(first.rounds[0], last=False)]).rounds
    assert not open_ended.last, "what others followed, or could have, is made as it was"


def test_texts_are_compared_on_inputs_that_are_recorded_again_and_count_for_nothing_elsewhere() -> None:
    talks, spec = world(train=3).train, FactMemory.prompts["extract"]
    old, again, new = (RecordedInput(name, spec, talk, {}) for name, talk in zip("abc", talks, strict=True))
    credits = {
        ("text", "a"): 1.0,
        ("text", "b"): 0.9,
        ("baseline", "a"): 0.5,
        ("baseline", "b"): 0.5,
        ("baseline", "c"): 0.5,
    }

    def known(text: str, inputs: Sequence[RecordedInput]) -> list[Credit | None]:
        found = (credits.get((text, each.key)) for each in inputs)
        return [None if each is None else Credit(each) for each in found]

    def one(given: RecordedInput) -> float:
        return 1.0

    pool = Pool()
    pool.add([compared(Rewrite("extract", "text", "ruler", ""), "baseline", [old, again], known, one)])
    (found,) = pool.beside("baseline", [again, new], known, one)
    assert (found.inputs, found.gain) == (1, pytest.approx(0.4))
    assert pool.beside("baseline", [new], known, one) == []
    # The champion is no parent of itself.
    assert pool.beside("text", [old, again], known, one) == []
