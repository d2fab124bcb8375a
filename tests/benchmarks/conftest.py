"""Benchmarks measure memtune, and nobody runs it through them: their slow tests belong to the thorough suite."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "benchmarks" in item.path.parts and item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.thorough)
