"""`memtune ui` over a real store, as a process of its own."""

import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from run_shapes import loop_result, run_folder, summary

from experiments.mlflow_tracking import server_ui
from experiments.mlflow_tracking.server_ui import LOG, page_of_interest, require_store, start_ui, stop_ui
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.runs.folder import LOCK, RunFolder
from experiments.runs.lock import locked
from experiments.runs.summary import SummaryMlflow
from tracing.errors import RunError

ROOT = Path(__file__).resolve().parents[2]


def get(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=10) as reply:  # noqa: S310 (http on loopback)
        return bytes(reply.read())


@pytest.mark.slow
def test_the_ui_shows_a_home_on_loopback_and_leaves_no_process_behind(mlflow_home: Path) -> None:
    command = [sys.executable, "-m", "experiments.command", "ui", "--home", str(mlflow_home)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[0].partition("/#")[0]
            assert address.startswith("http://127.0.0.1:"), process.stderr and process.stderr.read()
            found = get(f"{address}/ajax-api/2.0/mlflow/experiments/get-by-name?experiment_name=empty")
            location = json.loads(found)["experiment"]["artifact_location"]
            assert location.startswith((mlflow_home / "artifacts").as_uri())
            assert b"MLflow" in get(address)
            for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
                asked = urllib.request.Request(f"{address}/ajax-api/2.0/mlflow/runs/search", b"{}", headers)  # noqa: S310
                with pytest.raises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(asked, timeout=10)  # noqa: S310
                assert refused.value.code == 403, headers
            port = int(address.rpartition(":")[2])
            with pytest.raises(RunError, match="taken"):
                start_ui(mlflow_home, port=port)
        finally:
            os.kill(process.pid, signal.SIGTERM)
        assert process.wait(15) == 0
    assert not answers(port)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["starting", "serving"])
def test_the_ui_ends_with_the_command_that_started_it_also_where_that_is_killed(mlflow_home: Path, moment: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "experiments.command", "ui", "--home", str(mlflow_home), "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        if moment == "serving":
            assert process.stdout.readline().startswith("http://127.0.0.1:")
        while not (servers := children_of(children_of([process.pid]))) and process.poll() is None:
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
    until = time.monotonic() + 10
    while ((left := still_running(servers)) or answers(port)) and time.monotonic() < until:
        time.sleep(0.05)
    assert servers
    assert left == []
    assert not answers(port)


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def processes() -> dict[int, int]:
    """Each process that has not ended, and its parent."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    return {int(pid): int(parent) for pid, parent, state in map(str.split, listed.splitlines()) if state[0] != "Z"}


def children_of(parents: Sequence[int]) -> list[int]:
    return [pid for pid, parent in processes().items() if parent in parents]


def still_running(numbers: Sequence[int]) -> list[int]:
    return sorted(set(numbers) & set(processes()))


@pytest.mark.slow
def test_a_server_that_ends_by_itself_ends_the_command_with_an_error(mlflow_home: Path) -> None:
    command = [sys.executable, "-m", "experiments.command", "ui", "--home", str(mlflow_home)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        for server in children_of(children_of([process.pid])):
            os.kill(server, signal.SIGKILL)
        assert process.wait(15) == 2
        said = process.stderr.read()
    assert said.endswith(f"memtune: the MLflow UI ended by itself; {mlflow_home / LOG} says why\n")


def test_a_home_whose_runs_are_in_another_store_says_which(tmp_path: Path) -> None:
    for second in range(2):
        folder = run_folder(tmp_path, second)
        link = SummaryMlflow(tracking_uri=f"http://host{second}:5000", experiment_id="1", run_id="r")
        folder.write_summary(summary(run_id=folder.id, mlflow=link))
    with pytest.raises(RunError, match="has no MLflow store; its latest run is in http://host1:5000, so look at it"):
        require_store(tmp_path)


def folder_with_curve(home: Path) -> RunFolder:
    """A run that has the baseline's validation score."""
    folder = run_folder(home, 3)
    link = SummaryMlflow(tracking_uri=store_uri(home), experiment_id="1", run_id="r3")
    folder.write_summary(summary(loop_result(stopped="running"), run_id=folder.id, mlflow=link))
    return folder


def test_the_page_is_that_of_the_run_in_progress_else_of_the_latest_that_finished(tmp_path: Path) -> None:
    pages = []
    for second, stopped in enumerate(("all rounds done", "running", "interrupted")):
        folder = run_folder(tmp_path, second)
        link = SummaryMlflow(tracking_uri=store_uri(tmp_path), experiment_id="1", run_id=f"r{second}")
        result = loop_result(verdict=None, stopped=stopped)
        folder.write_summary(summary(result, run_id=folder.id, mlflow=link))
        pages.append(page_of_interest(tmp_path))
        if stopped == "running":
            with locked(folder.path / LOCK):
                pages.append(page_of_interest(tmp_path))
    finished = "/#/experiments/1/runs/r0"
    assert pages == [finished, finished, "/#/experiments/1/runs/r1", finished]
    in_progress = folder_with_curve(tmp_path)
    with locked(in_progress.path / LOCK):
        assert page_of_interest(tmp_path) == "/#/experiments/1/runs/r3/model-metrics"


def test_the_page_of_the_latest_run_is_named_only_where_that_run_is(tmp_path: Path) -> None:
    for second, uri, page in ((0, store_uri(tmp_path), "/#/experiments/1/runs/r"), (1, "http://host:5000", "")):
        folder = run_folder(tmp_path, second)
        link = SummaryMlflow(tracking_uri=uri, experiment_id="1", run_id="r")
        folder.write_summary(summary(run_id=folder.id, mlflow=link))
        assert page_of_interest(tmp_path) == page


def test_a_log_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / LOG).mkdir()
    with pytest.raises(RunError, match=f"{LOG}: cannot be written .*; make it writable"):
        start_ui(tmp_path)


@pytest.mark.slow
def test_two_that_start_at_once_each_show_their_own_home(mlflow_home: Path, tmp_path: Path) -> None:
    """Each is at its own address, though both look for the usual port first."""
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(mlflow_home / "mlflow.db", other)
    with ThreadPoolExecutor() as together:
        started = list(together.map(start_ui, [mlflow_home, other]))
    try:
        assert len({address for _, address in started}) == 2
        for (_, address), home in zip(started, (mlflow_home, other), strict=True):
            made = urllib.request.Request(  # noqa: S310 (http on loopback)
                f"{address}/ajax-api/2.0/mlflow/experiments/create",
                json.dumps({"name": f"of {home.name}"}).encode(),
                {"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(made, timeout=60) as reply:  # noqa: S310 (http on loopback)
                number = json.load(reply)["experiment_id"]
            found = json.loads(get(f"{address}/ajax-api/2.0/mlflow/experiments/get?experiment_id={number}"))
            assert found["experiment"]["artifact_location"].startswith((home / "artifacts").as_uri())
    finally:
        for process, _ in started:
            stop_ui(process)


@pytest.mark.parametrize(("logged", "told"), [("", "may be busy"), ("ImportError: mlflow", "ui.log says why")])
def test_a_ui_that_does_not_answer_is_told_with_what_its_log_has(tmp_path: Path, logged: str, told: str) -> None:
    log = tmp_path / "ui.log"
    log.write_text(logged)
    clock = itertools.count(step=server_ui.READY_SECONDS)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as silent:
        with pytest.raises(RunError, match=told):
            server_ui._wait(silent, "http://127.0.0.1:9", log, lambda: float(next(clock)))
        silent.kill()
