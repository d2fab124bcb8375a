"""Runs through an endpoint that misbehaves end as those through a sound one, or say why they do not."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Reply, ScriptedServer, prompt_of
from scripted_world import WeakModel, kind_of, memory, world

from attribution.methods import survival
from experiments.systems.fact_memory import FactMemory
from optimizer.evaluation.evaluator import Evaluator
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import open_optimizer
from optimizer.tuning.failures import Failures
from optimizer.tuning.results import LoopResult, LoopSettings
from tracing.errors import RunError
from tracing.llm.access import ModelAccess
from tracing.llm.http import endpoint

BASELINE = {name: spec.text for name, spec in FactMemory.prompts.items()}
Script = Callable[[dict[str, Any]], Reply | str]

FAULTS = {
    "429": Reply("slow down", status=429, headers={"Retry-After": "0.01"}),
    "500": Reply("out of order", status=500),
    "503": Reply("overloaded", status=503),
    "timeout": Reply(delay=1.0),
    "reset": Reply(reset=True),
    "truncated": Reply("half of this is lost", drop=True),
    "not JSON": Reply(raw=b"<html>gateway</html>"),
}


class Silent:
    """Nobody is told."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *told, **more: None


@pytest.fixture
def run(
    scripted_server: ScriptedServer,
    open_access: Callable[..., ModelAccess],
    tmp_path: Path,
) -> Callable[[Script], LoopResult]:
    """Runs the loop through the scripted server, with little patience; each time with empty caches."""

    def run_it(script: Script) -> LoopResult:
        scripted_server.script = script
        folder = tmp_path / f"memories{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        system = memory()
        access = open_access(cache=False, retries=3, timeout_s=0.5)
        return optimize(
            evaluator=Evaluator(system, access, "short_contains", folder),
            splits=world(test=3),
            baseline=BASELINE,
            settings=LoopSettings(rounds=2, proposals=2, seed=0),
            access=access,
            failures=Failures(survival, access, system.operations),
            observer=Silent(),
            optimizer=open_optimizer("closed-loop"),
        )

    return run_it


_SOUND: list[LoopResult] = []


@pytest.fixture
def sound(run: Callable[[Script], LoopResult]) -> LoopResult:
    """What the model that answers badly leads to on a sound endpoint; run once for all tests."""
    if not _SOUND:
        _SOUND.append(run(WeakModel("answer")))
    return _SOUND[0]


def faulty(script: Script, kind: str, rate: float) -> Script:
    """`script`, but the fault in a share of the requests, the same ones each time."""
    drawn = random.Random(f"{kind} {rate}")  # noqa: S311

    def reply(body: dict[str, Any]) -> Reply | str:
        return FAULTS[kind] if drawn.random() < rate else script(body)

    return reply


def without_costs(result: LoopResult) -> LoopResult:
    """The result but for what failed calls cost."""
    rounds = tuple(replace(record, calls_made=0, tokens=0) for record in result.rounds)
    return replace(result, rounds=rounds, calls=replace(result.calls, made=0, cached=0, without_reuse=0))


@pytest.mark.slow
@pytest.mark.parametrize("rate", [pytest.param(0.01, marks=pytest.mark.thorough), 0.1])
@pytest.mark.parametrize("kind", FAULTS)
def test_passing_faults_change_no_score(
    run: Callable[[Script], LoopResult], sound: LoopResult, kind: str, rate: float
) -> None:
    assert sound.champion_candidate != BASELINE
    assert without_costs(run(faulty(WeakModel("answer"), kind, rate))) == without_costs(sound)


@pytest.mark.slow
@pytest.mark.parametrize("reply", [FAULTS["503"], Reply("no more tokens this minute", status=429)], ids=["503", "429"])
def test_an_outage_is_waited_out(run: Callable[[Script], LoopResult], sound: LoopResult, reply: Reply) -> None:
    """Two minutes of it are two seconds here: first wait and patience are scaled alike."""
    model, asked = WeakModel("answer"), [0]
    back = [0.0]

    def out(body: dict[str, Any]) -> Reply | str:
        asked[0] += 1
        if asked[0] == 20:
            back[0] = time.monotonic() + 2.0
        return reply if time.monotonic() < back[0] else model(body)

    assert without_costs(run(out)) == without_costs(sound)


def test_an_outage_without_end_is_told_and_nothing_is_scored(
    run: Callable[[Script], LoopResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "OUTAGE_S", 0.2)
    model, asked = WeakModel("answer"), [0]

    def out(body: dict[str, Any]) -> Reply | str:
        asked[0] += 1
        return FAULTS["503"] if asked[0] >= 6 else model(body)

    with pytest.raises(RunError, match=r"cannot be scored with the baseline's prompts: .*HTTP 503 overloaded"):
        run(out)


def test_a_model_that_stays_silent_is_believed(run: Callable[[Script], LoopResult]) -> None:
    """It says nothing to one question, whatever is done: a wrong answer, not a fault."""
    model = WeakModel("answer")

    def mute(body: dict[str, Any]) -> Reply | str:
        silent = kind_of(body) == "answer" and "Bodovalidation1" in prompt_of(body).rpartition("Question:")[2]
        return "" if silent else model(body)

    assert run(mute).baseline["validation"].score == pytest.approx(2 / 6)
