"""A run that is killed, and resumed, ends as the one that nobody disturbed."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import random
import re
import shlex
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from gold_runs import GoldModel, Whole, curves, latest, live, outcome
from mlflow import MlflowClient
from scripted_server import Reply, ScriptedServer

from experiments.command import main
from experiments.data.loaders import load_dataset
from experiments.running.parts import home_folder
from experiments.running.run import run_experiment
from experiments.runs.config_file import load_config
from experiments.runs.folder import CASES, FINGERPRINT, LEDGER, LOCK, REPORT, REWRITES, RunFolder
from experiments.runs.lock import locked
from experiments.systems.fact_memory import FactMemory
from optimizer.evaluation.scores import Score, SplitName
from optimizer.gating.verdict import Verdict
from optimizer.tuning.round import RoundRecord
from tracing.errors import RunError
from tracing.llm.accounting.token_counts import TokenCounts
from tracing.llm.settings import AT_ONCE
from tracing.systems.conversations import write_conversations

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from attribution.signals import Signal


@pytest.mark.parametrize("moments", [3, pytest.param(30, marks=pytest.mark.thorough)])
def test_runs_killed_at_any_moment_and_resumed_end_as_the_undisturbed_one(
    configured: Callable[[str], None], scripted_server: ScriptedServer, whole: Whole, moments: int
) -> None:
    assert any(record["accepted"] for record in whole.outcome["rounds"])
    drawn = random.Random(7)  # noqa: S311
    kills, runs = 0, 0
    while kills < moments:
        runs += 1
        name, home = f"run{runs}", f"home{runs}"
        configured(name)
        before, killed = scripted_server.asked, 0
        arguments = ["run", "run.yaml", "--out", name, "--home", home]
        while (code := live(arguments, drawn.uniform(0.2, 3.0) if kills < moments else None)) != 0:
            assert code == -signal.SIGKILL, Path("output.txt").read_text()[-2000:]
            kills, killed = kills + 1, killed + 1
            if Path(name).exists():
                arguments = ["run", "run.yaml", "--resume", name, "--home", home]
        assert outcome(RunFolder(Path(name))) == whole.outcome
        assert curves(RunFolder(Path(name))) == whole.curves
        # At most the calls that were under way when the process was killed are paid again.
        assert whole.calls <= scripted_server.asked - before <= whole.calls + killed * AT_ONCE


@pytest.mark.skipif(sys.platform != "linux", reason="only here the files of another process can be limited")
@pytest.mark.parametrize(
    "full_at", [pytest.param(5, marks=pytest.mark.thorough), pytest.param(60, marks=pytest.mark.thorough)]
)
def test_a_run_that_a_full_disk_stopped_says_so_and_goes_on_where_there_is_room(
    configured: Callable[[str], None], scripted_server: ScriptedServer, whole: Whole, full_at: int
) -> None:
    import resource

    configured("full")
    model, before = GoldModel(), scripted_server.asked

    def fill(body: dict[str, Any]) -> Reply:
        if scripted_server.asked - before == full_at:
            (child,) = (each.pid for each in multiprocessing.active_children())
            assert child is not None
            resource.prlimit(child, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        return model(body)

    scripted_server.script = fill
    Path("output.txt").unlink(missing_ok=True)
    os.mkfifo("output.txt")
    reader = os.open("output.txt", os.O_RDONLY | os.O_NONBLOCK)
    assert live(["run", "run.yaml", "--out", "run"], None) == 2
    said = os.read(reader, 1 << 20).decode().splitlines()[-1]
    assert "cannot be written (File too large); make room" in said
    os.close(reader)
    Path("output.txt").unlink()
    scripted_server.script = model
    assert live(["run", "run.yaml", "--resume", "run"], None) == 0
    assert outcome(RunFolder(Path("run"))) == whole.outcome
    assert curves(RunFolder(Path("run"))) == whole.curves


@pytest.mark.thorough
def test_a_resumed_run_that_had_ended_ends_the_same_without_its_endpoint(
    configured: Callable[[str], None], scripted_server: ScriptedServer
) -> None:
    configured("ended")
    assert live(["run", "run.yaml", "--out", "run"], None) == 0
    before = outcome(RunFolder(Path("run")))
    points = curves(RunFolder(Path("run")))
    scripted_server.go_away()
    assert live(["run", "run.yaml", "--resume", "run"], None) == 0
    scripted_server.come_back()
    assert outcome(RunFolder(Path("run"))) == before
    assert curves(RunFolder(Path("run"))) == points


@pytest.mark.thorough
def test_a_run_that_a_budget_stopped_goes_on_with_a_larger_one(configured: Callable[[str], None], whole: Whole) -> None:
    configured("budget")
    assert live(["run", "run.yaml", "--out", "run", "--budget-calls", "60"], None) == 0
    assert RunFolder(Path("run")).summary().stopped.startswith("budget: ")
    assert re.search("^resume: memtune run --resume run .*--budget-calls 120$", Path("output.txt").read_text(), re.M)
    assert live(["run", "run.yaml", "--resume", "run", "--budget-calls", "2000"], None) == 0
    assert outcome(RunFolder(Path("run"))) == whole.outcome


@pytest.mark.thorough
def test_a_resumed_run_that_needs_an_endpoint_that_is_away_says_so_at_once_and_goes_on_when_it_is_back(
    configured: Callable[[str], None], scripted_server: ScriptedServer, whole: Whole
) -> None:
    configured("away")
    assert live(["run", "run.yaml", "--out", "run", "--budget-calls", "60"], None) == 0
    resume = ["run", "run.yaml", "--resume", "run", "--budget-calls", "2000"]
    scripted_server.go_away()
    assert live(resume, 30) == 2
    said = Path("output.txt").read_text().splitlines()[-1]
    assert f" at {scripted_server.base_url}: " in said
    assert "check base_url" in said
    scripted_server.come_back()
    assert live(resume, None) == 0
    assert outcome(RunFolder(Path("run"))) == whole.outcome


def test_a_stopped_run_goes_on_from_any_folder_and_however_its_data_is_named(
    configured: Callable[[str], None], scripted_server: ScriptedServer, whole: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured("named")
    before = scripted_server.asked
    write_conversations(Path("mine.jsonl"), chain(*load_dataset(load_config(None)).splits.named().values()))
    named = ["--dataset", "jsonl", "--data", "mine.jsonl", "--home", "home", "--budget-calls", "20"]
    assert live(["run", "run.yaml", *named], None) == 0
    (folder,) = RunFolder.all(Path("home"))
    assert live(["run", "--resume", "latest", "--home", "home", "--budget-calls", "40"], None) == 0
    assert live(["run", "run.yaml", "--resume", "latest", *named[:-1], "60"], None) == 0
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert live(["run", "--resume", f"../{folder.path}", "--budget-calls", "80"], None) == 0
    Path("../mine.jsonl").rename("moved.jsonl")
    assert live(["run", "--resume", f"../{folder.path}", "--data", "moved.jsonl", "--budget-calls", "2000"], None) == 0
    monkeypatch.chdir("..")
    assert outcome(folder) == whole.outcome | {"dataset": "jsonl"}
    assert latest(curves(folder)) == latest(whole.curves)
    assert scripted_server.asked - before == whole.calls
    assert "warning" not in Path("output.txt").read_text() + Path("elsewhere/output.txt").read_text()


@pytest.mark.thorough
def test_a_run_put_elsewhere_goes_on_in_the_home_it_began_in(
    configured: Callable[[str], None], scripted_server: ScriptedServer
) -> None:
    configured("elsewhere")
    assert live(["run", "run.yaml", "--out", "run", "--home", "home"], None) == 0
    before, calls = outcome(RunFolder(Path("run"))), scripted_server.asked
    assert live(["run", "--resume", "run"], None) == 0
    assert (outcome(RunFolder(Path("run"))), scripted_server.asked) == (before, calls)


@pytest.fixture
def begun(configured: Callable[[str], None], capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """A run that a budget stopped early; resumes it with more arguments, and gives the error."""
    configured("begun")
    assert live(["run", "run.yaml", "--out", "run", "--budget-calls", "20"], None) == 0

    def resume(*arguments: str) -> str:
        with pytest.raises(SystemExit) as caught:
            main(["run", "run.yaml", "--resume", "run", *arguments])
        assert caught.value.code == 2
        return capsys.readouterr().err

    return resume


def test_an_interrupted_run_counts_every_call_that_it_paid(configured: Callable[[str], None]) -> None:
    configured("counted")
    config = load_config("run.yaml")
    with pytest.raises(KeyboardInterrupt):
        run_experiment(config, load_dataset(config), home_folder(), out=Path("run"), observers=[StoppedAfterARound()])
    paid = [line for line in (Path("run") / LEDGER).read_text().splitlines() if "keys" in json.loads(line)]
    assert RunFolder(Path("run")).summary().calls.made == len(paid) > 0


class Stopped:
    """An observer that stops a run as soon as anything was measured."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def baseline(self, split: SplitName, score: Score) -> None:
        raise self._error

    def blame(self, n: int, signals: Sequence[Signal]) -> None: ...
    def round(self, record: RoundRecord) -> None: ...
    def verdict(self, verdict: Verdict) -> None: ...
    def progress(self, phase: str, done: int, total: int, failed: int = 0) -> None: ...


