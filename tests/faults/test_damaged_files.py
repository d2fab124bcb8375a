"""Damaged files give what is left of them, or an error that names them: never another exception, nor a hang."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench import Tried
from fuzz import fuzz
from readers import READERS

FEW, MANY = 56, 560


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", READERS)
def test_nothing_but_what_is_left_or_an_error_comes_of_a_damaged_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tried: Tried, name: str, count: int
) -> None:
    monkeypatch.chdir(tmp_path)
    tried(f"damaged {name}", count)
    _, readable = fuzz(name, count, lambda number: number < count)
    assert readable < count


def test_there_are_as_many_as_promised() -> None:
    assert len(READERS) * FEW >= 1000
    assert len(READERS) * MANY >= 10_000
