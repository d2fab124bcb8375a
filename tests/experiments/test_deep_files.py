"""A file that is nested too deep to be read is one line that says so, whatever it was given as."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.command import main
from experiments.runs.folder import CONFIG

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("arguments", "name", "text"),
    [
        (("data", "show", "--dataset", "locomo", "--data"), "deep.json", DEEP),
        (("data", "show", "--dataset", "jsonl", "--data"), "deep.jsonl", DEEP),
        (("data", "show"), "deep.yaml", f"system: {DEEP}"),
        (("bench", "attribution", "--method", "survival", "--suite"), "deep.json", DEEP),
        (("trace", "import", "--from", "mlflow", "--out", "out.jsonl"), "deep.json", DEEP),
        (("trace", "show"), "deep.jsonl", DEEP),
        (("diagnose",), "deep.jsonl", DEEP),
        (("mlflow", "send"), "run/mlflow-outbox.jsonl", DEEP),
    ],
)
def test_it_is_refused_in_one_line(
    arguments: tuple[str, ...],
    name: str,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    if path.parent.name:
        (path.parent / CONFIG).write_text("system: rag\n")
    with pytest.raises(SystemExit) as ended:
        main([*arguments, str(path.parent if path.parent.name else path)])
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
