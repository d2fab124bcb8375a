"""What docs/frameworks.md shows works as it stands there, on the real packages."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "frameworks.md").read_text(encoding="utf-8")
PACKAGES = r"^from (langchain_core|langgraph|llama_index|opentelemetry\.exporter\.otlp\.json\.file)\b"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_of_a_framework_runs(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in set(re.findall(PACKAGES, EXAMPLES[number], re.MULTILINE)):
        pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"framework{number}.py"
    path.write_text(EXAMPLES[number], encoding="utf-8")
    runpy.run_path(str(path))


def test_every_framework_has_an_example() -> None:
    for name in ("langgraph", "langchain", "langmem", "llama_index"):
        assert f"with instrument.{name}(" in PAGE
    assert len(EXAMPLES) == 5
