"""What docs/tracing.md shows works as it stands there."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import tracing

PAGE = (Path(__file__).parents[2] / "docs" / "tracing.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"example{number}.py"
    path.write_text(EXAMPLES[number])
    runpy.run_path(str(path))


def test_there_are_examples_and_every_recording_function_is_named() -> None:
    assert len(EXAMPLES) > 8
    recording = {
        "trace",
        "session",
        "operation",
        "traced",
        "variable",
        "change",
        "link",
        "attributes",
        "paused",
        "bind",
    }
    for name in recording | {"hand_over", "take_over", "Redaction"}:
        assert hasattr(tracing, name)
        assert f"`{name}" in PAGE or f" {name}(" in PAGE or f"`with {name}" in PAGE
