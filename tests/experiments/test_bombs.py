"""A small file that stands for millions of values, or nests without end, is one line that says so, at once."""

from __future__ import annotations

import time
from pathlib import Path

import click
import pytest

from experiments.command import cli
from experiments.runs.config_file import load_config
from experiments.systems.everos.prompts import read_slot
from experiments.systems.mem0.exporter import Mem0FirstSettings
from tracing.errors import MemtuneError
from tracing.files.yaml_text import MOST_VALUES, load_yaml

LAUGHS = "\n".join(
    ["a0: &a0 lol", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)), "{key}: *a11"]
)
MERGES = "\n".join(["a0: &a0 {x: 1}", *(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 40))])
WITHIN = "{key}: &a [*a]"
CHAIN = "\n".join(["a0: &a0 [1]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 400)), "{key}: *a399"])
DEEP = "{key}: " + "[" * 5_000 + "]" * 5_000
BOMBS = [LAUGHS, MERGES, WITHIN, CHAIN, DEEP]


@pytest.mark.parametrize("bomb", BOMBS, ids=["laughs", "merges", "within", "chain", "deep"])
@pytest.mark.parametrize("key", ["system_settings", "limits", "seed", "template"])
def test_no_yaml_bomb_is_read(bomb: str, key: str, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(bomb.replace("{key}", key))
    for read in (lambda: load_config(str(path)), lambda: read_slot(path), lambda: Mem0FirstSettings().texts(str(path))):
        begun = time.process_time()
        with pytest.raises(MemtuneError, match=r"a\.yaml.*(aliases written out|levels deep|alias stands within)"):
            read()
        assert time.process_time() - begun < 5


def test_aliases_of_ordinary_size_are_read() -> None:
    assert load_yaml("a: &a {x: [1, 2]}\nb: *a\nc: {<<: *a, y: 3}") == {
        "a": {"x": [1, 2]},
        "b": {"x": [1, 2]},
        "c": {"x": [1, 2], "y": 3},
    }
    assert len(load_yaml("\n".join(f"- {n}" for n in range(MOST_VALUES - 1)))) == MOST_VALUES - 1
    assert load_yaml("") is None


def test_an_option_with_a_bomb_is_refused() -> None:
    arguments = ["import-prompts", "rag", "--from", ".", "--out", "x", "--setting", "k=" + "[" * 5_000]
    with pytest.raises(click.BadParameter, match="no value as in a configuration"):
        cli(arguments, standalone_mode=False)
