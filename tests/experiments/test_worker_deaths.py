"""A run whose system works in an environment of its own ends the same, whatever dies on the way, and leaves nothing."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil
import pytest
from gold_runs import BEGUN, OUTPUT, Once, Whole, curves, live, outcome, started
from light_environment import make_light
from scripted_server import ScriptedServer

from experiments.runs.folder import RunFolder
from experiments.systems.worker.environment import Environment
from tracing.llm.settings import AT_ONCE
from tracing.plugins import look_in

NAME = f"distant-{os.getpid()}"
DISTANT = f"""
import os
import subprocess
import time

from experiments.systems.fact_memory import FactMemory
from experiments.systems.worker import in_worker


@in_worker(requirements=())
class Distant(FactMemory):
    name = "{NAME}"


@in_worker(requirements=(), name="{NAME}")
class Slow(FactMemory):
    name = "slow"

    def build(self, conversation, candidate, access):
        subprocess.Popen(["sleep", "600"])
        open("{{waiting}}", "w").close()
        time.sleep(600)
"""
SMALL = """system: {system}
limits: {{conversations: 5, sessions: 1, questions: 1}}
optimizer: closed-loop
rounds: 1
proposals: 1
budget: {{calls: 2000}}
concurrency: 3"""
ENDS_WITHIN_S = 10.0


@pytest.fixture(scope="module")
def environment(environments_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """Where the system works; its module lies in the folder of the environments."""
    folder = tmp_path_factory.mktemp("distant")
    (folder / "distant_memory.py").write_text(DISTANT.replace("{waiting}", str(folder / "waiting")))
    look_in(folder)
    found: Environment = import_module("distant_memory").Distant.environment
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MEMTUNE_SYSTEMS", str(environments_home))
        make_light(found)
    yield found
    sys.path.remove(str(folder))


@pytest.fixture
def distant(
    configured: Callable[..., None],
    environment: Environment,
    environments_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[..., None]]:
    """Configures a small run of the system; no process may be left in its environment in the end."""
    monkeypatch.setenv("MEMTUNE_SYSTEMS", str(environments_home))
    module = Path(str(environment.modules)) / "distant_memory.py"
    Path(module.name).symlink_to(module)

    def configure(experiment: str, system: str = "distant_memory:Distant") -> None:
        configured(experiment)
        config = Path("run.yaml")
        lines = config.read_text().splitlines()[4:]
        config.write_text("\n".join([SMALL.format(system=system), *lines]))

    yield configure
    assert left(environment) == []


_WHOLE: list[Whole] = []


@pytest.fixture
def undisturbed(distant: Callable[..., None], scripted_server: ScriptedServer) -> Whole:
    """The run without workers that nobody disturbs; run once for all tests."""
    if not _WHOLE:
        distant("undisturbed", "fact-memory")
        before = scripted_server.asked
        assert live(["run", "run.yaml", "--out", "undisturbed", "--home", "home0"], None) == 0, Path(OUTPUT).read_text()
        _WHOLE.append(Whole(*found_in("undisturbed"), scripted_server.asked - before))
    return _WHOLE[0]


def workers(environment: Environment) -> list[psutil.Process]:
    """The processes that run in an environment now."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if (process.info["cmdline"] or [""])[0] == str(environment.interpreter)
    ]


def left(environment: Environment) -> list[psutil.Process]:
    """The processes that are still there when they have had a moment to end."""
    end = time.monotonic() + ENDS_WITHIN_S
    while (found := workers(environment)) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def found_in(folder: str) -> tuple[dict[str, Any], Any]:
    """What a run ended with, but for the name of its system."""
    run = RunFolder(Path(folder))
    return {key: value for key, value in outcome(run).items() if key != "system"}, curves(run)


@pytest.mark.slow
def test_a_run_whose_workers_are_killed_in_their_builds_ends_as_one_without_workers(
    distant: Callable[..., None], environment: Environment, scripted_server: ScriptedServer, undisturbed: Whole
) -> None:
    distant("dies")
    killed = []

    def kill() -> None:
        for process in workers(environment):
            process.kill()
            killed.append(process.pid)

    before = scripted_server.asked
    scripted_server.script = Once(scripted_server.script, 6, kill)
    assert live(["run", "run.yaml", "--out", "dies", "--home", "dies-home"], None) == 0, Path(OUTPUT).read_text()
    assert killed
    assert found_in("dies") == undisturbed[:2]
    assert scripted_server.asked - before == undisturbed.calls


@pytest.mark.thorough
@pytest.mark.slow
def test_a_run_killed_while_workers_build_and_resumed_pays_no_call_twice(
    distant: Callable[..., None], environment: Environment, scripted_server: ScriptedServer, undisturbed: Whole
) -> None:
    distant("killed")
    model, before = scripted_server.script, scripted_server.asked
    arguments = ["run", "run.yaml", "--out", "killed", "--home", "killed-home"]
    for at in (5, 9):
        scripted_server.script = Once(model, at, lambda: os.kill(int(Path(BEGUN).read_text()), signal.SIGKILL))
        assert live(arguments, None) == -signal.SIGKILL, Path(OUTPUT).read_text()
        assert left(environment) == []
        arguments = ["run", "run.yaml", "--resume", "killed", "--home", "killed-home"]
    scripted_server.script = model
    assert live(arguments, None) == 0, Path(OUTPUT).read_text()
    assert found_in("killed") == undisturbed[:2]
    # At most the calls that were under way when the process was killed are paid again.
    assert undisturbed.calls <= scripted_server.asked - before <= undisturbed.calls + 2 * AT_ONCE


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.thorough)])
def test_ctrl_c_while_a_worker_builds_ends_the_run_and_all_that_the_worker_started(
    distant: Callable[..., None], environment: Environment, number: signal.Signals
) -> None:
    distant("interrupted", "distant_memory:Slow")
    waiting = Path(str(environment.modules)) / "waiting"
    waiting.unlink(missing_ok=True)
    process = started(["run", "run.yaml", "--out", "slow", "--home", "slow-home"])
    while not waiting.exists():
        assert process.is_alive(), Path(OUTPUT).read_text()
        time.sleep(0.05)
    begun = [child for each in workers(environment) for child in each.children(recursive=True)]
    assert begun
    os.kill(int(Path(BEGUN).read_text()), number)
    process.join(ENDS_WITHIN_S)
    assert process.exitcode == 130, Path(OUTPUT).read_text()
    assert psutil.wait_procs(begun, ENDS_WITHIN_S)[1] == []
