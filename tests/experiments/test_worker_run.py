"""A system in an environment of its own through the whole loop, and the same run again from the cache."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_server import ScriptedServer

from experiments.command import main
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.runs.folder import RunFolder
from experiments.systems.worker.handle import close_pools


def asked(server: ScriptedServer) -> tuple[int, int]:
    """Requests of chat and embedding without the small ones that a run begins with."""
    return server.asked, sum(body["input"] != ["hello"] for body in server.embedding_requests)


@pytest.mark.slow
def test_a_run_of_mem0_2_ends_and_the_same_run_again_makes_no_new_call(
    mlflow_home: Path,
    tmp_path: Path,
    environments: Callable[[str], None],
    scripted_server: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    environments("mem0@2")
    monkeypatch.chdir(tmp_path)
    endpoint = f"base_url: '{scripted_server.base_url}', retries: 0"
    Path("mem0.yaml").write_text(
        "system: mem0@2\nlimits: {conversations: 3, sessions: 1, questions: 2}\nrounds: 1\nproposals: 1\n"
        f"concurrency: 2\nmodels:\n  task: {{model: m, {endpoint}}}\n  embedding: {{model: e, {endpoint}}}\n"
        f"tracking: {{uri: '{store_uri(mlflow_home)}', experiment: {tmp_path.name}}}\n"
    )

    def nothing_found(body: dict[str, Any]) -> str:
        return json.dumps({"memory": []}) if "response_format" in body else "no idea"

    scripted_server.script = nothing_found

    def memtune(*arguments: str) -> str:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        said = capsys.readouterr()
        assert caught.value.code == 0, said.err
        return said.out + said.err

    said = memtune("run", "mem0.yaml", "--out", "run")
    assert "Mem0 searched by meaning alone" in said + Path("run/report.html").read_text()
    found = RunFolder(Path("run")).summary()
    assert found.rounds[1].edited == ("extract",)
    made = asked(scripted_server)
    assert min(made) > 5
    close_pools()
    memtune("run", "mem0.yaml", "--out", "again")
    assert asked(scripted_server) == made
    again = RunFolder(Path("again")).summary()
    assert again.rounds[1].edited == ("extract",)


def test_a_missing_environment_is_told_in_one_line_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMTUNE_SYSTEMS", str(tmp_path / "none"))
    arguments = ["--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--out", "run"]
    for system, said in (
        ("mem0@2", "not installed: memtune system install mem0@2"),
        ("mem0@5", "mem0 has no version '5'; did you mean 'mem0@2'?; choose one of mem0@0.1, mem0@1.0, mem0@2"),
    ):
        with pytest.raises(SystemExit) as caught:
            main(["run", "--system", system, *arguments])
        err = capsys.readouterr().err
        assert caught.value.code == 2
        assert said in err
        assert err.count("\n") == 1
    assert not Path("run").exists()