class StoppedAfterARound(Stopped):
    """One that stops it as soon as a round is over."""

    def __init__(self) -> None:
        super().__init__(KeyboardInterrupt())

    def baseline(self, split: SplitName, score: Score) -> None: ...

    def round(self, record: RoundRecord) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("error", "stopped"), [(KeyboardInterrupt(), "interrupted"), (RunError("no room"), "error: no room")]
)
def test_a_resumed_run_that_stops_before_it_is_back_where_it_was_keeps_what_it_had_found(
    configured: Callable[[str], None], error: BaseException, stopped: str
) -> None:
    configured("again")
    assert live(["run", "run.yaml", "--out", "run"], None) == 0
    folder = RunFolder(Path("run"))
    before = folder.summary()
    assert before.rewritten
    files = [*(folder.path / name for name in (REWRITES, CASES, REPORT)), *folder.path.glob("prompts/*/*")]
    kept = {path: path.read_bytes() for path in files}
    config = load_config("run.yaml")
    with pytest.raises(type(error)):
        run_experiment(config, load_dataset(config), home_folder(), resume=folder, observers=[Stopped(error)])
    assert folder.summary() == replace(before, stopped=stopped)
    assert {path: path.read_bytes() for path in kept} == kept
    assert before.mlflow is not None
    tracked = MlflowClient(before.mlflow.tracking_uri).get_run(before.mlflow.run_id)
    assert tracked.data.tags["stopped"] == stopped
    assert tracked.info.status == ("KILLED" if stopped == "interrupted" else "FAILED")


