"""Whatever stops a run, what it leaves is complete or goes on to the same result, and its home serves the next run."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from full_disk import Disk, mounted
from gold_runs import GoldModel, Whole, live, outcome, started, without_costs
from scripted_server import Reply, ScriptedServer

from experiments.runs.folder import RunFolder
from tracing.llm.settings import AT_ONCE

RUN = ["run", "run.yaml", "--home", "disk/home"]


class Stage(NamedTuple):
    """Where runs are stopped: `disk/home` lies on a disk that can be filled."""

    disk: Disk
    server: ScriptedServer


@pytest.fixture
def stage(
    whole: Whole, configured: Callable[..., None], scripted_server: ScriptedServer, tmp_path: Path
) -> Iterator[Stage]:
    configured()
    with mounted(tmp_path / "disk", 32) as disk:
        yield Stage(disk, scripted_server)


def stopped_by(number: int, seconds: float, runs: int = 1) -> None:
    """Start runs and send each a signal after some time, if it still works."""
    processes = [started(RUN) for _ in range(runs)]
    processes[0].join(seconds)
    for process in processes:
        if process.is_alive():
            assert process.pid is not None
            os.kill(process.pid, number)
    for process in processes:
        process.join()


def in_set_up(stage: Stage) -> None:
    stopped_by(signal.SIGKILL, random.uniform(0.2, 3.0))  # noqa: S311


def asked_to_end_in_set_up(stage: Stage) -> None:
    stopped_by(signal.SIGTERM, random.uniform(0.2, 3.0))  # noqa: S311


def interrupted(stage: Stage) -> None:
    stopped_by(signal.SIGINT, random.uniform(5.0, 9.0))  # noqa: S311


def killed(stage: Stage) -> None:
    stopped_by(signal.SIGKILL, random.uniform(5.0, 9.0))  # noqa: S311


def two_killed_at_once(stage: Stage) -> None:
    stopped_by(signal.SIGKILL, random.uniform(2.0, 9.0), runs=2)  # noqa: S311


def full_disk_at_the_start(stage: Stage) -> None:
    for leave in (0, 4096, 100_000, 5_000_000):
        stage.disk.empty()
        stage.disk.fill(leave)
        assert live(RUN, None) == 2
    stage.disk.empty()


def full_disk_on_the_way(stage: Stage) -> None:
    before, model = stage.server.asked, GoldModel()

    def fill(body: dict[str, Any]) -> Reply:
        if stage.server.asked - before == 40:
            stage.disk.fill(leave=8192)
        return model(body)

    stage.server.script = fill
    assert live(RUN, None) == 2
    stage.disk.empty()
    stage.server.script = model


def a_store_that_was_never_finished(stage: Stage) -> None:
    stage.disk.path.joinpath("home").mkdir()
    with closing(sqlite3.connect(stage.disk.path / "home" / "mlflow.db")) as store:
        store.execute("CREATE TABLE _alembic_tmp_runs (x)")
        store.execute("CREATE TABLE experiments (experiment_id INTEGER)")


STOPS = (
    *(two_killed_at_once, in_set_up, asked_to_end_in_set_up, interrupted, killed),
    *(full_disk_on_the_way, full_disk_at_the_start, a_store_that_was_never_finished),
)


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("stop", STOPS)
def test_what_is_left_goes_on_to_the_same_result_and_the_next_run_has_it_too(
    stage: Stage, whole: Whole, stop: Callable[[Stage], None]
) -> None:
    home = Path("disk/home")
    before = stage.server.asked
    stop(stage)
    left = RunFolder.all(home)
    for folder in left:
        Path("output.txt").unlink()
        assert live(["run", "--resume", str(folder.path), "--home", str(home)], None) == 0
        assert "warning" not in Path("output.txt").read_text()
        assert unspent(outcome(folder)) == unspent(whole.outcome)
    if len(left) == 1:
        assert outcome(left[0]) == whole.outcome
    assert live(RUN, None) == 0
    latest = RunFolder.find(home, "latest")
    assert latest not in left
    assert unspent(outcome(latest)) == unspent(whole.outcome)
    if stop is not two_killed_at_once:
        # Only of calls that were under way at a kill nobody knows that they were paid.
        assert whole.calls <= stage.server.asked - before <= whole.calls + (AT_ONCE if stop is killed else 0)
    assert {path.name for path in home.iterdir() if "unfinished" not in path.name} == {
        *("runs", "cache", "artifacts", "mlflow.db", ".mlflow.db.lock")
    }


def unspent(found: dict[str, Any]) -> dict[str, Any]:
    """The result of a run, without what it had to pay for it in a home where others had paid already."""
    return {key: value for key, value in without_costs(found).items() if key != "calls"}
