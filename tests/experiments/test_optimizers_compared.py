"""`memtune bench optimize`: runs at equal budgets of calls beside each other; the same command goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from gold_runs import GoldModel
from scripted_server import ScriptedServer

from experiments.command import main
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.runs.folder import RunFolder

pytestmark = pytest.mark.slow

CALLS = 60


def test_each_optimizer_has_the_same_calls_and_a_finished_run_is_not_repeated(
    mlflow_home: Path,
    tmp_path: Path,
    scripted_server: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    scripted_server.script = GoldModel(delay=0.001)
    endpoint = f"base_url: '{scripted_server.base_url}', retries: 0, api_key: sk-test"
    Path("bench.yaml").write_text(
        "limits: {conversations: 9, sessions: 2, questions: 3}\nproposals: 3\nrounds: 1\n"
        f"models:\n  task: {{model: m, {endpoint}}}\n  embedding: {{model: e, {endpoint}}}\n"
        f"tracking: {{uri: '{store_uri(mlflow_home)}', experiment: {tmp_path.name}}}\n"
    )
    searches = ["--optimizer", "closed-loop", "--optimizer", "random", "--calls", str(CALLS), "--folder", "runs"]

    def compared() -> str:
        with pytest.raises(SystemExit) as ended:
            main(["bench", "optimize", "bench.yaml", "--system", "fact-memory", *searches])
        assert ended.value.code == 0
        return capsys.readouterr().out

    shown = compared()
    runs = [RunFolder(path) for path in sorted(Path("runs").glob("*/seed-0/run"))]
    summaries = {summary.optimizer: summary for summary in (run.summary() for run in runs)}
    assert set(summaries) == {"closed-loop", "random"}
    assert all(0 < (summary.search.calls if summary.search else 0) <= CALLS for summary in summaries.values())
    assert "closed-loop, seed-0" in " ".join(shown.split())

    asked = scripted_server.asked
    assert compared() == shown
    assert scripted_server.asked == asked
