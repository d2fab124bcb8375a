"""A dry run refuses what the run would refuse before its first call, in the same words, and leaves nothing behind."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from scripted_server import ScriptedServer

from experiments.command import main
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.mlflow_tracking.store import TrackingStore

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(
    mlflow_home: Path,
    tmp_path: Path,
    scripted_server: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Starts `memtune run run.yaml` with options; gives its exit code and the last line on stderr."""
    monkeypatch.chdir(tmp_path)
    scripted_server.script = lambda body: "unknown"
    endpoint = f"base_url: '{scripted_server.base_url}', retries: 0"
    Path("run.yaml").write_text(
        "system: rag\nlimits: {conversations: 3, questions: 1}\nrounds: 0\n"
        f"models:\n  task: {{model: m, {endpoint}}}\n  embedding: {{model: e, {endpoint}}}\n"
        f"tracking: {{uri: '{store_uri(mlflow_home)}', experiment: {tmp_path.name}}}\n"
    )

    def started(*options: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as caught:
            main(["run", "run.yaml", *options])
        assert isinstance(caught.value.code, int)
        return caught.value.code, capsys.readouterr().err.rpartition("memtune: ")[2]

    return started


def out_that_is_taken() -> list[str]:
    Path("taken").mkdir()
    Path("taken/file").write_text("")
    return ["--out", "taken"]


def candidates_for_no_prompt() -> list[str]:
    Path("summarize.txt").write_text("{question}")
    return ["--rewrites", "summarize.txt"]


def prompts_that_lack_one() -> list[str]:
    Path("mine").mkdir()
    Path("mine/extract.txt").write_text("mine")
    return ["--start", "mine"]


def prompts_that_break_their_contract() -> list[str]:
    Path("mine").mkdir()
    Path("mine/answer.txt").write_text("Answer.")
    return ["--start", "mine"]


def candidates_that_break_their_contract() -> list[str]:
    Path("answer.txt").write_text("Answer {everything}.")
    return ["--rewrites", "answer.txt"]


def candidate_without_a_pinned_line() -> list[str]:
    with Path("run.yaml").open("a") as file:
        file.write("prompts: {pinned: {answer: ['Answer in a few words:']}}\n")
    Path("answer.txt").write_text("{context}\n{question}\nAnswer:")
    return ["--rewrites", "answer.txt"]


def candidate_for_an_optimizer_that_takes_none() -> list[str]:
    Path("answer.txt").write_text("{context}\n{question}\nAnswer:")
    return ["--rewrites", "answer.txt", "--optimizer", "local-search,gepa"]


def weights_that_are_not_here() -> list[str]:
    text = Path("run.yaml").read_text()
    task = text.index("  task:")
    Path("run.yaml").write_text(f"{text[:task]}  task: {{model: smollm2-135m}}\n{text[text.index('  embedding') :]}")
    return []


def store_that_is_none() -> list[str]:
    Path("broken.db").write_text("no database")
    text = Path("run.yaml").read_text()
    Path("run.yaml").write_text(f"{text[: text.index('tracking')]}tracking: {{uri: 'sqlite:///broken.db'}}\n")
    return []


def store_of_an_unknown_kind() -> list[str]:
    text = Path("run.yaml").read_text()
    Path("run.yaml").write_text(f"{text[: text.index('tracking')]}tracking: {{uri: 'carrier-pigeon://coop'}}\n")
    return []


def experiment_that_is_deleted() -> list[str]:
    from experiments.runs.config_file import load_config

    tracking = load_config("run.yaml").tracking
    assert tracking.uri is not None
    store = TrackingStore(tracking.uri, tracking.experiment, "key")
    store.client.delete_experiment(store.experiment_id)
    return []


def attribution_of_a_missing_module() -> list[str]:
    return ["--attribution", "not_there:Method"]


def optimizer_that_takes_nothing() -> list[str]:
    Path("idle_search.py").write_text("def search():\n    return 'done'\n")
    return ["--optimizer", "idle_search:search"]


def proposer_whose_module_fails() -> list[str]:
    Path("failing_proposer.py").write_text("1 / 0\n")
    with Path("run.yaml").open("a") as file:
        file.write("proposers: ['failing_proposer:Writer']\n")
    return []


@pytest.mark.parametrize(
    "spoil",
    [
        out_that_is_taken,
        candidates_for_no_prompt,
        candidates_that_break_their_contract,
        candidate_without_a_pinned_line,
        candidate_for_an_optimizer_that_takes_none,
        prompts_that_lack_one,
        prompts_that_break_their_contract,
        weights_that_are_not_here,
        store_that_is_none,
        store_of_an_unknown_kind,
        experiment_that_is_deleted,
        attribution_of_a_missing_module,
        optimizer_that_takes_nothing,
        proposer_whose_module_fails,
    ],
)
def test_a_dry_run_refuses_what_the_run_would_refuse(
    run: Run, spoil: Callable[[], list[str]], scripted_server: ScriptedServer, memtune_home: Path
) -> None:
    options = spoil()
    code, said = run(*options, "--dry-run")
    assert code == 2
    assert scripted_server.count == 0
    assert not memtune_home.exists()
    assert run(*options) == (code, said)


@pytest.mark.slow
def test_a_dry_run_that_resumes_refuses_a_run_that_has_become_another(
    run: Run, scripted_server: ScriptedServer, memtune_home: Path
) -> None:
    assert run("--out", "done")[0] == 0
    spent = scripted_server.count
    assert run("--resume", "done", "--dry-run")[0] == 0
    shutil.rmtree(memtune_home / "cache")
    assert run("--resume", "done", "--dry-run")[0] == 0
    assert not (memtune_home / "cache").exists()
    changed = ("--resume", "done", "--seed", "5")
    code, said = run(*changed, "--dry-run")
    assert code == 2
    assert "seed: 0 then, 5 now" in said
    assert run(*changed) == (code, said)
    assert scripted_server.count == spent


def test_a_home_that_cannot_be_made_is_refused_before_anything_is_made(run: Run) -> None:
    Path("file").write_text("")
    for options in ((), ("--dry-run",)):
        code, said = run("--home", "file/home", *options)
        assert code == 2
        assert "give --home" in said
