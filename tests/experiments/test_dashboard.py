"""While a run works, a terminal shows its state; a pipe gets lines, and nothing at all if it is to be quiet."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hostile_world import TEXT, shown
from memtune_command import MemtuneCommand
from rich.progress import Progress
from run_shapes import record, score
from scripted_server import CHECK, Reply, ScriptedServer

from attribution.signals import Signal
from experiments.display.dashboard import Dashboard, TimeLeft, live_run
from experiments.display.literal_console import LiteralConsole
from experiments.mlflow_tracking.sqlite_store import store_uri
from optimizer.gating.verdict import Verdict
from optimizer.objectives.alignment import Alignment
from optimizer.tuning.round import accepted_edit
from tracing.llm.accounting.budget import Budget, Spending
from tracing.llm.settings import Limits

PATIENCE_S = 60.0


class Clock:
    """Seconds that pass when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def drawn(dashboard: Dashboard, *, width: int = 100) -> str:
    """What a terminal of so many columns shows."""
    console = LiteralConsole(stderr=True)
    console.width = width
    with console.capture() as captured:
        console.print(dashboard)
    return captured.get()


def _read_until(terminal: int, wanted: str, until: Callable[[], bool] = lambda: True) -> str:
    """What a terminal was sent, up to these words at least."""
    said, end = "", time.monotonic() + PATIENCE_S
    while wanted not in said or not until():
        assert time.monotonic() < end, said[-2000:]
        if select.select([terminal], [], [], 0.1)[0]:
            said += os.read(terminal, 65536).decode(errors="replace")
    return said


def signal_of(operation: str, share: float, *, fixable: bool = True) -> Signal:
    return Signal(operation, operation, share, (share - 0.1, share + 0.1), 7, 0.2, {}, (), fixable)


def test_it_shows_round_budget_scores_blame_alignment_the_accepted_difference_and_the_time_left() -> None:
    clock = Clock()
    dashboard = Dashboard(3, Progress(disable=True), clock)
    budget = Budget(Limits(calls=500, money=2.0), clock)
    dashboard.watch(budget)
    text = drawn(dashboard)
    assert "before round 1 · 0 s · time left: –\nspent: 0 of 500 calls · 0 tokens · – of 2 money\n" in text
    assert text.endswith("Ctrl-C finishes the calls under way and saves\n")
    clock.now = 20
    dashboard.baseline("train", score(0.4))
    dashboard.baseline("validation", score(0.45))
    budget.settle(Spending(), Spending(40, 9000, 0.5))
    dashboard.blame(1, [signal_of("store", 0.25, fixable=False), signal_of("extract_facts", 0.75)])
    text = drawn(dashboard)
    assert "round 1 of 3 · 20 s · time left: –\nspent: 40 of 500 calls · 9,000 tokens · 0.5 of 2 money\n" in text
    assert "train 0.400 (0.300–0.500)  validation 0.450 (0.350–0.550)" in text
    extract, store = re.findall(r"(?:extract_facts|store) .*", text)
    assert extract.split() == ["extract_facts", "█" * 12 + "·" * 4, "75%", "(65%–85%)", "7", "failures"]
    assert store.strip().endswith("25% (15%–35%) 7 failures, no prompt can fix it")
    clock.now = 80
    edit = accepted_edit({"answer": "Reply."}, {"answer": "Reply briefly."}, [], [])
    done = replace(record(1, accepted=True), edit=edit, alignment={"answer": Alignment(0.5, (0.25, 0.75), 40)})
    dashboard.round(replace(done, validation_score=0.7, validation_ci=(0.6, 0.8)))
    text = drawn(dashboard)
    assert "time left: about 2:20 min" in text, "two rounds of a minute, and the test as the baselines"
    assert re.search(r"champion: +validation 0\.700 \(0\.600–0\.800\)", text)
    assert "recorded inputs predict the answers: answer +0.50 (+0.25 to +0.75)" in text
    assert re.search(r"accepted in round 1: 0 fixed.*\n +@ answer *\n +-Reply\. *\n +\+Reply briefly\.", text)


def test_a_long_difference_leaves_room_for_the_rest_on_a_small_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setenv("COLUMNS", "80")
    dashboard = Dashboard(9, Progress(console=LiteralConsole(), disable=True), Clock())
    dashboard.watch(Budget(Limits()))
    for split in ("train", "validation", "test"):
        dashboard.baseline(split, score(0.4))
    dashboard.blame(1, [signal_of(f"operation {n}", 0.1) for n in range(9)])
    edit = accepted_edit({"answer": "a\n" * 99}, {"answer": "b\n" * 99}, [], [])
    aligned = {"answer": Alignment(0.5, (0.25, 0.75), 40)}
    dashboard.round(replace(record(1, accepted=True), edit=edit, alignment=aligned))
    text = drawn(dashboard, width=80)
    assert len(text.splitlines()) < 24
    assert "… and 194 more lines" in text


