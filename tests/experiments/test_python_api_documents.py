"""The code in docs/python-api.md and the cells of the notebook run as they stand, against a scripted model."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gold_runs import GoldModel
from html_pages import Page
from scripted_server import ScriptedServer

from experiments.mlflow_tracking.sqlite_store import store_file

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "http://127.0.0.1:8000/v1"

Execute = Callable[[str, dict[str, Any]], Any]


@pytest.fixture
def execute(
    scripted_server: ScriptedServer,
    mlflow_home: Path,
    memtune_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Execute:
    """Executes a piece of code where the address in it leads to the scripted server; gives its last expression."""
    monkeypatch.chdir(tmp_path)
    scripted_server.script = GoldModel()
    memtune_home.mkdir()
    shutil.copy(store_file(mlflow_home), store_file(memtune_home))

    def run(code: str, names: dict[str, Any]) -> Any:
        *lines, last = code.replace(ADDRESS, scripted_server.base_url).rstrip().splitlines()
        try:
            final = compile(last, "<last line>", "eval")
        except SyntaxError:
            lines, final = [*lines, last], compile("None", "<last line>", "eval")
        exec(compile("\n".join(lines), "<code of the document>", "exec"), names)  # noqa: S102 (our own documents)
        return eval(final, names)  # noqa: S307 (our own documents)

    return run


@pytest.mark.slow
def test_the_code_of_the_page_runs(execute: Execute, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = (ROOT / "docs/python-api.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 7
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks:
        execute(block, names)
    said = capsys.readouterr().out
    assert "ExtractionError" in said
    assert names["result"].verdict in said
    for page in ("run.html", "diagnosis.html"):
        assert Page((tmp_path / page).read_text(encoding="utf-8")).open == []


@pytest.mark.slow
def test_the_cells_of_the_notebook_run(execute: Execute, capsys: pytest.CaptureFixture[str]) -> None:
    notebook = json.loads((ROOT / "examples/python_api.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = [value for cell in cells if (value := execute(cell, names)) is not None]
    pages = [value._repr_html_() for value in shown if hasattr(value, "_repr_html_")]
    assert len(pages) >= 5
    assert all(Page(page).open == [] for page in pages)
    assert len(names["wrong"])
    assert names["result"].prompts["answer"] in capsys.readouterr().out
    assert all(not cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code")
