"""The closed loop once with a real embedded model, from the command line as a user runs it."""

import json
from pathlib import Path

import pytest

from experiments.command import main


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.usefixtures("embedded_weights")
def test_the_smoke_run_closes_the_loop_with_a_real_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(["run", "--smoke", "--out", str(tmp_path / "run")])
    assert caught.value.code == 0, capsys.readouterr().err
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["verdict"] == "inconclusive"
    assert set(summary["baseline"]) == {"train", "validation", "test"}
    assert sum(blame["share"] for blame in summary["rounds"][0]["blame"].values()) == pytest.approx(1)
    assert summary["calls"]["made"] > 0
    assert (tmp_path / "run" / "report.html").is_file()
    assert list((tmp_path / "run" / "traces").rglob("*.jsonl"))
