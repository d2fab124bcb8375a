"""What had another name before works in this version: typed names are noted, files are read as before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from run_shapes import BASELINE as PROMPTS
from run_shapes import TUNED, run_folder

from experiments.command import main
from experiments.runs.cases_file import read_cases
from experiments.runs.config_file import load_config
from experiments.runs.fingerprint import read_fingerprint
from experiments.runs.folder import BASELINE, RunFolder
from experiments.runs.run_settings import lasting_params
from tracing.errors import ConfigError

UNREACHED = ("--base-url", "http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("arguments", "earlier", "name"),
    [
        (("eval", "--prompts", "seed", "--min-score", "0.5"), "seed", "baseline"),
        (("eval", "--prompts", "baseline", "--against", "seed"), "seed", "baseline"),
        (("attribute", "nowhere", "--traces-of", "seed"), "seed", "baseline"),
        (("diagnose", "nowhere", "--traces-of", "seed"), "seed", "baseline"),
        (("annotate", "nowhere", "--traces-of", "seed"), "seed", "baseline"),
        (("run", "--no-attribution"), "--no-attribution", "--no-blame"),
        (("run", "--prompts", "nowhere"), "--prompts", "--start"),
        (("run", "tuned.yaml"), "prompts.tuned", "prompts.tune"),
        (("run", "unattributed.yaml"), "search.attribution", "search.blame"),
        (("attribute", "nowhere", "--model", "m"), "--model", "--helper-model"),
        (("annotate", "nowhere", "--model", "m"), "--model", "--helper-model"),
        (
            ("bench", "attribution", "--suite", "nowhere", "--method", "survival", "--model", "m"),
            "--model",
            "--helper-model",
        ),
        (("export", "nowhere", "--to", "text", "--out", "out", "--model", "m"), "--model", "--target-model"),
    ],
)
def test_an_earlier_name_that_was_typed_works_and_is_noted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    earlier: str,
    name: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tuned.yaml").write_text("prompts: {tuned: [answer]}\n")
    Path("unattributed.yaml").write_text("search: {attribution: false}\n")
    unreached = ("--model", "m", *UNREACHED) if arguments[0] in ("run", "eval") else ()
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, *unreached])
    err = capsys.readouterr().err
    assert stopped.value.code == 2
    assert err.count(f"note: {earlier} is called {name} now; the old name still works in this version\n") == 1
    assert "No such option" not in err
    assert "is not one of" not in err


def test_both_names_at_once_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--start", "here", "--prompts", "there"])
    assert "--prompts is the earlier name of --start; give one of them" in capsys.readouterr().err
    path = tmp_path / "both.yaml"
    path.write_text("search: {attribution: false, blame: true}\n")
    with pytest.raises(ConfigError, match=r"search\.attribution: is the earlier name of search\.blame; leave one"):
        load_config(str(path))


def test_an_earlier_key_is_overridden_by_an_option(tmp_path: Path) -> None:
    path = tmp_path / "tuned.yaml"
    path.write_text("prompts: {tuned: [answer]}\nmodels: {task: {model: m, reuse_prefixes: true}}\n")
    assert load_config(str(path)).prompts.tune == ("answer",)
    assert load_config(str(path), overrides={"prompts.tune": "extract"}).prompts.tune == ("extract",)


def of_earlier_commit(folder: RunFolder) -> None:
    """The run as it would have been written before."""
    (folder.path / "prompts" / BASELINE).rename(folder.path / "prompts" / "seed")
    reply = {"reply": "unknown", "score": 0.0, "passed": False}
    case = {"split": "val", "conversation": "c", "question_id": "q", "question": "Where?", "answers": ["Oslo"]}
    (folder.path / "cases.jsonl").write_text(json.dumps({**case, "replies": {"seed": reply}}) + "\n")
    summary = (folder.path / "summary.json").read_text().replace('  "format": 1,\n', "", 1)
    for name, earlier in {"validation": "val", "validation_score": "val_score", "rounds": "iterations"}.items():
        summary = summary.replace(f'"{name}":', f'"{earlier}":')
    (folder.path / "summary.json").write_text(summary)
    (folder.path / "fingerprint.json").write_text('{"config.prompts.tuned": "x", "config.search.attribution": "True"}')


def test_a_run_of_an_earlier_commit_is_read(tmp_path: Path) -> None:
    folder = run_folder(tmp_path)
    summary = folder.summary()
    of_earlier_commit(folder)
    assert '"val_score"' in (folder.path / "summary.json").read_text()
    assert folder.summary() == summary
    assert [case.split for case in read_cases(folder)] == ["validation"]
    assert (folder.prompts("baseline"), folder.prompts("champion")) == (PROMPTS, TUNED)
    assert [set(case.replies) for case in read_cases(folder)] == [{"baseline"}]
    now = {f"config.{key}" for key in lasting_params(load_config(None, overrides={"prompts.tune": "answer"}))}
    assert set(read_fingerprint(folder)) <= now
