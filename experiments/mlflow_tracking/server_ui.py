"""The MLflow UI over a home's store, on the loopback interface."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from experiments.mlflow_tracking.sqlite_store import artifacts_beside, is_ready, store_file, store_uri
from experiments.runs.comparison import list_runs
from experiments.runs.folder import RunFolder
from experiments.runs.summary import Summary, SummaryMlflow
from tracing.errors import RunError
from tracing.llm.serving.child_process import start_child

HOST = "127.0.0.1"
USUAL_PORT = 5000
READY_SECONDS = 60.0
LOG = "mlflow-ui.log"
"""File of the home with what the UI's server says."""

QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "GIT_PYTHON_REFRESH": "quiet",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
}
"""Keeps MLflow and its imports off the network; without the first its server can hang offline."""


_APP = "mlflow.server.fastapi_app:app"
_STORE, _ARTIFACTS = "_MLFLOW_SERVER_FILE_STORE", "_MLFLOW_SERVER_ARTIFACT_ROOT"
"""What `mlflow ui` starts, and where it says what to show."""


def require_store(home: Path) -> None:
    """Refuse a home without an MLflow store.

    Raises:
        RunError: no run was started there yet, or its runs are in another store.
        ConfigError: the store cannot be used.
    """
    if not is_ready(store_file(home)):
        elsewhere = [link.tracking_uri for link in _links(home) if link.tracking_uri != store_uri(home)]
        if elsewhere:
            raise RunError(f"{home}: has no MLflow store; its latest run is in {elsewhere[0]}, so look at it there")
        raise RunError(f"{home}: has no runs yet; start one with `memtune run demo`, or give another --home")


def page_of_interest(home: Path) -> str:
    """Path in the UI of the run in progress, else of the latest run that finished, else of the latest.

    Of a run in progress it is that of its curves, once there is one. It is empty if the run is in another store, or
    not yet in one.
    """

    def interest(run: tuple[RunFolder, Summary]) -> int:
        folder, summary = run
        return 1 if summary.finished else 2 if folder.process is not None else 0

    runs = [(folder, summary) for folder, summary in list_runs(home) if isinstance(summary, Summary)]
    if not runs:
        return ""
    run = max(runs, key=interest)
    link = run[1].mlflow
    if link is None or link.tracking_uri != store_uri(home):
        return ""
    tab = "/model-metrics" if interest(run) == 2 and "validation" in run[1].baseline else ""
    return f"/#/experiments/{link.experiment_id}/runs/{link.run_id}{tab}"


def start_ui(home: Path, *, port: int | None = None) -> tuple[subprocess.Popen[bytes], str]:
    """Start MLflow's server and return its process and address once it answers. The caller ends the process.

    If the caller is killed, the process ends too.

    Args:
        port: to listen on; by default 5000, or any free one if that is taken.

    Raises:
        RunError: the port is taken, the home cannot be written to, or the UI does not start.
    """
    with _listening(port) as sock:
        address = f"http://{HOST}:{sock.getsockname()[1]}"
        log = home / LOG
        # `mlflow ui` imports all of MLflow to start this, which imports it again: seconds before anything is seen.
        # It is given the socket: of two that listen on their own, one would take the other's answers for its own.
        command = [sys.executable, "-m", "uvicorn", "--fd", str(sock.fileno()), "--workers", "1", _APP]
        env = {**os.environ, **QUIET, _STORE: store_uri(home), _ARTIFACTS: artifacts_beside(store_file(home))}
        try:
            output = log.open("wb")
        except OSError as error:
            raise RunError(f"{log}: cannot be written ({error.strerror}); make it writable") from None
        with output:
            process = start_child(command, output=output, env=env, sockets=[sock])
    try:
        _wait(process, address, log)
    except BaseException:
        stop_ui(process)
        raise
    return process, address


def stop_ui(process: subprocess.Popen[bytes], *, patience: float = 5.0) -> None:
    """End the UI and its workers."""
    import signal

    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(patience)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
        else:
            break
    process.wait(patience)


def _links(home: Path) -> list[SummaryMlflow]:
    """Where MLflow has the runs of a home, latest first."""
    summaries = [summary for _, summary in list_runs(home) if isinstance(summary, Summary)]
    return [summary.mlflow for summary in summaries if summary.mlflow is not None]


def _wait(
    process: subprocess.Popen[bytes], address: str, log: Path, clock: Callable[[], float] = time.monotonic
) -> None:
    end = clock() + READY_SECONDS
    while clock() < end:
        if process.poll() is not None:
            raise RunError(f"the MLflow UI exited immediately; {log} says why")
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=2):  # noqa: S310 (http on loopback)
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    why = f"{log} says why" if log.stat().st_size else "the machine may be busy, so try again later"
    raise RunError(f"the MLflow UI did not answer within {READY_SECONDS:.0f} s; {why}")


def _listening(port: int | None) -> socket.socket:
    """A socket that listens on this port, or by default on the usual one, or any where that is taken."""
    for number in (port,) if port is not None else (USUAL_PORT, 0):
        with suppress(OSError):
            sock = socket.create_server((HOST, number))
            # Connections inherit it; uvicorn sets it only on sockets that it made itself.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
    raise RunError(f"--port {port}: taken; give another port, or leave it out for any free one")
