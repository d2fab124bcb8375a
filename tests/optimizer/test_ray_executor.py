"""On a Ray cluster of two nodes results are those of threads, and what dies there costs no call."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from own_steps import Deadly, Located
from ray_cluster import Once, RayCluster
from scripted_server import Reply, ScriptedServer
from scripted_world import WeakModel, memory, world
from test_steps_elsewhere import seen

from experiments.systems.fact_memory import FactMemory
from optimizer.cluster import ray_executor
from optimizer.cluster.ray_executor import RayExecutor, require_ray
from optimizer.cluster.worker import WorkerSetup
from optimizer.evaluation.evaluator import Evaluator
from optimizer.objectives.local_evaluation import LocalEvaluation
from optimizer.objectives.objectives import objectives_of
from tracing.errors import ConfigError
from tracing.llm.access import ModelAccess
from tracing.llm.forwarding.forwarded_calls import DEATHS
from tracing.systems.protocol import MemorySystem

Open = Callable[..., ModelAccess]
OnRay = Callable[..., RayExecutor]
BASELINE = {name: spec.text for name, spec in FactMemory.prompts.items()}
TALKS = [talk for group in world(4, 2, 2).named().values() for talk in group]
OWN = Path(__file__).parent


@pytest.fixture
def on_ray(ray_cluster: RayCluster) -> Iterator[OnRay]:
    """Opens an executor on the cluster."""
    opened: list[RayExecutor] = []

    def open_it(name: str, system: MemorySystem, **settings: Any) -> RayExecutor:
        setup = WorkerSetup.of(name, settings, (OWN,), system)
        opened.append(RayExecutor(setup, ray_cluster.address, threads=16))
        return opened[-1]

    yield open_it
    for each in opened:
        each.close()


PATIENCE_S = 60.0


def calls(server: ScriptedServer) -> int:
    return len(server.requests) + len(server.embedding_requests)


def slow(model: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Reply]:
    """The model, slow enough for several conversations to be under way."""
    return lambda body: Reply(str(model(body)), delay=0.05)


@pytest.mark.thorough
@pytest.mark.slow
def test_outcomes_and_credits_are_those_of_threads_and_both_nodes_work(
    open_access: Open, on_ray: OnRay, tmp_path: Path, scripted_server: ScriptedServer
) -> None:
    system, model = Located(str(tmp_path)), WeakModel("answer")
    on_cluster = False

    def workers() -> set[str]:
        return {path.name for path in tmp_path.iterdir() if path.name.isdigit()} - {str(os.getppid())}

    def patient(body: dict[str, Any]) -> str:
        """On the cluster it waits for the second node, whose worker may take longer to start than all of the work."""
        end = time.monotonic() + PATIENCE_S
        while on_cluster and len(workers()) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        return str(model(body))

    scripted_server.script = patient
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    executor = on_ray("own_steps:Located", system, folder=str(tmp_path))
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
    found, asked = [], []
    for kind in (None, executor):
        before, on_cluster = calls(scripted_server), kind is not None
        folder = tmp_path / f"memories {kind is None}"
        judging = Evaluator(system, open_access(cache=False), "short_contains", folder, executor=kind)
        outcomes = judging.evaluate(BASELINE, TALKS)
        local = LocalEvaluation(system, system.prompts, objectives_of(judging, {}), judging.access, kind)
        inputs = local.inputs("answer", outcomes)
        found.append([seen(outcomes), local.measure("answer", f"Be brief.\n{BASELINE['answer']}", inputs)])
        asked.append(calls(scripted_server) - before)
    assert found[0] == found[1]
    assert asked[0] == asked[1]
    assert len(workers()) == 2


@pytest.mark.thorough
def test_a_system_under_other_settings_runs_on_the_same_cluster(
    open_access: Open, on_ray: OnRay, tmp_path: Path, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = WeakModel()
    few, none = FactMemory(near=2.0), FactMemory(near=2.0, top_k=0)
    executor = on_ray("fact-memory", few, near=2.0)
    other = executor.of(WorkerSetup.of("fact-memory", {"near": 2.0, "top_k": 0}, (OWN,), none))
    base = Evaluator(few, open_access(), "short_contains", tmp_path / "memories", executor=executor)
    varied = base.of(none, other)
    scores = [[each.score for each in judging.evaluate(BASELINE, TALKS)] for judging in (base, varied, base)]
    assert scores == [[1.0] * len(TALKS), [0.5] * len(TALKS), [1.0] * len(TALKS)]


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("lost", ["a worker", "a node"])
def test_what_dies_in_the_middle_changes_no_result_and_no_reply_is_paid_again(
    open_access: Open,
    on_ray: OnRay,
    ray_cluster: RayCluster,
    tmp_path: Path,
    scripted_server: ScriptedServer,
    lost: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    scripted_server.script = slow(WeakModel())
    alone = Evaluator(memory(), open_access(cache=False), "short_contains", tmp_path / "here")
    here = alone.evaluate(BASELINE, TALKS)
    undisturbed = calls(scripted_server)
    do = ray_cluster.kill_worker if lost == "a worker" else ray_cluster.lose_node
    scripted_server.script = slow(Once(WeakModel(), 12, do))
    executor = on_ray("fact-memory", memory(), near=2.0)
    judging = Evaluator(memory(), open_access(cache=False), "short_contains", tmp_path / "there", executor=executor)
    there = judging.evaluate(BASELINE, TALKS)
    if lost == "a node":
        ray_cluster.replace_node()
    assert "a worker died, and the step begins again" in caplog.text
    assert seen(there) == seen(here)
    assert judging.calls == alone.calls
    assert calls(scripted_server) == 2 * undisturbed


@pytest.mark.thorough
def test_a_conversation_that_no_worker_survives_is_named_and_the_others_are_evaluated(
    open_access: Open, on_ray: OnRay, tmp_path: Path, scripted_server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    scripted_server.script = WeakModel()
    deadly = TALKS[1].id
    executor = on_ray("own_steps:Deadly", Deadly(deadly), deadly=deadly)
    judging = Evaluator(Deadly(deadly), open_access(), "short_contains", tmp_path, executor=executor)
    outcomes = judging.evaluate(BASELINE, TALKS[:3])
    assert [outcome.tainted is None for outcome in outcomes] == [True, False, True]
    assert f"{deadly}: {DEATHS} workers in turn died over it" in str(outcomes[1].tainted)
    assert caplog.text.count("a worker died") == DEATHS


@pytest.mark.thorough
def test_a_run_that_is_given_up_ends_its_tasks_and_leaves_the_cluster(
    open_access: Open, on_ray: OnRay, ray_cluster: RayCluster, tmp_path: Path, scripted_server: ScriptedServer
) -> None:
    import ray

    model = WeakModel()
    first = TALKS[0].speakers[0]
    scripted_server.script = lambda body: Reply(str(model(body)), delay=0 if first in str(body) else 3)
    executor = on_ray("fact-memory", memory(), near=2.0)
    judging = Evaluator(memory(), open_access(), "short_contains", tmp_path, executor=executor)

    def interrupt(done: int, total: int, failed: int) -> None:
        if done:
            assert ray_cluster.workers()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judging.evaluate(BASELINE, TALKS, progress=interrupt)
    assert len(judging.known_outcomes(BASELINE, TALKS)) < len(TALKS)
    until = time.monotonic() + 20
    while ray_cluster.workers() and time.monotonic() < until:
        time.sleep(0.1)
    assert ray_cluster.workers() == []
    assert ray.cluster_resources()["CPU"] == 2
    executor.close()
    assert not ray.is_initialized()
    assert on_ray("fact-memory", memory(), near=2.0)


@pytest.mark.thorough
@pytest.mark.slow
def test_a_worker_that_cannot_open_the_system_ends_the_run_with_the_reason(
    open_access: Open, on_ray: OnRay, tmp_path: Path
) -> None:
    executor = on_ray("fact-memory", Deadly("none"), near=2.0)
    judging = Evaluator(Deadly("none"), open_access(), "short_contains", tmp_path, executor=executor)
    with pytest.raises(ConfigError, match=r"on the worker .*: 'fact-memory' has other code than where the run is"):
        judging.evaluate(BASELINE, TALKS[:1])


def test_without_ray_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_executor.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"ray is not installed; pip install 'memtune\[ray\]'"):
        require_ray()
