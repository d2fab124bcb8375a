"""Whoever watches a run through a pipe or a file sees that it goes on, and failures are not taken for progress."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.progress import DownloadColumn
from run_shapes import record
from scripted_server import Reply, ScriptedServer, prompt_of

from experiments.command import main
from experiments.display import progress
from experiments.display.literal_console import LiteralConsole
from experiments.display.progress import FailedColumn, progress_on
from experiments.display.tables import run_view
from optimizer.gating.gate import GateDecision, GateOutcome
from optimizer.tuning.round import RewriteRecord
from tracing.llm.accounting.budget import Budget, Spending
from tracing.llm.settings import Limits


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line every twentieth of a second."""
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.05)


def err_until(capsys: pytest.CaptureFixture[str], found: Callable[[str], object], seconds: float = 10) -> str:
    """What was printed on stderr when it fits, or when time is up."""
    err, end = "", time.monotonic() + seconds
    while not found(err) and time.monotonic() < end:
        time.sleep(0.02)
        err += capsys.readouterr().err
    return err


def test_lines_come_at_least_every_30_seconds() -> None:
    assert 5 < progress.EVERY_SECONDS <= 29


@pytest.mark.usefixtures("often")
def test_a_pipe_gets_lines_of_progress_also_while_nothing_moves(capsys: pytest.CaptureFixture[str]) -> None:
    with run_view() as view:
        assert "working, 0 s\n" in err_until(capsys, lambda err: "working" in err)
        view.progress("baseline train", 3, 12)
        err = err_until(capsys, lambda err: err.count("baseline train  3/12") >= 2)
        assert re.search(r"^baseline train  3/12 0:00:0\d$", err, re.MULTILINE)
        view.progress("baseline train", 12, 12)
        # Between two phases, which took place last.
        assert re.search(r"working, \d s; baseline train 12/12", err_until(capsys, lambda err: "working" in err))
        view.progress("baseline train", 3, 12, failed=2)
        assert "baseline train  3/12 2 failed 0:00:0" in err_until(capsys, lambda err: "failed" in err)
        budget = Budget(Limits())
        budget.reserve(Spending(calls=2))
        budget.settle(Spending(calls=2), Spending(calls=2))
        view.watch(budget)
        view.progress("baseline validation", 1, 4)
        assert "baseline validation 1/4 2 calls 0:00:0" in err_until(capsys, lambda err: "calls" in err)
        assert "baseline validation 1/4" in err_until(capsys, lambda err: "validation" in err)
    said = err_until(capsys, lambda err: False, seconds=0.3)
    assert "train" not in said.split("validation", 1)[-1]
    assert err_until(capsys, lambda err: False, seconds=0.3) == "", "nothing is printed after the end"


@pytest.mark.usefixtures("often")
def test_a_download_through_a_pipe_says_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_on(LiteralConsole(stderr=True), DownloadColumn(), FailedColumn()) as shown:
        shown.update(shown.add_task("weights", total=4_000_000), completed=1_000_000)
        assert "weights 1.0/4.0 MB\n" in err_until(capsys, lambda err: "weights" in err)


@pytest.mark.usefixtures("often")
def test_a_run_whose_calls_fail_does_not_look_as_if_it_went_on(
    capsys: pytest.CaptureFixture[str],
    scripted_server: ScriptedServer,
    mlflow_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)

    def refuse(body: dict[str, object]) -> Reply:
        if len(prompt_of(body)) < 200:  # what is asked before the start, to see whether the model is there
            return Reply("yes")
        time.sleep(0.03)
        return Reply("too long", status=400)

    scripted_server.script = refuse
    endpoint = f"base_url: '{scripted_server.base_url}', retries: 0"
    Path("run.yaml").write_text(
        "system: fact-memory\nlimits: {conversations: 9, questions: 1}\nrounds: 0\nconcurrency: 1\n"
        f"models:\n  task: {{model: m, {endpoint}}}\n  embedding: {{model: e, {endpoint}}}\n"
        f"tracking: {{uri: 'sqlite:///{mlflow_home / 'mlflow.db'}', experiment: {tmp_path.name}}}\n"
    )
    with pytest.raises(SystemExit):
        main(["eval", "run.yaml", "--prompts", "baseline", "--split", "train"])
    err = capsys.readouterr().err
    assert re.search(r"train 0/\d+ 1 failed", err)
    assert not re.search(r"train [1-9]\d*/", err)


