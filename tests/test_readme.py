"""What the README and the guide show works as it stands there."""

import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
MOST_LINES, MOST_WORDS = 80, 800
GITHUB_COLUMN = 780
"""Pixels of a repository's README beside its sidebar, on a screen of 1,280."""


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def test_the_readme_is_read_in_a_minute() -> None:
    assert len(README.splitlines()) <= MOST_LINES
    assert len(README.split()) <= MOST_WORDS


def test_the_first_screen_shows_a_picture_two_commands_a_result_and_three_links() -> None:
    first = README.partition("\n## ")[0]
    assert len(re.findall(r"^!\[", first, re.MULTILINE)) == 1
    assert re.findall(r"^\$ (make \w+)", first, re.MULTILINE) == ["make demo", "make test"]
    assert len(re.findall(r"(?<!!)\[[^\]]+\]\(", first)) == 3
    assert "|" not in first, "no table stands before the links"


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_nothing_of_the_readme_is_cut_at_the_right_edge() -> None:
    from markdown_it import MarkdownIt

    sync_api = pytest.importorskip("playwright.sync_api")
    style = "body{font:16px sans-serif;margin:0} pre{font-size:85%;padding:16px;overflow:auto} img{max-width:100%}"
    html = MarkdownIt("gfm-like", {"linkify": False}).render(README)
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": GITHUB_COLUMN, "height": 900})
        page.set_content(f"<style>{style}</style>{html}")
        cut = page.evaluate(
            "[...document.querySelectorAll('body, pre, table')].filter(e => e.scrollWidth > e.clientWidth + 1)"
            ".map(e => e.textContent.slice(0, 60))"
        )
        chromium.close()
    assert cut == []


def test_the_readmes_python_example_records_a_loadable_trace_each_time_it_runs(tmp_path: Path) -> None:
    (code,) = [block for block in blocks(README) if "from tracing" in block]
    for _ in range(2):
        ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        assert "Mara lives in Oslo." in ran.stdout
        assert "I moved to Oslo" in ran.stdout

    from tracing import load_trace

    files = sorted((tmp_path / "traces").iterdir())
    assert len(files) == 2
    for file in files:
        loaded = load_trace(file)
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
