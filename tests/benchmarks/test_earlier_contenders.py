"""Figures and folders of `python -m benchmarks optimize` of an earlier commit, with other names, are read as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.optimize.contenders import contender_folder
from benchmarks.optimize.figures import ContenderFigures
from optimizer.evaluation.file_names import file_name


def test_figures_of_contenders_of_an_earlier_commit_are_read() -> None:
    figures: dict[str, Any] = {"score": 0.5, "ci": None, "by_seed": {"0": 0.5}, "against_seed": None, "area": 0.5}
    figures |= {"calls": 1, "tokens": 1, "minutes": 1, "rewritten": 0}
    read = [ContenderFigures.model_validate({"contender": name, **figures}) for name in ("seed", "no-attribution")]
    assert [figure.contender for figure in read] == ["baseline", "no-blame"]
    assert "against_baseline" in read[0].model_dump()


def test_a_comparison_goes_on_in_the_folders_of_an_earlier_commit(tmp_path: Path) -> None:
    def folder_of(contender: str) -> Path:
        return tmp_path / file_name(contender)

    folder_of("seed").mkdir()
    assert contender_folder(folder_of, "baseline") == folder_of("seed")
    assert contender_folder(folder_of, "no-blame") == folder_of("no-blame")
    folder_of("baseline").mkdir()
    assert contender_folder(folder_of, "baseline") == folder_of("baseline")
