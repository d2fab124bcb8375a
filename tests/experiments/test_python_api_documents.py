"""The code in docs/python-api.md and the cells of the notebook run as they stand, against a scripted model."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import socket
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


@pytest.fixture(scope="module")
def notebook() -> dict[str, Any]:
    return json.loads((ROOT / "examples/python_api.ipynb").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


@pytest.mark.slow
def test_the_outputs_of_the_notebook_are_those_of_its_cells_now(
    notebook: dict[str, Any], mlflow_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMTUNE_HOME", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    spec = importlib.util.spec_from_file_location("docs_notebook", ROOT / "docs" / "notebook.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    (tmp_path / ".memtune").mkdir()
    shutil.copy(store_file(mlflow_home), store_file(tmp_path / ".memtune"))
    now = script.executed(notebook, tmp_path)
    assert shown(now) == shown(notebook), "run: python docs/notebook.py"


def shown(notebook: dict[str, Any]) -> list[tuple[str, list[str], list[Any]]]:
    """The cells, with what is shown below each but for run ids and what pictures are made of."""
    varies = re.compile(r"\d{8}-\d{6}(-\d+)?|[\d,]+ characters|(?<='image/png': )'[^']+'")
    return [
        (cell["id"], cell["source"], [varies.sub("…", str(output)) for output in cell.get("outputs", ())])
        for cell in notebook["cells"]
    ]


def test_the_notebook_is_committed_with_outputs_that_name_no_machine(notebook: dict[str, Any]) -> None:
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    kinds = {kind for cell in code for output in cell["outputs"] for kind in output.get("data", ())}
    assert {"text/plain", "text/html", "image/png"} <= kinds
    assert [cell["id"] for cell in code if not cell["outputs"]] == ["model"]
    texts = re.sub(r"'image/png': '[^']+'", "", str([cell["outputs"] for cell in code]))
    assert re.findall(r"(?<![<\w.])/(?:\w+/)+\w*", texts) == []
    assert socket.gethostname() not in texts
