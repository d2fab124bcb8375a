"""The trace memory through the whole loop, on the data set of agent traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripted_server import ScriptedServer, prompt_of

from experiments.command import main
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.runs.folder import RunFolder


def model(body: dict[str, Any]) -> str:
    """States nothing, and answers with the first event that it is shown, in too many words unless it is told better."""
    request, schema = prompt_of(body), json.dumps(body.get("response_format") or {})
    if '"facts"' in schema:
        return '{"facts": []}'
    if '"event"' in schema:
        return '{"event": "NONE", "id": "1"}'
    shown = [line[2:] for line in request.splitlines() if line.startswith("- ")]
    return f"As far as I can make out, it is somewhere in this: {shown[0] if shown else 'nothing'}"


@pytest.mark.slow
def test_it_is_tuned_and_the_same_run_asks_nothing_again(
    mlflow_home: Path,
    tmp_path: Path,
    scripted_server: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    endpoint = f"base_url: '{scripted_server.base_url}', retries: 0"
    Path("run.yaml").write_text(
        "system: trace-memory\ndataset: agent-traces\nlimits: {conversations: 3, sessions: 2, questions: 2}\n"
        "optimizer: closed-loop\nrounds: 1\nproposals: 1\n"
        f"models:\n  task: {{model: m, {endpoint}}}\n  embedding: {{model: e, {endpoint}}}\n"
        f"tracking: {{uri: '{store_uri(mlflow_home)}', experiment: {tmp_path.name}}}\n"
    )
    scripted_server.script = model

    def run(out: str) -> RunFolder:
        with pytest.raises(SystemExit) as caught:
            main(["run", "run.yaml", "--out", out])
        assert caught.value.code == 0, capsys.readouterr().err
        return RunFolder(Path(out))

    found = run("first").summary()
    assert found.stopped == "all rounds done"
    assert found.rounds[0].edited
    assert set(found.rounds[0].edited) <= {"summarise", "merge", "answer"}
    asked = scripted_server.asked
    assert asked > 0
    assert run("second").summary().stopped == found.stopped
    assert scripted_server.asked == asked
