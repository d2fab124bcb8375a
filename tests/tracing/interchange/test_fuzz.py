"""Damaged files give a graph or a TraceError: a short, seeded part of `fuzz.py`."""

from __future__ import annotations

from pathlib import Path

import fuzz
import pytest


def test_nothing_but_a_graph_or_a_trace_error_comes_of_damaged_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    tried, readable = fuzz.fuzz(seed=4, going_on=lambda tried: tried < 60)
    assert 10 < readable < tried