def test_a_run_is_resumed_only_as_what_it_was(begun: Callable[..., str]) -> None:
    error = begun("--seed", "3", "--rounds", "1")
    assert "not resumed" in error
    assert (
        "began otherwise: rounds: 2 then, 1 now, seed: 0 then, 3 now; `memtune run --resume run` alone takes" in error
    )
    error = begun("--limit-questions", "2")
    assert "limits.questions: 3 then, 2 now, the conversations are others" in error
    print_of = Path("run") / FINGERPRINT
    known = json.loads(print_of.read_text())
    changed = {**known, "memtune.code": "0", "prompts.answer": "0", "models.judge": "x", "code.mine:Memory": "0"}
    print_of.write_text(json.dumps(changed))
    error = begun()
    assert "the code of mine:Memory is gone, the code of memtune has changed, " in error
    assert "the judge model: x then, " in error
    assert "the baseline prompt 'answer' has changed" in error
    assert known["memtune.code"] not in error


def test_a_limit_may_be_larger_when_a_run_is_resumed_and_rounds_none_that_were_made(tmp_path: Path) -> None:
    from experiments.runs.fingerprint import check_fingerprint

    folder = RunFolder(tmp_path)
    for before, now, goes_on in (
        ({"config.rounds": "2"}, {"config.rounds": "10"}, True),
        ({"config.rounds": "9"}, {"config.rounds": "10"}, True),
        ({"config.rounds": "2"}, {}, True),
        ({}, {"config.rounds": "3"}, True),
        ({"config.search.calls": "90"}, {"config.search.calls": "100"}, True),
        ({"config.search.calls": "90"}, {}, True),
        ({"config.rounds": "10"}, {"config.rounds": "9"}, False),
        ({}, {"config.search.calls": "100"}, False),
        ({"config.proposals": "2"}, {"config.proposals": "4"}, False),
    ):
        (tmp_path / FINGERPRINT).write_text(json.dumps(before))
        with contextlib.nullcontext() if goes_on else pytest.raises(RunError, match="began otherwise"):
            check_fingerprint(folder, {"config.goal": "better", "config.margin": "0.02", **now})


