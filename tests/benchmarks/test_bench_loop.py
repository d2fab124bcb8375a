"""The saving is measured on two runs that were really made, and their results are compared."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.loop import LoopFigures, measure_loop
from benchmarks.weak_model import WeakModel
from experiments.runs.config_file import load_config

pytestmark = pytest.mark.slow


def measured(**overrides: object) -> LoopFigures:
    few = {"limits.questions": 5, "rounds": 1}
    return measure_loop(load_config(None, overrides=few | overrides), 3, progress=lambda *step: None)


@pytest.mark.parametrize("optimizer", [pytest.param("closed-loop", marks=pytest.mark.thorough), "local-search"])
def test_a_run_that_reuses_asks_less_and_finds_the_same(optimizer: str) -> None:
    figures = measured(optimizer=optimizer)
    assert figures.identical
    assert figures.calls_ours < 0.6 * figures.calls_plain
    assert figures.tokens_ours < figures.tokens_plain
    # A round of answers builds no memory, so it saves more than the run, whose baselines save nothing.
    answers = figures.answer_round
    assert answers.calls_ours / answers.calls_plain < figures.calls_ours / figures.calls_plain


def test_results_that_differ_are_not_called_identical(monkeypatch: pytest.MonkeyPatch) -> None:
    fickle, right = count(), WeakModel.reply
    monkeypatch.setattr(
        WeakModel,
        "reply",
        lambda self, text, schema: f"{next(fickle)}" if "Question: " in text else right(self, text, schema),
    )
    assert not measured(system="rag", optimizer="closed-loop").identical


def test_the_command_writes_exactly_the_figures_of_both_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "loop.json"
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "loop",
                "--optimizer",
                "closed-loop",
                "--system",
                "rag",
                "--conversations",
                "3",
                "--json",
                str(file),
            ]
        )
    assert ended.value.code == 0
    figures = json.loads(file.read_text())
    assert list(figures) == ["calls_ours", "calls_plain", "tokens_ours", "tokens_plain", "answer_round", "identical"]
    assert list(figures["answer_round"]) == ["calls_ours", "calls_plain"]
    assert figures["identical"] is True
    assert "the results are equal" in capsys.readouterr().out
