"""Each benchmark has help with an example, and a line in the list."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS, main

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_it_has_help_with_examples(capsys: pytest.CaptureFixture[str], name: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert f"Examples:\n    python -m benchmarks {name}" in capsys.readouterr().out


def test_the_list_has_them_all() -> None:
    listed = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([\w-]+)` \|", listed, re.MULTILINE) == list(BENCHMARKS)


def test_they_start_from_a_clone_alone() -> None:
    command = [sys.executable, "-m", "benchmarks", "--help"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert all(f"\n  {name}  " in listed for name in BENCHMARKS)
