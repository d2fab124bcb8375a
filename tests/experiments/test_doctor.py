"""What the doctor finds: on a machine where all is well, and where something is not."""

from __future__ import annotations

import re
from collections import namedtuple
from pathlib import Path

import pytest
from memtune_command import MemtuneCommand
from run_shapes import run_folder
from scripted_server import CHECK, Reply, ScriptedServer

from experiments import doctor as health_checks
from experiments.command import main
from experiments.doctor import check_extras, check_home, check_packages, check_stores
from experiments.mlflow_tracking.outbox import OUTBOX
from experiments.runs.config import RunConfig
from tracing.llm.serving.weights import CATALOGUE, stored_path

Usage = namedtuple("Usage", "total used free")


def doctor(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as caught:
        main(["doctor", *arguments])
    assert isinstance(caught.value.code, int)
    return caught.value.code, capsys.readouterr().out


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMTUNE_HOME", str(tmp_path / "home"))


def test_where_all_is_well_nothing_is_broken_and_nothing_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = stored_path(CATALOGUE["smollm2-135m"])
    weights.parent.mkdir(parents=True)
    weights.touch()
    code, said = doctor(capsys, "--model", "smollm2-135m", "--home", "made")
    assert code == 0, said
    assert "nothing is broken" in said
    assert "smollm2-135m, embedded" in said
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("attribution: 'not_there:Method'", "not_there"),
        ("optimizer: 'not_there:search'", "not_there"),
        ("prompts: {pinned: {summarize: [x]}}", "summarize"),
        ("search: {settings: {tok_k: [3]}}", "tok_k"),
        ("search: {storage: 'mysql://127.0.0.1:9/none'}", "search.storage"),
        ("dataset: jsonl\ndata: rows.jsonl", "rows.jsonl"),
    ],
)
def test_what_a_run_would_be_refused_for_is_broken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scripted_server: ScriptedServer, line: str, told: str
) -> None:
    Path("rows.jsonl").write_text("{}")
    endpoint = f"base_url: '{scripted_server.base_url}', retries: 0"
    Path("run.yaml").write_text(
        f"{line}\nmodels:\n  task: {{model: m, {endpoint}}}\n  embedding: {{model: e, {endpoint}}}\n"
    )
    code, said = doctor(capsys, "run.yaml", "--home", "made")
    assert code == 1
    (broken,) = [found for found in said.splitlines() if found.startswith("broken")]
    assert told in broken
    assert "1 to fix before a run" in said
    assert not (tmp_path / "made").exists()


def test_each_thing_that_is_broken_comes_with_its_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMTUNE_SYSTEMS", str(tmp_path / "environments"))
    monkeypatch.setenv("MEMTUNE_WEIGHTS", str(tmp_path / "weights"))
    served = "--base-url", "http://127.0.0.1:9/v1"
    code, said = doctor(capsys, "--system", "mem0@2", "--model", "m", *served)
    assert code == 1
    assert "memtune system install mem0@2" in said
    assert "→ check base_url" in said
    assert "2 to fix before a run" in said
    code, said = doctor(capsys)
    assert code == 1
    assert "memtune model pull qwen2.5-coder-0.5b" in said


