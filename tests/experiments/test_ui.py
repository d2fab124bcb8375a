"""`memtune ui` over a real store, as a process of its own."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from experiments.ui import start_ui
from tracing.errors import RunError

ROOT = Path(__file__).resolve().parents[2]


def get(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=10) as reply:  # noqa: S310 (http on loopback)
        return bytes(reply.read())


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
            port = int(address.rpartition(":")[2])
            with pytest.raises(RunError, match="taken"):
                start_ui(mlflow_home, port=port)
        finally:
            os.kill(process.pid, signal.SIGTERM)
        assert process.wait(15) == 0
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
