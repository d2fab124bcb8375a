"""Names in the code: one for each thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_no_public_class_of_attribution_shares_its_name_with_another() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for package in ("tracing", "attribution", "optimizer", "experiments"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(str(path.relative_to(ROOT)))
    shared = {name: where for name, where in places.items() if len(where) > 1}
    assert {name: where for name, where in shared.items() if any(one.startswith("attribution") for one in where)} == {}
