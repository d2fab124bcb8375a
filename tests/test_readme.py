"""What the README and the guide show works as it stands there."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
LONGEST = 150


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def test_the_readme_is_read_in_a_minute() -> None:
    assert len(README.splitlines()) <= LONGEST


def test_the_readmes_python_example_records_a_loadable_trace(tmp_path: Path) -> None:
    (code,) = [block for block in blocks(README) if "from tracing" in block]
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "Mara lives in Oslo." in ran.stdout
    assert "I moved to Oslo" in ran.stdout

    from tracing import load_trace

    loaded = load_trace(tmp_path / "run.jsonl")
    assert loaded.problem is None
    assert [operation.name for operation in loaded.graph.operations.values()] == ["extract_facts"]


def test_the_guides_trace_memory_recalls_what_it_recorded(tmp_path: Path) -> None:
    (code,) = [block for block in blocks(GUIDE) if "TraceMemory" in block]
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "planner decided supplier: Halden (confidence 0.6), because cheapest" in ran.stdout


def test_what_the_guide_uses_of_the_python_api_exists() -> None:
    import memtune
    from experiments.api.result import Result

    (code,) = [block for block in blocks(GUIDE) if "import memtune" in block]
    used = set(re.findall(r"result\.(\w+)", code))
    assert used
    assert all(hasattr(Result, name) for name in used)
    arguments = re.findall(r"(\w+)=", code)
    assert set(arguments) <= set(inspect.signature(memtune.run).parameters)


def test_every_command_that_is_named_exists() -> None:
    import click

    from experiments.command import cli

    named = set(re.findall(r"`memtune ([\w-]+)", README + GUIDE))
    assert named
    assert named <= set(cli.list_commands(click.Context(cli)))
