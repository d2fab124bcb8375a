"""A run on a Ray cluster ends with what a run in threads ends with, and no key gets into what Ray keeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from gold_runs import Whole, curves, live, outcome
from ray_cluster import Once, RayCluster
from scripted_server import ScriptedServer

from experiments.command import main
from experiments.runs.folder import RunFolder

KEY = "sk-test"


@pytest.mark.thorough
@pytest.mark.slow
def test_a_run_on_ray_during_which_a_worker_is_killed_ends_as_one_in_threads(
    whole: Whole, configured: Callable[..., None], ray_cluster: RayCluster, scripted_server: ScriptedServer
) -> None:
    configured("ray")
    scripted_server.script = Once(scripted_server.script, 40, ray_cluster.kill_worker)
    before = scripted_server.asked
    command = ["run", "run.yaml", "--out", "there", "--home", "home1", "--executor", "ray"]
    assert live([*command, "--address", ray_cluster.address], None) == 0, Path("output.txt").read_text()
    folder = RunFolder(Path("there"))
    assert outcome(folder) == whole.outcome
    assert curves(folder) == whole.curves
    assert scripted_server.asked - before == whole.calls
    logs = [path.read_bytes() for path in Path("/tmp/ray/session_latest/logs").rglob("*") if path.is_file()]  # noqa: S108
    assert len(logs) > 5
    assert not any(KEY.encode() in log for log in logs)


@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_refused_in_one_line(
    configured: Callable[..., None], ray_cluster: RayCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    configured()
    with pytest.raises(SystemExit):
        main(["eval", "run.yaml", "--prompts", "baseline", "--executor", "ray", "--address", "127.0.0.1:1"])
    said = capsys.readouterr().err
    assert "executor.address: 127.0.0.1:1: no Ray answers there" in said
