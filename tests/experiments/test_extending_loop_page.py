"""What docs/extending-loop.md shows runs as it stands there, and keeps the contracts that it is about."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from attribution.attributor import ATTRIBUTORS
from attribution.judging.metrics import METRIC_PLUGINS
from attribution.survival.matching.matcher import MATCHERS
from experiments.data.datasets import DATASETS
from optimizer.objectives.objective import OBJECTIVES
from optimizer.proposers.rewrites import PROPOSERS
from optimizer.search.optimizers import OPTIMIZERS

PAGE = (Path(__file__).parents[2] / "docs" / "extending-loop.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_keeps_its_contract(number: int, tmp_path: Path) -> None:
    path = tmp_path / f"example{number}.py"
    path.write_text(EXAMPLES[number])
    found = runpy.run_path(str(path))
    suites = [value for name, value in found.items() if name.startswith("Test")]
    assert suites
    for suite in suites:
        tests = [name for name in dir(suite) if name.startswith("test_")]
        assert tests
        for name in tests:
            getattr(suite(), name)()


@pytest.mark.parametrize(
    "registry", [ATTRIBUTORS, MATCHERS, OPTIMIZERS, PROPOSERS, OBJECTIVES, METRIC_PLUGINS, DATASETS]
)
def test_the_table_names_every_built_in_part(registry: object) -> None:
    assert len(EXAMPLES) == 7
    (row,) = [line for line in PAGE.splitlines() if f"| `memtune.{registry.kind}` |" in line]  # type: ignore[attr-defined]
    assert row.rpartition(" | ")[2].rstrip(" |") == ", ".join(registry.built_in)  # type: ignore[attr-defined]
    assert f"`{registry.key}`" in row  # type: ignore[attr-defined]