@pytest.mark.parametrize(
    ("total", "available", "state", "told"),
    [
        (8e9, 4e9, "ok", "qwen2.5-coder-1.5b: 3.1 GB, and 4.0 GB free"),
        (8e9, 3e9, "missing", "close other programs, or lower models.ROLE.context"),
        (2e9, 1e9, "broken", "take a smaller model"),
    ],
)
def test_the_memory_that_an_embedded_model_takes_is_told_with_its_context(
    total: float, available: float, state: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Memory = namedtuple("Memory", "total available")
    monkeypatch.setattr("psutil.virtual_memory", lambda: Memory(int(total), int(available)))
    settings = {"model": "qwen2.5-coder-1.5b", "context": 8192}
    config = RunConfig.model_validate({"models": {"task": settings}})
    (memory,) = (check for check in health_checks.check_models(config) if check.subject == "memory")
    assert memory.state == state
    assert told in f"{memory.says}; {memory.remedy}"


def test_a_package_of_another_distribution_with_one_of_our_names_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, tops in (("memtune", "tracing\n"), ("other_tracer", "tracing\n")):
        info = tmp_path / f"{name}-9.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9\n", encoding="utf-8")
        (info / "top_level.txt").write_text(tops, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    (found,) = (one for one in check_packages() if one.subject == "package tracing")
    assert found.state == "broken"
    assert "other_tracer" in found.says
    assert found.remedy.startswith("pip uninstall other_tracer")


@pytest.mark.slow
def test_a_memory_is_built_and_asked_when_that_is_wanted(
    memtune: MemtuneCommand, scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    scripted_server.script = lambda body: "Rex, I think"
    memtune.configure("rag.yaml", "system: rag\n")
    assert "memory of rag" not in memtune("doctor", "rag.yaml", "--home", "h")[1]
    code, out, _ = memtune("doctor", "rag.yaml", "--home", "h", "--build")
    assert code == 0, out
    assert "built of two turns; asked \"What is Ann's dog called?\" it says 'Rex, I think'" in out
    scripted_server.script = lambda body: "ok" if body["messages"] == CHECK else Reply(status=400)
    code, out, _ = memtune("doctor", "rag.yaml", "--home", "h", "--build")
    assert code == 1
    assert re.search("broken +memory of rag .*HTTP 400", out)
    assert not (tmp_path / "h").exists()


@pytest.mark.slow
def test_a_rerun_that_leaves_out_what_the_operation_read_is_broken(
    memtune: MemtuneCommand, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = lambda body: "Rex, I think"
    Path("own_rag.py").write_text(
        "from experiments.systems.rag import Rag\n\n\n"
        "class Forgetful(Rag):\n"
        "    def rerun(self, prompt, parts, candidate, access):\n"
        "        super().rerun(prompt, {**parts, 'context': parts['context'][:0]}, candidate, access)\n",
        encoding="utf-8",
    )
    memtune.configure("rag.yaml", "system: own_rag:Forgetful\n")
    code, out, _ = memtune("doctor", "rag.yaml", "--home", "h", "--build")
    assert code == 1
    assert re.search("broken +rerun of answer .*where the recorded one read", out)
    assert re.search("ok +recording ", out)
    memtune.configure("rag.yaml", "system: rag\n")
    code, out, _ = memtune("doctor", "rag.yaml", "--home", "h", "--build")
    assert code == 0, out
    assert re.search("ok +rerun of answer .*does again what was recorded", out)


@pytest.mark.slow
def test_of_a_system_without_rerun_it_is_told_what_can_be_asked_again(
    memtune: MemtuneCommand, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = lambda body: "Rex, I think"
    source = (Path(__file__).parents[2] / "experiments" / "starter" / "my_memory.py").read_text(encoding="utf-8")
    twice = 'for line in ask(access, render(prompt, {"turns": dialogue}), 300).splitlines():'
    assert twice in source
    source = source.replace("def rerun", "def again").replace(twice, f"ask(access, dialogue, 9)\n            {twice}")
    Path("own.py").write_text(source, encoding="utf-8")
    memtune.configure("own.yaml", "system: own:MyMemory\n")
    code, out, _ = memtune("doctor", "own.yaml", "--home", "h", "--build")
    assert code == 0, out
    assert re.search("ok +rerun of answer .*not needed: what its operation asked can be asked again", out)
    assert re.search("missing +rerun of note .*it made 2 model calls", out)
    assert "rewrites are compared on whole conversations" in " ".join(out.split())


def test_a_damaged_cache_and_what_mlflow_misses_are_told(tmp_path: Path) -> None:
    assert list(check_stores(tmp_path)) == []
    folder = run_folder(tmp_path, 1)
    (folder.path / OUTBOX).write_text("{}", encoding="utf-8")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "responses.sqlite").write_text("no database " * 100, encoding="utf-8")
    cache, outbox = check_stores(tmp_path)
    assert (cache.state, outbox.state) == ("broken", "missing")
    assert "move it away" in cache.remedy
    assert outbox.remedy.startswith(f"memtune mlflow send {folder.id}")


def test_a_library_that_is_too_old_is_broken_and_an_absent_one_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    known = health_checks.version

    def version(name: str) -> str:
        if name == "psycopg":
            raise health_checks.PackageNotFoundError(name)
        return "0.1" if name == "optuna" else known(name)

    monkeypatch.setattr(health_checks, "version", version)
    found = {one.subject: one for one in check_extras()}
    assert found["extra postgres"].state == "missing"
    assert found["extra postgres"].says == "without psycopg; only a trace memory in Postgres needs it"
    assert found["extra postgres"].remedy == "pip install 'memtune[postgres]'"
    assert found["extra optimize"].state == "broken"
    assert "optuna 0.1" in found["extra optimize"].says
    assert found["extra attribute"].state == "ok"


def test_a_full_disk_and_a_file_in_the_place_of_the_home_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    (found,) = check_home(tmp_path / "file")
    assert (found.state, found.subject) == ("broken", "home")
    monkeypatch.setattr(health_checks.shutil, "disk_usage", lambda folder: Usage(10**12, 10**12, 10**8))
    assert [one.state for one in check_home(tmp_path / "home")] == ["ok", "broken"]
