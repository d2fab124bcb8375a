"""An evaluation keeps an endpoint full, heeds what it asks for, and loses nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.slow_endpoint import REFUSED_EVERY, REFUSED_PART
from benchmarks.throughput import measure_throughput

pytestmark = pytest.mark.slow

CALLS, ALLOWED = 120, 8


def test_as_many_requests_are_under_way_as_allowed_and_refused_ones_come_again_in_time() -> None:
    told: list[tuple[str, int, int]] = []
    figures = measure_throughput(calls=CALLS, latency_s=0.2, allowed=ALLOWED, progress=lambda *step: told.append(step))
    assert (figures.ideal_per_s, figures.most_in_flight) == (40, ALLOWED)
    assert (figures.retried, figures.early, figures.lost) == (CALLS * REFUSED_PART // REFUSED_EVERY, 0, 0)
    assert figures.share == pytest.approx(figures.reached_per_s / figures.ideal_per_s)
    # One after the other would be an eighth; how near it comes to all on a busy machine is for the command to say.
    assert figures.share > 2 / ALLOWED
    assert told[-1] == ("conversations", 6, 6)


def test_the_command_writes_the_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "throughput.json"
    with pytest.raises(SystemExit) as ended:
        main(["throughput", "--calls", "20", "--latency", "0.01", "--concurrency", "4", "--json", str(file)])
    assert ended.value.code == 0
    figures = json.loads(file.read_text())
    assert {"ideal_per_s", "reached_per_s", "share", "most_in_flight", "retried", "lost"} <= set(figures)
    assert "most_in_flight" in capsys.readouterr().out
