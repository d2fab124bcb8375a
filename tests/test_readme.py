"""What the README shows works as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_readmes_python_example_records_a_loadable_trace(tmp_path: Path) -> None:
    code = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(code) == 1
    ran = subprocess.run([sys.executable, "-c", code[0]], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "Mara lives in Oslo." in ran.stdout
    assert "I moved to Oslo" in ran.stdout

    from tracing import load_trace

    loaded = load_trace(tmp_path / "run.jsonl")
    assert loaded.problem is None
    assert [operation.name for operation in loaded.graph.operations.values()] == ["extract_facts"]


def test_every_command_the_readme_names_exists() -> None:
    import click

    from experiments.command import cli

    named = set(re.findall(r"`memtune (\w+)", README.read_text()))
    assert named
    assert named <= set(cli.list_commands(click.Context(cli)))
