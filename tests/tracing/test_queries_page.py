"""What docs/queries.md shows works as it stands there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.command import main

PAGE = (Path(__file__).parents[2] / "docs" / "queries.md").read_text(encoding="utf-8")


def test_the_pages_examples_and_commands_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    assert code.count("assert") > 10
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^\$ memtune (.*)$", PAGE, re.MULTILINE)
    assert len(commands) == 6
    for command in commands:
        with pytest.raises(SystemExit) as ended:
            main(shlex.split(command))
        assert ended.value.code == (1 if " diff " in command else 0), command
    assert "3 operations and 6 variables written to behind.jsonl" in capsys.readouterr().out
