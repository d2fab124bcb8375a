"""`memtune watch`: a run in progress, by what its folder says while another process works on it."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from gold_runs import GoldModel, started
from run_shapes import BASELINE, facts, loop_result, record, run_folder, score
from scripted_server import ScriptedServer

from experiments.command import main
from experiments.display.literal_console import LiteralConsole
from experiments.display.progress import progress_on
from experiments.display.tables import RunView
from experiments.display.watching import WatchedRun
from experiments.running.observers import RunJournal
from experiments.runs.folder import LOCK, PROGRESS, RunFolder
from experiments.runs.lock import holder, locked
from experiments.runs.progress import read_progress, with_rewrites
from optimizer.gating.gate import GateDecision, GateOutcome
from optimizer.tuning.results import CallCounts
from optimizer.tuning.round import RewriteRecord
from tracing.errors import RunError

GATE = GateDecision(GateOutcome.ACCEPTED, "+0.100 over 8 conversations")
REWRITE = RewriteRecord("answer", "bank", "asks for less", "Short: {context}", 0.1, GATE, 0.2)


def journal_of(folder: RunFolder, *, resumed: bool = False) -> RunJournal:
    earlier = folder.summary() if resumed else None
    return RunJournal(folder, lambda: facts(folder.id), BASELINE, lambda: CallCounts(12, 3, 20, 0.5), earlier)


def watched(folder: RunFolder, steps: Iterator[object], capsys: pytest.CaptureFixture[str]) -> str:
    """What is shown of a run that goes one step on between two looks."""
    console = LiteralConsole()
    with progress_on(console) as progress:
        view = RunView(console, progress)
        WatchedRun(folder, view, lambda line: console.print(line)).follow(lambda _: next(steps, None))  # type: ignore[arg-type,return-value]
        tasks = [(task.description, task.completed, task.total) for task in progress.tasks]
    return " ".join(f"{capsys.readouterr().out}{tasks}".split())


def test_what_the_run_writes_is_told_once_until_its_process_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_folder(tmp_path, result=loop_result(verdict=None, stopped="running"))
    held = ExitStack()
    held.enter_context(locked(folder.path / LOCK))

    def steps() -> Iterator[None]:
        journal = journal_of(folder)
        journal.progress("baseline train", 1, 3)
        yield
        journal.baseline("train", score(0.4))
        yield
        yield
        journal.round(replace(record(1, accepted=True, champion=BASELINE), rewrites=(REWRITE,)))
        journal.progress("round 2: blame", 2, 7, 1)
        yield
        held.close()
        yield

    shown = watched(folder, steps(), capsys)
    assert f"process {os.getpid()} works on it; Ctrl-C" in shown
    assert shown.count("baseline train: 0.400") == 1
    assert shown.count("round 1: tried 3 rewrites of answer, accepted; validation 0.510") == 1
    assert shown.count(f"round 1: answer by bank {GATE}") == 1
    assert "('round 2: blame', 2, 7)" in shown
    assert holder(folder.path / LOCK) is None


def test_a_resumed_run_is_told_to_be_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run_folder(tmp_path, result=loop_result(stopped="interrupted"))
    with ExitStack() as held:
        held.enter_context(locked(folder.path / LOCK))
        journal_of(folder, resumed=True).progress("baseline train", 1, 3)
        shown = watched(folder, iter(held.close, 1), capsys)
    assert "works on it, resumed; " in shown
    assert shown.count("baseline ") == 4  # three scores that it had found before, and the phase


def test_progress_is_kept_of_each_phase_and_at_most_once_a_second(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    journal = journal_of(folder)
    for done in range(5):
        journal.progress("baseline train", done, 5)
    kept = read_progress(folder)
    assert kept is not None
    assert (kept.phase, kept.done, kept.calls, kept.money, kept.resumed) == ("baseline train", 0, 12, 0.5, False)
    journal.progress("baseline test", 3, 5)
    assert (read_progress(folder) or kept).done == 3
    (folder.path / PROGRESS).unlink()
    (folder.path / PROGRESS).mkdir()
    journal.progress("test", 1, 5)  # a run does not end for want of it


def test_files_that_are_damaged_are_named(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    assert read_progress(folder) is None
    for name, read in (
        (PROGRESS, lambda: read_progress(folder)),
        ("rewrites.jsonl", lambda: with_rewrites(folder, (record(1, accepted=False),))),
    ):
        (folder.path / name).write_text('{"phase": 3}\n')
        with pytest.raises(RunError, match=f"{name}: .*; delete the file"):
            read()


@pytest.mark.parametrize(
    ("stopped", "code", "told"),
    [
        ("all rounds done", 0, r"improved: \+0\.100 on test"),
        ("running", 1, "its process ended before it did, as when it is killed; go on with: memtune run --resume"),
        ("interrupted", 1, ": interrupted; go on with: memtune run --resume"),
        ("error: the disk is full", 1, ": error: the disk is full; go on with: memtune run --resume"),
    ],
)
def test_the_exit_code_says_whether_the_run_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], stopped: str, code: int, told: str
) -> None:
    folder = run_folder(tmp_path, result=loop_result(stopped=stopped))
    with pytest.raises(SystemExit) as ended:
        main(["watch", folder.id, "--home", str(tmp_path)])
    said = "".join(capsys.readouterr())
    assert ended.value.code == code
    assert re.search(told, said)
    assert "round 1: tried 3 rewrites" in said


def test_where_no_run_is_in_progress_that_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for told in ("$", "; see one that ended with: memtune watch 2026"):
        with pytest.raises(SystemExit) as ended:
            main(["watch", "--home", str(tmp_path)])
        assert ended.value.code == 1
        assert re.search(
            rf"no run is in progress under {tmp_path} \(name one that has --out by its folder\){told}",
            capsys.readouterr().err.strip(),
        )
        run_folder(tmp_path)


@pytest.mark.slow
def test_a_run_is_watched_from_another_process_through_its_kill_and_to_its_end(
    scripted_server: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scripted_server.script = GoldModel(0.05)
    home = tmp_path / "home"
    options = ["--base-url", scripted_server.base_url, "--model", "m", "--rounds", "1"]
    limits = ["--limit-conversations", "9", "--limit-questions", "2"]
    run = started(["run", "--system", "fact-memory", *options, *limits, "--home", str(home)])
    until(lambda: bool(list(home.glob("runs/*/summary.json"))) or not run.is_alive())
    (folder,) = RunFolder.all(home)
    watching = watch(home)
    until(lambda: b"baseline train" in folder.path.joinpath("summary.json").read_bytes() or scripted_server.count > 40)
    assert run.pid is not None
    os.kill(run.pid, signal.SIGKILL)
    shown, error = watching.communicate(timeout=120)
    assert watching.returncode == 1, (shown, error)
    assert f"watching {folder.id}: process {run.pid} works on it;" in shown
    assert "its process ended before it did" in error
    run.join()

    scripted_server.script = GoldModel()
    run = started(["run", "--resume", str(folder.path)])
    until(lambda: folder.process is not None or not run.is_alive())
    watching = watch(home)
    shown, error = watching.communicate(timeout=300)
    run.join()
    assert (watching.returncode, error) == (0, "")
    assert "round 1: " in shown
    assert re.search(r"^stopped: ", shown, re.MULTILINE)


def watch(home: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "experiments.command", "watch", "--home", str(home)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 180
    while not happened() and time.monotonic() < end:
        time.sleep(0.05)
