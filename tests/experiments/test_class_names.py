"""A name stands for one thing: who reads `Comparison` need not ask which."""

import ast
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("tracing", "attribution", "optimizer", "experiments")


def classes(package: str) -> Counter[str]:
    """The public classes of a package's modules, and how often each name is defined."""
    found = Counter[str]()
    for path in (ROOT / package).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found.update(node.name for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_")
    return found


@pytest.mark.slow
def test_no_class_of_the_experiments_shares_its_name_with_another_class() -> None:
    everywhere = sum((classes(package) for package in PACKAGES), Counter[str]())
    assert [name for name in classes("experiments") if everywhere[name] > 1] == []
