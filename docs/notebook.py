"""Runs the cells of examples/python_api.ipynb, and writes what they show into it: python docs/notebook.py"""

from __future__ import annotations

import ast
import base64
import io
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

os.environ.setdefault("MPLBACKEND", "agg")

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "examples" / "python_api.ipynb"


def executed(notebook: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The notebook with the outputs of its code cells, run one after another in a folder, as a kernel runs them."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = []
    with chdir(folder):
        for cell in notebook["cells"]:
            outputs = _outputs("".join(cell["source"]), names) if cell["cell_type"] == "code" else None
            cells.append(cell if outputs is None else {**cell, "execution_count": None, "outputs": outputs})
    return {**notebook, "cells": cells}


def _outputs(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """What a cell prints, and the value of its last expression."""
    statements = ast.parse(source).body
    last = statements.pop() if statements and isinstance(statements[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(ast.Module(statements, []), "<cell>", "exec"), names)  # noqa: S102 (our own notebook)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)  # noqa: S307 (as above)
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    if value is not None:
        outputs.append({"output_type": "display_data", "metadata": {}, "data": _shown(value)})
    return outputs


def _shown(value: Any) -> dict[str, Any]:
    """A value as a notebook shows it, by media type."""
    shown: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    html = value._repr_html_() if hasattr(value, "_repr_html_") else None
    # GitHub shows no frame: a whole page is seen in a running notebook alone.
    if html is not None and not html.startswith("<iframe"):
        shown["text/html"] = html.splitlines(keepends=True)
    if type(value).__name__ == "Axes":
        picture = io.BytesIO()
        value.figure.savefig(picture, format="png", dpi=110, metadata={"Software": None})
        shown = {"text/plain": ["<Axes>"], "image/png": base64.b64encode(picture.getvalue()).decode()}
    return shown


def main() -> None:
    """Write the outputs of now."""
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory() as folder:
        now = executed(json.loads(NOTEBOOK.read_text(encoding="utf-8")), Path(folder))
    NOTEBOOK.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
