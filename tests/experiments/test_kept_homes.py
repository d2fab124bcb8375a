"""Homes of today and of an earlier commit, kept as data (`keep_home.py` makes them), open with the code of now.

So do homes that are damaged, foreign or of a later memtune: what is left out is said, and the other runs are there.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.command import main
from experiments.runs.cases_file import read_cases
from experiments.runs.config_file import read_config
from experiments.runs.fingerprint import code_digest, read_fingerprint
from experiments.runs.folder import RunFolder
from tracing.errors import ConfigError
from tracing.files.loading import load_trace
from tracing.formats import FORMATS
from tracing.llm.accounting.ledger import Ledger
from tracing.llm.cache import ResponseCache

HOMES = sorted(Path(__file__).with_name("homes").glob("*.tar.gz"))
LATER = "written by a later memtune (format 99, this one reads 1); upgrade memtune"

Memtune = Callable[..., tuple[int, str, str]]


@pytest.fixture(params=HOMES, ids=lambda path: path.name.partition(".")[0])
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    with tarfile.open(request.param) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "home"


@pytest.fixture
def memtune(home: Path, capsys: pytest.CaptureFixture[str]) -> Memtune:
    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main([*arguments, "--home", str(home)])
        code = stopped.value.code
        return (code if isinstance(code, int) else 0, *capsys.readouterr())

    return run


def test_a_kept_home_opens(home: Path, memtune: Memtune) -> None:
    finished, killed = RunFolder.all(home)
    code, out, err = memtune("runs")
    assert (code, "unreadable" in out, err) == (0, False, "")
    assert "inconclusive" in out
    assert memtune("compare", finished.id, killed.id)[0] == 0
    assert memtune("export", "latest", "--to", "text", "--out", "exported")[0] == 0
    assert Path("exported/answer.txt").read_text() == finished.prompts("champion")["answer"]
    assert "traces: 6, 0 with a problem" in str(memtune("diagnose", "latest", "--out", "diagnosis.html"))
    _with_code(killed, "of another commit")
    code, _, err = memtune("run", "--resume", killed.id)
    config, champion = killed.path / "config.yaml", killed.path / "prompts" / "champion"
    assert code == 2
    assert "not resumed, since it began otherwise: " in err
    assert "the code of memtune has changed" in err
    assert f"memtune run {config} --start {champion}" in err


def test_every_file_of_a_kept_home_is_read(home: Path) -> None:
    for folder in RunFolder.all(home):
        assert folder.summary().run_id == folder.id
        assert set(folder.prompts("baseline")) == set(folder.prompts("champion")) == {"answer", "decide", "extract"}
        assert read_config(str(folder.path / "config.yaml")).system == "fact-memory"
        assert "memtune.code" in read_fingerprint(folder)
        Ledger(folder.path / "ledger.jsonl").close()
        for trace in folder.path.glob("traces/*/*.jsonl"):
            assert load_trace(trace)
    assert len(read_cases(RunFolder.all(home)[0])) == 12
    cache = ResponseCache(home / "cache")
    assert len(cache)
    cache.close()


def _later(path: Path) -> None:
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    if path.suffix == ".yaml":
        path.write_text("format: 99\n" + lines[0].removeprefix(f"format: {FORMATS[path.name]}\n"))
    else:
        path.write_text("\n".join(json.dumps({**json.loads(line), "format": 99, "new": 1}) for line in lines) + "\n")


@pytest.mark.parametrize(
    ("name", "commands"),
    [
        ("summary.json", ()),
        ("cases.jsonl", ("diagnose RUN --out d.html",)),
        ("config.yaml", ("diagnose RUN --out d.html", "run --resume RUN", "export RUN --to text --out e")),
        ("fingerprint.json", ("run --resume RUN",)),
        ("ledger.jsonl", ("run --resume RUN",)),
    ],
)
def test_a_file_of_a_later_memtune_is_named_where_it_is_needed_and_else_left_out(
    home: Path, memtune: Memtune, name: str, commands: tuple[str, ...]
) -> None:
    run, other = RunFolder.all(home)
    if name == "ledger.jsonl":
        _with_code(run, code_digest())
    _later(run.path / name)
    for command in commands:
        code, _, err = memtune(*command.replace("RUN", run.id).split())
        assert code == 2
        assert f"{run.path / name}" in err
        assert LATER in err
    for command in ("runs", f"compare {run.id} {other.id}", f"export {run.id} --to text --out exported"):
        if command.replace(run.id, "RUN").replace("exported", "e") not in commands:
            code, out, err = memtune(*command.split())
            assert code == 0
            assert (LATER in err) == (name == "summary.json")
            assert command != "runs" or other.id in out


def _with_code(run: RunFolder, code: str) -> None:
    path = run.path / "fingerprint.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "memtune.code": code}))


def _truncated(run: Path) -> None:
    (run / "summary.json").write_text((run / "summary.json").read_text()[:400])


def _without_summary(run: Path) -> None:
    (run / "summary.json").unlink()


def _without_baseline(run: Path) -> None:
    for folder in run.glob("prompts/*"):
        if folder.name != "champion":
            shutil.rmtree(folder)


@pytest.mark.parametrize("damage", [_truncated, _without_summary, _without_baseline])
def test_a_damaged_run_is_read_as_far_as_it_can_be(
    home: Path, memtune: Memtune, damage: Callable[[Path], None]
) -> None:
    run, other = RunFolder.all(home)
    champion = run.prompts("champion")
    damage(run.path)
    (home / "runs" / "empty").mkdir()
    (home / "runs" / "file").touch()
    code, out, _ = memtune("runs")
    assert (code, run.id in out, other.id in out) == (0, True, True)
    code, _, err = memtune("compare", run.id, other.id)
    assert (code, "summary.json" in err) == (0, damage is not _without_baseline)
    code, _, err = memtune("export", run.id, "--to", "text", "--out", "exported")
    assert (code, "could not be read" in err) == (0, True)
    assert Path("exported/answer.txt").read_text() == champion["answer"]


def test_a_cache_of_a_later_memtune_is_not_used(home: Path) -> None:
    cache = ResponseCache(home / "cache")
    cache.close()
    with sqlite3.connect(cache.path) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (FORMATS["responses.sqlite"],)
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(ConfigError, match="written by a later memtune"):
        ResponseCache(home / "cache")
