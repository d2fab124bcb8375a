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
from experiments.systems.fact_memory import PROMPTS

ASKED = (
    "lines",
    "whole",
    "gepa",
    "miprov2",
    "langmem-metaprompt",
    "langmem-gradient",
    "langmem-prompt-memory",
)


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
        forms = [part for form in (*ASKED, "bank") for part in ("--form", form)]
        asked = ["--flaw", "general-terms", "--author", model, "--author", "scripted", "--prompt", "extract"]
        with pytest.raises(SystemExit) as ended:
            main(["authors", "--model", model, *asked, *forms, *few, "--home", str(tmp_path), "--json", str(file)])
    assert ended.value.code == 0
    result = json.loads(file.read_text())["authors"]
    figures, right = result[model], {form: rows["extract"] for form, rows in result["scripted"].items()}
    extract = figures["lines"]["extract"]
    assert list(figures["lines"]) == ["extract"], "no other prompt was asked for"
    # This author knows one line, whatever it reads, so a further request brings nothing new.
    assert (extract["texts"], extract["requests"], extract["usable"]) == (2, 2, 1)
    assert extract["refused"] == {"the text was tried or proposed already": 1}
    assert [row["reason"].partition(": ")[2] for row in extract["written"]] == [
        "added: Be careful: every detail counts."
    ]
    assert figures["bank"]["extract"]["requests"] == 0
    assert figures["bank"]["extract"]["texts"] == 2
    # The scripted author gives the shipped prompt back, in whatever form it is asked for.
    shipped = PROMPTS["extract"].text
    for form in ASKED:
        assert shipped in [row["text"] for row in right[form]["written"]], form
    # LangMem's metaprompt asks five times for a text, whatever the replies are.
    langmem = {form: right[form]["requests"] for form in ASKED if form.startswith("langmem")}
    assert langmem == {"langmem-metaprompt": 10, "langmem-gradient": 6, "langmem-prompt-memory": 2}
    assert extract["inputs"] == 6
    assert extract["best_gain"] == extract["mean_gain"] == extract["written"][0]["gain"]
    assert "Be careful" not in capsys.readouterr().out


def test_a_prompt_that_the_system_does_not_have_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["authors", "--author", "scripted", "--prompt", "extrat", "--home", str(tmp_path)])
    assert ended.value.code == 2
    assert "--prompt: fact-memory has no 'extrat'; did you mean 'extract'?" in capsys.readouterr().err
