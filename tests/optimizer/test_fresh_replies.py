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
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import open_optimizer
from optimizer.search.rounds import UNCONFIRMED
from optimizer.tuning.failures import Failures
from optimizer.tuning.results import LoopResult, LoopSettings
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
    def run_it(model: Callable[[dict[str, Any]], Reply | str], temperature: float) -> LoopResult:
        scripted_server.script = model
        access = open_access(None, retries=0, concurrency=1, temperature=temperature)
        system = memory()
        return optimize(
            evaluator=Evaluator(system, access, "short_contains", tmp_path / "memories"),
            splits=world(),
            seed_candidate=SEED,
            settings=LoopSettings(rounds=1, proposals=2),
            access=access,
            failures=Failures(survival, access, system.operations),
            observer=Notes(lambda: 0),
            optimizer=open_optimizer("closed-loop"),
        )

    return run_it


def test_a_challenger_that_was_lucky_once_does_not_become_the_champion(run: Run) -> None:
    result = run(Lucky(), 0.7)
    (record,) = result.iterations
    assert not record.accepted
    assert result.champion_candidate == SEED
    assert any((attempt.gate or "").startswith(UNCONFIRMED) for attempt in record.attempts)


def test_one_that_is_ahead_again_does_and_the_noise_is_measured_on_the_test(run: Run) -> None:
    result = run(WeakModel("answer"), 0.7)
    assert result.iterations[0].accepted
    assert result.noise is not None
    # This model replies the same each time, whatever its temperature.
    assert (result.noise.noise, result.noise.changed, result.noise.questions) == (0.0, 0, 4)


def test_the_noise_counts_what_the_same_prompts_reply_otherwise(run: Run) -> None:
    result = run(Lucky(), 0.7)
    assert result.noise is not None
    assert result.noise.changed > 0
    assert result.noise.noise > 0


def test_a_deterministic_model_is_not_asked_twice(run: Run) -> None:
    lucky = Lucky()
    result = run(lucky, 0.0)
    assert result.iterations[0].accepted
    assert result.noise is None
    assert set(lucky.asked.values()) == {1}