def test_time_left_is_at_most_what_the_budget_allows_and_ends_with_the_test() -> None:
    clock = Clock()
    left = TimeLeft(2, clock)
    assert (left.seconds(None), left.seconds(90.0)) == (None, 90.0)
    clock.now = 10
    left.scored("validation")
    clock.now = 40
    left.round(1, accepted=False)
    assert (left.seconds(None), left.seconds(15.0)) == (40.0, 15.0)
    clock.now = 50
    assert left.seconds(None) == 30.0
    left.scored("test")
    assert left.seconds(None) == 0.0, "the champion is the baseline"


def test_a_champion_other_than_the_baseline_is_expected_to_take_as_long_in_the_test() -> None:
    clock = Clock()
    dashboard = Dashboard(2, Progress(disable=True), clock)
    for number, accepted in ((1, True), (2, False)):
        dashboard.round(record(number, accepted=accepted))
    clock.now = 20
    dashboard.baseline("test", score(0.4))
    assert "time left: about 20 s" in drawn(dashboard)
    clock.now = 25
    assert "time left: about 15 s" in drawn(dashboard)
    dashboard.verdict(Verdict("improved", 0.1, (0.02, 0.18), 0.031, 0.64))
    assert "time left: –" in drawn(dashboard), "the run is saved, for which nobody knows how long it takes"


def test_hostile_names_and_texts_stay_text() -> None:
    dashboard = Dashboard(1, Progress(disable=True), Clock())
    dashboard.blame(1, [signal_of(f"{payload} op", 0.5) for payload in TEXT.split(" ")[:6]])
    edit = accepted_edit({TEXT: "a"}, {TEXT: f"b {TEXT}"}, [], [])
    dashboard.round(replace(record(1, accepted=True), edit=edit))
    text = drawn(dashboard)
    assert not [one for one in text if unicodedata.category(one) in ("Cc", "Cf", "Zl", "Zp") and one != "\n"]
    assert shown("[bold red]x[/]") in text


def test_a_pipe_gets_the_lines_that_it_always_got(capsys: pytest.CaptureFixture[str]) -> None:
    with live_run(3) as (view, observers):
        assert observers == (view,)
        view.baseline("train", score(0.4))
    assert capsys.readouterr().err == "baseline train: 0.400 (0.300 to 0.500) over 40 questions\n"


@pytest.mark.usefixtures("wordy")
def test_a_quiet_run_prints_its_results_alone(memtune: MemtuneCommand) -> None:
    memtune.configure("rag.yaml", "system: rag\nlimits: {conversations: 3, questions: 1}\nrounds: 0\n")
    code, out, err = memtune("run", "rag.yaml", "--quiet", "--out", "run")
    assert (code, err) == (0, "")
    assert "report: run/report.html" in out
    code, _, err = memtune("run", "rag.yaml", "--quiet", "--approve")
    assert (code, "leave out --quiet" in err) == (2, True)


@pytest.mark.slow
def test_on_a_terminal_ctrl_c_is_answered_in_the_dashboard_and_the_run_says_how_to_go_on(
    mlflow_home: Path, tmp_path: Path, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = lambda body: Reply("unknown", delay=0 if body["messages"] == CHECK else 1)
    endpoint = f"base_url: '{scripted_server.base_url}', retries: 0"
    (tmp_path / "run.yaml").write_text(
        "system: rag\nlimits: {conversations: 3, questions: 1}\nrounds: 1\n"
        f"models:\n  task: {{model: m, {endpoint}}}\n  embedding: {{model: e, {endpoint}}}\n"
        f"tracking: {{uri: '{store_uri(mlflow_home)}', experiment: {tmp_path.name}}}\n"
    )
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "experiments.command", "run", "run.yaml", "--home", "home", "--out", "run"]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    try:
        said = _read_until(ours, "before round 1 · ", until=lambda: scripted_server.asked > 2)
        process.send_signal(signal.SIGINT)
        said += _read_until(ours, "memtune: finishing the calls under way; press Ctrl-C again to stop now")
        said += _read_until(ours, "interrupted; saved in run; go on with: memtune run --resume run")
        assert process.wait(PATIENCE_S) == 130
        assert "\x1b[?25h" in said, "the cursor is shown again"
        plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", said)
        assert re.search(r"[\r\n]settings that may be tuned: ", plain), "a line begins above the dashboard, not in it"
        assert (tmp_path / "run" / "report.html").is_file()
    finally:
        process.kill()
        process.wait()
        os.close(ours)
