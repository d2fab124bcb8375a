"""A run that keeps its studies on a database of several runs: named by run, resumed, refused early, no password."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import optuna
import pytest
from memtune_command import MemtuneCommand
from postgres_cluster import PASSWORD as POSTGRES_PASSWORD
from scripted_server import ScriptedServer

from experiments.runs.config import RunConfig
from experiments.runs.folder import RunFolder
from experiments.runs.run_settings import dump_config, lasting_params, params_of
from optimizer.racing.study_storage import StudyServer

LINES = (
    "system: rag\nsystem_settings: {chunk_tokens: 40, top_k: 1}\n"
    "limits: {conversations: 9, questions: 1}\nrounds: 1\nproposals: 2\n"
)
PASSWORD = "kolibri07"


def trials() -> dict[str, int]:
    storage = StudyServer(f"sqlite:///{Path('studies.db').absolute()}").open()
    names = optuna.get_all_study_names(storage)
    return {name: len(optuna.load_study(study_name=name, storage=storage).trials) for name in names}


@pytest.mark.slow
def test_runs_keep_their_studies_apart_in_one_database_and_a_resumed_one_makes_its_own_again(
    memtune: MemtuneCommand, scripted_server: ScriptedServer
) -> None:
    # Relative to the file of the configuration.
    memtune.configure("run.yaml", f"{LINES}search: {{storage: 'sqlite:///studies.db', settings: {{top_k: [60]}}}}\n")
    for out in ("one/run", "two/run"):
        code, _, err = memtune("run", "run.yaml", "--out", out)
        assert code == 0, err
    assert not list(Path().rglob("study.log"))
    found = trials()
    # Settings in a round of their own, then texts.
    assert sorted(name.partition(" ")[2] for name in found) == ["round 1", "round 1", "round 2", "round 2"]
    assert all(name.startswith("run-") for name in found)
    assert all(count > 1 for name, count in found.items() if name.endswith(" round 1"))

    before, kept = scripted_server.asked, RunFolder(Path("one/run")).summary()
    code, _, err = memtune("run", "--resume", "one/run")
    assert code == 0, err
    assert (trials(), scripted_server.asked) == (found, before)
    assert RunFolder(Path("one/run")).summary().rounds == kept.rounds


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_database_that_cannot_be_reached_refuses_a_run_in_one_line_before_its_first_call(
    memtune: MemtuneCommand, scripted_server: ScriptedServer, more: list[str]
) -> None:
    memtune.configure("run.yaml", f"{LINES}search: {{storage: 'sqlite:////no/such/folder/studies.db'}}\n")
    code, out, err = memtune("run", "run.yaml", "--out", "run", *more)
    assert code == 2
    (refusal,) = (line for line in err.splitlines() if not line.startswith("note: "))
    assert "search.storage: sqlite:////no/such/folder/studies.db: " in refusal
    assert "or leave it out" in refusal
    assert (out, scripted_server.asked, Path("run").exists()) == ("", 0, False)


def test_a_dry_run_makes_no_database(memtune: MemtuneCommand) -> None:
    memtune.configure("run.yaml", f"{LINES}search: {{storage: 'sqlite:///studies.db'}}\n")
    code, _, err = memtune("run", "run.yaml", "--dry-run")
    assert code == 0, err
    assert sorted(path.name for path in Path().iterdir()) == ["run.yaml"]


def test_a_password_in_the_url_is_in_nothing_that_a_run_keeps_and_resuming_does_not_depend_on_it() -> None:
    url = f"postgresql+psycopg://ann:{PASSWORD}@host/studies"
    config = RunConfig.model_validate({"search": {"storage": url}, "system_settings": {"store": url}})
    assert PASSWORD not in f"{dump_config(config)} {params_of(config)} {lasting_params(config)}"
    assert "postgresql+psycopg://ann@host/studies" in dump_config(config)
    moved = RunConfig.model_validate({"system_settings": {"store": url}})
    assert lasting_params(moved) == lasting_params(config)


@pytest.mark.parametrize("url", [f"postgresql://ann:{PASSWORD}@@host/x", f"postgresql://host/x?password={PASSWORD}"])
def test_a_url_that_is_refused_is_told_without_its_password(memtune: MemtuneCommand, url: str) -> None:
    memtune.configure("run.yaml", f"{LINES}search: {{storage: '{url}'}}\n")
    code, out, err = memtune("run", "run.yaml", "--dry-run")
    assert code == 2
    assert "run.yaml: search.storage: " in err
    assert PASSWORD not in out + err


@pytest.mark.slow
def test_a_password_reaches_a_real_server_and_nothing_that_a_run_keeps_and_a_resumed_run_takes_it_from_the_environment(
    memtune: MemtuneCommand, mlflow_home: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_password = postgres_url.replace("ann@", f"ann:{quote(POSTGRES_PASSWORD, safe='')}@")
    memtune.configure("run.yaml", f"{LINES}search: {{storage: '{with_password}'}}\n")
    code, out, err = memtune("run", "run.yaml", "--out", "run")
    assert code == 0, err
    Path("run.yaml").unlink()
    said = out + err
    code, out, err = memtune("run", "--resume", "run")
    assert code == 2
    assert f"{postgres_url}: " in err
    assert "$MEMTUNE_STORAGE_PASSWORD" in err
    monkeypatch.setenv("MEMTUNE_STORAGE_PASSWORD", POSTGRES_PASSWORD)
    said += out + err
    code, out, err = memtune("run", "--resume", "run")
    assert code == 0, err
    kept = [path for place in (Path(), mlflow_home) for path in place.rglob("*") if path.is_file()]
    for text in (*(path.read_bytes() for path in kept), (said + out + err).encode()):
        assert POSTGRES_PASSWORD[:7].encode() not in text