@pytest.mark.usefixtures("often")
def test_an_evaluation_says_how_far_it_is_from_its_first_call_on(
    capsys: pytest.CaptureFixture[str], scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    asked_before_the_first_line: list[str] = []

    def script(body: dict[str, object]) -> str:
        if len(prompt_of(body)) >= 200 and not asked_before_the_first_line:
            asked_before_the_first_line.append(err_until(capsys, lambda err: "test 0/" in err))
        return "unknown"

    scripted_server.script = script
    endpoint = f"base_url: '{scripted_server.base_url}', retries: 0"
    (tmp_path / "eval.yaml").write_text(
        "system: rag\nlimits: {conversations: 3, questions: 1}\nconcurrency: 1\n"
        f"models:\n  task: {{model: m, {endpoint}}}\n  embedding: {{model: e, {endpoint}}}\n"
    )
    with pytest.raises(SystemExit):
        main(["eval", str(tmp_path / "eval.yaml"), "--prompts", "baseline"])
    assert "test 0/" in asked_before_the_first_line[0]


def test_a_round_says_what_it_tried_and_why_the_closest_rewrite_was_not_kept(
    capsys: pytest.CaptureFixture[str],
) -> None:
    far = RewriteRecord(
        "answer",
        "bank",
        "asks for a short answer",
        "a",
        screening=0.05,
        gate=GateDecision(GateOutcome.WITHIN_NOISE, "+0.050"),
    )
    near = RewriteRecord(
        "answer", "model", "asks for names", "b", screening=0.125, gate=GateDecision(GateOutcome.WITHIN_NOISE, "+0.125")
    )
    unmet = RewriteRecord("answer", "bank", "asks for more", "c", screening=0.3)
    kept = record(1, accepted=False)
    with run_view() as view:
        view.round(replace(kept, rewrites=(far, near, unmet)))
        view.round(replace(kept, n=2, proposals=1, rewrites=(unmet,)))
        view.round(replace(kept, n=3, edited=(), proposals=0))
        won = replace(near, gate=GateDecision(GateOutcome.ACCEPTED, "+0.150, one-sided p 0.013"))
        view.round(replace(record(4, accepted=True), rewrites=(far, won)))
        lost = RewriteRecord("answer", "bank", "asks for less", "d", local=-0.05)
        worse = replace(lost, text="e", local=-1.0)
        view.round(replace(kept, n=5, rewrites=(worse, lost)))
        view.round(replace(kept, n=6, rewrites=(worse, replace(lost, local=0.2))))
        view.round(replace(record(7, accepted=True), edited=(), proposals=0))
    said = capsys.readouterr().err
    assert "round 1: tried 3 rewrites of answer, kept the champion; validation 0.510 (100 calls" in said
    assert "round 1: closest was answer by model: rejected, within noise: +0.125\n" in said
    assert "round 2: tried 1 rewrite of answer, kept the champion" in said
    assert "round 3: no prompt was rewritten, kept the champion" in said
    assert "round 7: no prompt was rewritten, other settings accepted" in said
    assert "round 4: tried 3 rewrites of answer, accepted" in said
    assert "round 4: answer by model accepted: +0.150, one-sided p 0.013\n" in said
    assert "round 5: closest was answer by bank: -0.050 on recorded inputs, so nothing was asked with it\n" in said
    assert said.count("closest") == 2