def test_a_finished_run_goes_on_with_more_rounds_and_then_remembers_them(configured: Callable[[str], None]) -> None:
    configured("longer")
    assert live(["run", "run.yaml", "--out", "run", "--rounds", "0"], None) == 0
    folder, output = RunFolder(Path("run")), Path("output.txt")
    before = folder.summary()
    assert (before.rounds, before.stopped) == ((), "all rounds done")
    assert "left of the budget: " in output.read_text()
    (command,) = re.findall(r"for more: memtune (run --resume run .*--rounds \d+)$", output.read_text(), re.M)
    assert live(shlex.split(command), None) == 0, output.read_text()
    more = folder.summary()
    assert any(record.accepted for record in more.rounds)
    assert (more.verdict, more.baseline["test"]) == ("inconclusive", before.baseline["test"])
    assert more.calls.made > before.calls.made
    assert live(["run", "--resume", "run"], None) == 0
    assert folder.summary() == more
    assert live(["run", "--resume", "run", "--rounds", "0"], None) == 2
    assert "rounds: 2 then, 0 now" in output.read_text()
    # What was the last round stays as it was.
    assert live(["run", "run.yaml", "--out", "one", "--rounds", "1"], None) == 0
    rounds = RunFolder(Path("one")).summary().rounds
    assert rounds[-1].last
    assert live(["run", "--resume", "one", "--rounds", "2"], None) == 0, output.read_text()
    assert RunFolder(Path("one")).summary().rounds[: len(rounds)] == rounds


@pytest.mark.thorough
def test_a_resumed_run_has_the_rewrites_by_hand_that_it_began_with(configured: Callable[[str], None]) -> None:
    configured("by-hand")
    Path("mine").mkdir()
    for name, text in (("answer.b", "Two."), ("answer.a", "One."), ("decide", "Three.")):
        baseline = FactMemory.prompts[name.partition(".")[0]].text
        Path(f"mine/{name}.txt").write_text(f"{text}\n{baseline}")
    assert live(["run", "run.yaml", "--out", "run", "--rewrites", "mine", "--budget-calls", "20"], None) == 0
    Path("mine").rename("moved")
    assert live(["run", "--resume", "run", "--dry-run"], None) == 0, Path("output.txt").read_text()
    Path("moved/decide.txt").write_text(f"Four.\n{FactMemory.prompts['decide'].text}")
    assert live(["run", "--resume", "run", "--rewrites", "moved", "--dry-run"], None) == 2
    assert "began otherwise: the rewrites of --rewrites are others; " in Path("output.txt").read_text()


def test_a_second_process_on_a_run_is_refused(begun: Callable[..., str]) -> None:
    with locked(Path("run") / LOCK):
        assert f"process {os.getpid()} is working on this run" in begun()


def test_a_ledger_cut_at_any_byte_loads(tmp_path: Path) -> None:
    from tracing.llm.accounting.ledger import Ledger

    path = tmp_path / LEDGER
    ledger = Ledger(path)
    for n in range(3):
        ledger.record_call([f"key{n}"], TokenCounts(n, n), float(n))
    ledger.memory("memory")
    ledger.close()
    data = path.read_bytes()
    lines = Counter[int]()
    for size in range(len(data) + 1):
        path.write_bytes(data[:size])
        cut = Ledger(path)
        lines[len(cut.claim([f"key{n}" for n in range(3)]))] += 1
        cut.record_call(["next"], TokenCounts(1, 1), 9.0)
        cut.close()
        again = Ledger(path)
        assert [paid.seconds for paid in again.claim(["next"])] == [9.0]
        again.close()
    assert set(lines) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    "line", ["[]", "{}", '{"keys": 7}', '{"keys": [], "prompt_tokens": -1}', "[" * 5000, "\0" * 80, "\xff"]
)
def test_a_damaged_ledger_is_told_with_its_line(tmp_path: Path, line: str) -> None:
    from tracing.llm.accounting.ledger import Ledger

    path = tmp_path / LEDGER
    path.write_bytes(b'{"memory":"m"}\n' + line.encode("latin-1") + b"\n")
    with pytest.raises(RunError, match=r"ledger\.jsonl:2: is damaged"):
        Ledger(path)
