"""With a model that samples, luck is no gain: a champion is ahead twice, and the noise of a score is measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Reply, ScriptedServer, prompt_of
from scripted_world import WeakModel, kind_of, memory, world
from test_loop import SEED, Notes

from attribution.methods import survival
from optimizer.evaluation.evaluator import Evaluator
from optimizer.gating.gate import GateOutcome
from optimizer.published.candidate_search import CandidateSearch
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import Optimizer, open_optimizer
from optimizer.tuning.failures import Failures
from optimizer.tuning.results import LoopResult, LoopSettings
from optimizer.tuning.round import RewriteRecord
from optimizer.tuning.tuning import Tuning
from tracing.llm.access import ModelAccess

Run = Callable[..., LoopResult]


class Lucky(WeakModel):
    """Answers well where its prompt has a cure, but only the first time that it is asked something."""

    def __init__(self) -> None:
        super().__init__("answer")
        self.asked: Counter[str] = Counter()

    def __call__(self, body: dict[str, Any]) -> Reply | str:
        text = prompt_of(body)
        self.asked[text] += 1
        self.weak = None if kind_of(body) != "answer" else "answer"
        again = kind_of(body) == "answer" and self.asked[text] > 1
        return "something else" if again else super().__call__(body)


@pytest.fixture
def run(scripted_server: ScriptedServer, open_access: Callable[..., ModelAccess], tmp_path: Path) -> Run:
    def run_it(
        model: Callable[[dict[str, Any]], Reply | str],
        temperature: float,
        optimizer: Optimizer | None = None,
        observer: Notes | None = None,
        **settings: Any,
    ) -> LoopResult:
        scripted_server.script = model
        access = open_access(None, retries=0, concurrency=1, temperature=temperature)
        system = memory()
        return optimize(
            evaluator=Evaluator(system, access, "short_contains", tmp_path / "memories"),
            splits=world(),
            seed_candidate=SEED,
            settings=LoopSettings(rounds=1, proposals=2, **settings),
            access=access,
            failures=Failures(survival, access, system.operations),
            observer=observer or Notes(lambda: 0),
            optimizer=optimizer or open_optimizer("closed-loop"),
        )

    return run_it


def test_a_challenger_that_was_lucky_once_does_not_become_the_champion(run: Run) -> None:
    result = run(Lucky(), 0.7)
    (record,) = result.rounds
    assert not record.accepted
    assert result.champion_candidate == SEED
    assert any(str(rewrite.gate).startswith(GateOutcome.UNCONFIRMED) for rewrite in record.rewrites)


def test_one_that_is_ahead_again_does_and_the_noise_is_measured_on_the_test(run: Run) -> None:
    result = run(WeakModel("answer"), 0.7)
    assert result.rounds[0].accepted
    assert result.noise is not None
    # This model replies the same each time, whatever its temperature.
    assert (result.noise.noise, result.noise.changed, result.noise.questions) == (0.0, 0, 4)


def test_the_noise_counts_what_the_same_prompts_reply_otherwise(run: Run) -> None:
    result = run(Lucky(), 0.7)
    assert result.noise is not None
    assert result.noise.changed > 0
    assert result.noise.noise > 0


class Interrupted(Notes):
    """Ctrl-C while the noise is measured."""

    def progress(self, phase: str, done: int, total: int, failed: int = 0) -> None:
        if phase == "noise floor":
            raise KeyboardInterrupt


def test_a_verdict_that_is_reached_is_told_whatever_ends_the_measurement_of_the_noise(run: Run) -> None:
    notes = Interrupted(lambda: 0)
    with pytest.raises(KeyboardInterrupt):
        run(WeakModel("answer"), 0.7, observer=notes)
    (verdict,) = notes.verdicts
    assert (verdict.delta > 0, verdict.noise) == (True, None)


def test_a_deterministic_model_is_not_asked_twice(run: Run) -> None:
    lucky = Lucky()
    result = run(lucky, 0.0)
    assert result.rounds[0].accepted
    assert result.noise is None
    assert set(lucky.asked.values()) == {1}


class LuckyOrSteady(Lucky):
    """A lucky prompt is right everywhere, the first time; a steady one is always right, but on one conversation."""

    def __call__(self, body: dict[str, Any]) -> Reply | str:
        text = prompt_of(body)
        self.cures = ["Be lucky.", "Be steady."]
        asked = text.rpartition("Question:")[2]
        reply = super().__call__(body) if "Be lucky." in text else WeakModel.__call__(self, body)
        return "something else" if "Be steady." in text and "validation0" in asked else reply


def lucky_then_steady(tuning: Tuning, /) -> str:
    with CandidateSearch(tuning, "theirs") as candidates:
        for line in ("Be lucky.", "Be steady."):
            text = f"{line}\n{tuning.seed['answer']}"
            candidates.measure({**tuning.seed, "answer": text}, tuning.validation, line)
            candidates.measure({**tuning.seed, "answer": text}, tuning.train, line)
    return "all tried"


@pytest.mark.parametrize(
    ("temperature", "approve", "why"),
    [
        (0.7, None, f"{GateOutcome.UNCONFIRMED}, though 1.000 on 3 validation conversations, the best so far"),
        (
            0.0,
            lambda rewrite, before: "Be lucky." not in rewrite.text,
            "declined by hand, though 1.000 on 3 validation conversations, the best so far",
        ),
    ],
)
def test_later_trials_are_compared_with_the_champion_and_not_with_what_was_refused(
    run: Run, temperature: float, approve: Any, why: str
) -> None:
    asked: list[str] = []

    def noting(rewrite: RewriteRecord, before: str) -> bool:
        asked.append(rewrite.reason)
        return approve is None or approve(rewrite, before)

    result = run(LuckyOrSteady(), temperature, lucky_then_steady, approve=noting)
    assert result.champion_candidate["answer"] == f"Be steady.\n{SEED['answer']}"
    assert [str(each.gate) for record in result.rounds for each in record.rewrites] == [
        why,
        "0.667 on 3 validation conversations, the best so far",
    ]
    assert asked == ["Be lucky.", "Be steady."]
