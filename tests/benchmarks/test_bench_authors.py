"""An author is measured on what its texts gain where it did not look."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.scripted_model import serve
from benchmarks.weak_model import WeakModel
from experiments.data.loaders import load_dataset
from experiments.runs.config_file import load_config


@pytest.mark.slow
def test_usable_texts_and_their_gains_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    splits = load_dataset(load_config(None)).splits
    file = tmp_path / "authors.json"
    few = ["--conversations", "4", "--questions", "3", "--texts", "2", "--inputs", "6"]
    with serve(WeakModel([*splits.train, *splits.validation, *splits.test])) as roles:
        key = roles["task"].api_key
        monkeypatch.setenv("OPENAI_API_KEY", key.get_secret_value() if key is not None else "")
        model = f"{roles['task'].base_url}#{roles['task'].model}"
        forms = ["--form", "lines", "--form", "bank"]
        with pytest.raises(SystemExit) as ended:
            main(["authors", "--model", model, *forms, *few, "--home", str(tmp_path), "--json", str(file)])
    assert ended.value.code == 0
    figures = json.loads(file.read_text())["authors"][model]
    extract = figures["lines"]["extract"]
    # This author knows one line, whatever it reads, so further requests bring nothing new.
    assert extract["texts"] == 1
    assert extract["requests"] > 1
    assert [row["reason"].partition(": ")[2] for row in extract["written"]] == [
        "added: Be careful: every detail counts."
    ]
    assert figures["bank"]["extract"]["requests"] == 0
    assert figures["bank"]["extract"]["texts"] == 2
    assert extract["inputs"] == 6
    assert extract["best_gain"] == extract["mean_gain"] == extract["written"][0]["gain"]
    assert "Be careful" not in capsys.readouterr().out
