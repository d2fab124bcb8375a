"""A run with several optimizers: told apart in its folder, report and MLflow, resumed as one, refused as one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from memtune_command import MemtuneCommand
from mlflow.tracking import MlflowClient
from scripted_server import ScriptedServer

from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.runs.config import RunConfig
from experiments.runs.folder import RunFolder

LINES = "system: rag\nlimits: {conversations: 9, questions: 1}\nrounds: 1\nproposals: 2\n"


@pytest.mark.slow
@pytest.mark.usefixtures("wordy")
def test_what_each_optimizer_tried_and_spent_is_told_apart_and_the_run_resumes_without_a_call(
    memtune: MemtuneCommand, scripted_server: ScriptedServer, mlflow_home: Path
) -> None:
    memtune.configure("run.yaml", f"{LINES}optimizer: [local-search, random]\n")
    code, _, err = memtune("run", "run.yaml", "--out", "run")
    assert code == 0, err
    folder = RunFolder(Path("run"))
    found = folder.summary()
    assert found.optimizer == "local-search,random"
    assert found.champion["test"].score == 1
    of = {record.n: record.optimizer for record in found.rounds}
    assert set(of.values()) == {"local-search", "random", None}
    assert [record.accepted for record in found.rounds] == [each is None for each in of.values()]
    tried = [json.loads(line) for line in (folder.path / "rewrites.jsonl").read_text().splitlines()]
    assert all(each.get("optimizer") == of[each["round"]] for each in tried)
    assert found.search is not None
    costs = found.search.by_optimizer
    assert set(costs) == {"local-search", "random"}
    assert costs["local-search"].calls > 0
    report = (folder.path / "report.html").read_text()
    assert f"local-search with {costs['local-search'].calls:,} calls" in report
    assert ">race of all<" in report
    assert found.mlflow is not None
    client = MlflowClient(store_uri(mlflow_home))
    metrics = client.get_run(found.mlflow.run_id).data.metrics
    assert metrics["spending/search_calls_local-search"] == costs["local-search"].calls
    nested = client.search_runs([found.mlflow.experiment_id], f"tags.mlflow.parentRunId = '{found.mlflow.run_id}'")
    rounds = [run.data.tags for run in nested if "round" in run.data.tags]
    assert {int(tags["round"]): tags.get("optimizer") for tags in rounds} == of

    before = scripted_server.asked
    code, _, err = memtune("run", "--resume", "run")
    assert code == 0, err
    again = folder.summary()
    assert (again.champion, again.rounds, again.search) == (found.champion, found.rounds, found.search)
    assert scripted_server.asked == before


def test_a_wrong_name_among_several_is_refused_and_a_name_that_stands_twice_counts_once(
    memtune: MemtuneCommand,
) -> None:
    memtune.configure("run.yaml", LINES)
    code, _, err = memtune("run", "run.yaml", "--optimizer", "local-search, gepp", "--dry-run")
    assert code == 2
    assert "--optimizer: unknown: 'gepp'; did you mean 'gepa'?; choose one of closed-loop" in err
    assert RunConfig(optimizer="gepa, gepa,local-search").optimizer == "gepa,local-search"
    assert RunConfig.model_validate({"optimizer": ["random", "gepa"]}).planned_rounds == 3
    assert RunConfig.model_validate({"optimizer": ["random", "local-search"]}).planned_rounds == 1
