"""`python -m benchmarks halumem`: labels of HaluMem's evaluation, where a run of it is at hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.halumem import HaluMemRun, _recorded
from tracing.errors import DataError

HALUMEM = Path(__file__).parents[3] / "shared" / "data" / "halumem"

here = pytest.mark.skipif(not HALUMEM.is_dir(), reason="the development data is not here")


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a run on HaluMem is its rows .*; give the folder of all three"):
        HaluMemRun.read(tmp_path)


@here
def test_the_recorded_run_has_each_memory_once_and_no_answer_sees_a_later_one() -> None:
    run = HaluMemRun.read(HALUMEM)
    graph, wrong = _recorded(run)
    stored = [str(entry.value) for entry in graph.find_variables(kind="memory_entry")]
    assert sorted(stored) == sorted(set(run.memories[-1]))
    assert len(wrong) == 40
    early = next(case for case, _ in wrong if case.question.after_session == "D3")
    seen = graph.until(graph.producers(str(early.prediction))[0].id)
    assert {str(entry.value) for entry in seen.find_variables(kind="memory_entry")} == set(run.memories[2])


@here
@pytest.mark.slow
def test_what_was_never_stored_is_blamed_on_extraction(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["halumem", "--run", str(HALUMEM), "--json", str(tmp_path / "figures.json")])
    assert ended.value.code == 0
    rows = {row["why"]: row for row in json.loads((tmp_path / "figures.json").read_text())["attribution"]}
    assert rows["nothing stored"]["share"] >= 0.85
    assert rows["never told"]["share"] >= 0.85
