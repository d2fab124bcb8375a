"""A home in which any file is damaged gives what is left of it, or says what to do; it never breaks a command."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from bench import Bench, Tried, memtune, well_said
from damage import Damage, in_bytes, in_json, in_lines, in_text

FEW, HOMES = 1, 16

BY_ENDING: dict[str, Damage] = {".json": in_json, ".jsonl": in_lines, ".yaml": in_text, ".txt": in_text}


def _damage(home: Path, draw: random.Random) -> Path:
    """Damage one file of a home, each kind as likely as any other."""
    files = sorted(path for path in home.rglob("*") if path.is_file() and path.stat().st_size)
    ending = draw.choice(sorted({path.suffix for path in files}))
    path = draw.choice([path for path in files if path.suffix == ending])
    before = path.read_bytes()
    content = before
    while content == before:
        content = BY_ENDING.get(ending, in_bytes)(before, draw)
    path.write_bytes(content)
    return path.relative_to(home)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [*range(FEW), *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(FEW, HOMES))]
)
def test_a_damaged_home_breaks_no_command(bench: Bench, tried: Tried, tmp_path: Path, seed: int) -> None:
    whole, draw = bench.whole(), random.Random(seed)  # noqa: S311
    config, home = bench.config(), tmp_path / "home"
    home.mkdir()
    shutil.copy(bench.store, home)
    bench.endpoint.behave()
    well_said(memtune("run", config, "--home", home))
    damaged = [_damage(home, draw) for _ in range(2)]
    print(*damaged)
    tried("damaged home")
    at = ("--home", home)
    for command in (
        ("runs", *at),
        ("compare", "latest", "latest", *at),
        ("attribute", "latest", "--traces-of", "all", "--out", tmp_path / "said.jsonl", *at),
        ("diagnose", "latest", "--traces-of", "all", "--out", tmp_path / "report.html", *at),
        ("export", "latest", "--to", "text", "--out", tmp_path / "tuned", *at),
        ("run", "--resume", "latest", *at),
        ("run", config, *at),
    ):
        said = memtune(*command)
        # `attribute` ends with 1 where a trace is damaged.
        well_said(said, codes=(0, 1, 2))
    # A reply or a memory that is kept with another text is another's to tell.
    if said.code == 0 and not any(path.parts[0] == "cache" for path in damaged):
        paid = ("calls", "rounds", "search")  # some have to be made again
        found = bench.outcome(home)
        assert {k: v for k, v in found.items() if k not in paid} == {k: v for k, v in whole.items() if k not in paid}
