"""The command line: one line on stderr and exit code 2 for whatever is wrong, and quick help."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from run_shapes import BASELINE, FILES, TUNED, loop_result, run_folder, summary

from experiments.command import SUBCOMMANDS, main
from experiments.runs.folder import RunFolder
from optimizer.tuning.results import LoopResult

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMTUNE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    said = capsys.readouterr()
    assert isinstance(caught.value.code, int)
    return caught.value.code, said.out, said.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["run", "nowhere.yaml"], "nowhere.yaml: no such file"),
        (["run", "--system", "mem9"], "--system: unknown: 'mem9'"),
        (["run", "--rounds", "-3"], "--rounds: "),
        (["run", "--rounds", "few"], "'few' is not a valid integer"),
        (["run", "--bogus"], "No such option"),
        (["run", "--dataset", "jsonl"], "--data FILE"),
        (["run", "--dataset", "jsonl", "--data", "rows.jsonl"], "rows.jsonl:2: "),
        (
            ["run", "--dataset", "locomo", "--data", "rows.jsonl"],
            "rows.jsonl: is not the data set locomo; it looks like",
        ),
        (["run", "--limit-conversations", "2", "--dry-run"], "at least 3"),
        (["run", "--model", "gpt-9"], "gpt-9: "),
        (
            ["eval", "--prompts", "nothing-here", "--base-url", "http://127.0.0.1:9/v1", "--model", "m"],
            "a folder of prompts has a file NAME.txt for each (extract, decide, answer)",
        ),
        (["compare", "a", "b"], "a: no such run"),
        (["compare", "a"], "give two or more runs"),
        (["export", "latest", "--to", "text", "--out", "x"], "latest: no such run"),
        (["ui"], "has no runs yet"),
        (["annotate", "rows.jsonl", "--agreement"], "rows.jsonl: is not a trace; it looks like"),
        (["model", "pull", "gpt-9"], "gpt-9: "),
        (["frobnicate"], "No such command"),
        (["rnu"], "No such command 'rnu'; did you mean 'run'?"),
        (["bench", "atribution"], "No such command 'atribution'; did you mean 'attribution'?"),
        (
            ["bench", "gate"],
            "'gate' is no longer part of memtune: it measures memtune, not your prompts; in a clone it is",
        ),
        (["run", "--system", "fact-memry"], "--system: unknown: 'fact-memry'; did you mean 'fact-memory'?"),
        (["run", "--dataset", "sampel"], "did you mean 'sample'?"),
        (["run", "--selector", "blmae"], "did you mean 'blame'?"),
        (["run", "dmeo"], "dmeo: no such file; did you mean 'demo'?"),
        (["model", "pull", "smollm2-135"], "did you mean 'smollm2-135m'?"),
        (["data", "show", "row.jsonl"], "did you mean 'rows.jsonl'?"),
        (["data", "show", "locmo"], "did you mean 'locomo'?"),
        (["run", "--system", "my_memry:M", "--dry-run"], "no module 'my_memry'; did you mean 'my_memory'?"),
        (["run", "--system", "my_memory:MyMemry", "--dry-run"], "'MyMemry'; did you mean 'MyMemory'?"),
        (
            ["run", "c.yaml", "--dry-run"],
            "system_settings.chunk_token, system_settings.topk: unknown to rag; did you mean 'chunk_tokens'?; did you "
            "mean 'top_k'?; it knows",
        ),
    ],
)
def test_whatever_is_wrong_is_told_in_one_line_with_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    good = {"id": "c", "speakers": ["A"], "sessions": [{"id": "D1", "turns": []}]}
    Path("rows.jsonl").write_text(json.dumps(good) + '\n{"id": "d", "speakers": ["A"]}\n')
    Path("my_memory.py").write_text("class MyMemory: ...\n")
    Path("c.yaml").write_text("system: rag\nsystem_settings: {chunk_token: 3, topk: 4}\n")
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("memtune: ")
    assert expected in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_command_has_help_with_examples(capsys: pytest.CaptureFixture[str], name: str) -> None:
    code, out, _ = run(capsys, name, "--help")
    assert code == 0
    nested = {
        "bench": ["attribution"],
        "data": ["audit", "fetch", "list", "show", "validate"],
        "mlflow": ["send"],
        "model": ["list", "pull", "serve"],
        "system": ["check", "install", "list", "remove"],
        "trace": ["diff", "export", "import", "search", "show", "slice", "stats"],
    }.get(name)
    pages = [run(capsys, name, command, "--help")[1] for command in nested] if nested else [out]
    for page in pages:
        assert "Examples:\n" in page
        assert f"  memtune {name}" in page


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, contextlib, io\nimport memtune\nfrom experiments.command import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n    main(['--help'])\n"
        "heavy = {'mlflow', 'openai', 'rich', 'matplotlib', 'dspy', 'gepa', 'networkx', 'pydantic'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_dry_run_predicts_and_leaves_nothing_behind(
    capsys: pytest.CaptureFixture[str], home: Path, tmp_path: Path
) -> None:
    model = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    code, out, err = run(capsys, "run", "demo", *model, "--out", "deep/run", "--dry-run")
    assert (code, err) == (0, "")
    assert list(tmp_path.iterdir()) == []
    for word in ("train", "calls", "tokens", "minutes", "money"):
        assert word in out
    assert not home.exists()


def test_a_run_says_before_it_begins_that_its_budget_leaves_nothing_to_try(capsys: pytest.CaptureFixture[str]) -> None:
    model = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1")
    assert "note: budget.calls is 20, and" in run(capsys, "run", "demo", *model, "--budget-calls", "20", "--dry-run")[1]
    code, _, err = run(capsys, "run", "demo", *model, "--budget-calls", "20")
    assert code == 2
    assert err.index("note: budget.calls is 20, and") < err.index("memtune: ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_asks_memtune_itself(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    code, script, err = run(capsys, "completion", shell)
    assert (code, err) == (0, "")
    variable = re.search(rf"(_\w+)={shell}_complete", script)
    assert variable is not None
    monkeypatch.setenv(variable[1], f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", "memtune doc")
    monkeypatch.setenv("COMP_CWORD", "doc" if shell == "fish" else "1")
    assert "doctor" in run(capsys)[1]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_takes_the_completion_script(capsys: pytest.CaptureFixture[str]) -> None:
    _, script, _ = run(capsys, "completion", "bash")
    done = subprocess.run(["bash"], input=f"{script}\ncomplete -p memtune", capture_output=True, text=True)
    assert "_memtune_completion memtune" in done.stdout, done.stderr


def test_data_show_prints_the_splits(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "data", "show", "--limit-conversations", "3")
    assert code == 0
    assert "train-01" in out


def test_runs_and_compare_print_what_the_folders_hold(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert "no runs under" in run(capsys, "runs")[1]
    first, second = run_folder(home, 1), run_folder(home, 2, seed=4, result=loop_result(verdict="regressed"))
    _, out, _ = run(capsys, "runs")
    assert out.index(second.id) < out.index(first.id)
    assert "regressed" in out
    _, out, _ = run(capsys, "compare", first.id, "latest")
    assert "prompt answer: no difference" in out
    assert "not comparable" not in out


def test_runs_and_compare_show_names_and_figures_whole_at_80_columns(
    capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is captured counts as a terminal of that width, which knows no colours.
    for name, value in {"COLUMNS": "80", "TTY_COMPATIBLE": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    named = {"system": "fact-memory", "dataset": "sample", "model": "qwen2.5-coder-0.5b"}
    folders = []
    for second in (1, 2):
        folder = RunFolder.create(home, system="fact-memory", now=datetime(2026, 11, 21, 22, 57, second), files=FILES)
        folder.write_summary(replace(summary(run_id=folder.id), **named, verdict="inconclusive"))
        folder.write_prompts("champion", TUNED)
        folders.append(folder)
    ids = [folder.id for folder in folders]
    figures = ["0.420", "0.520", "+0.100", "0.031", "inconclusive"]
    _, out, _ = run(capsys, "runs")
    assert all(len(line) <= 80 for line in out.splitlines())
    for word in (*ids, *figures, "fact-memory on sample", "qwen2.5-coder-0.5b"):
        assert word in out
    _, out, _ = run(capsys, "compare", *ids)
    assert all(len(line) <= 80 for line in out.splitlines())
    assert any(ids[0] in line and ids[1] in line for line in out.splitlines())
    for word in (*figures, "0.420 (0.320–0.520)", "champion, validation", "qwen2.5-coder-0.5b", "all rounds done"):
        assert word in out


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (
            replace(loop_result(verdict="inconclusive"), champion_candidate=BASELINE),
            "These are the baseline prompts, unchanged",
        ),
        (loop_result(verdict="regressed"), "answered worse than the baseline prompts"),
        (loop_result(verdict="inconclusive"), "do not show that these prompts are better"),
        (replace(loop_result(verdict=None, stopped="budget: spent"), champion_candidate=TUNED), "no verdict"),
    ],
)
def test_an_export_that_is_no_improvement_says_so_and_so_does_its_manifest(
    capsys: pytest.CaptureFixture[str], home: Path, tmp_path: Path, result: LoopResult, told: str
) -> None:
    run_folder(home, result=result)
    code, out, err = run(capsys, "export", "latest", "--to", "text", "--out", "tuned", "--target-model", "some-model")
    assert code == 0
    assert any(line.startswith("warning: ") and told in line for line in err.splitlines())
    manifest = json.loads((tmp_path / "tuned" / "manifest.json").read_text())
    unchanged = result.champion_candidate == BASELINE
    assert manifest["tuned"] == ([] if unchanged else ["answer"])
    assert any(told in warning for warning in manifest["warnings"])
    assert ("exported the BASELINE prompts, which are not tuned" in out) is unchanged
    if unchanged:
        assert not any("were tuned on" in warning for warning in manifest["warnings"])


@pytest.mark.parametrize("value", ["-0.1", "1.5", "50", "nan"])
def test_a_threshold_that_no_score_can_have_is_refused(
    capsys: pytest.CaptureFixture[str], home: Path, value: str
) -> None:
    code, _, err = run(capsys, "eval", "--prompts", "baseline", "--min-score", value)
    assert code == 2
    assert "--min-score" in err
    assert not home.exists()


def test_export_writes_the_champion_with_its_origin(
    capsys: pytest.CaptureFixture[str], home: Path, tmp_path: Path
) -> None:
    folder = run_folder(home)
    code, out, _ = run(capsys, "export", "latest", "--to", "text", "--out", "tuned")
    assert (code, out) == (0, "exported to tuned\n")
    assert (tmp_path / "tuned" / "answer.txt").read_text() == TUNED["answer"]
    manifest = json.loads((tmp_path / "tuned" / "manifest.json").read_text())
    assert (manifest["run_id"], manifest["model"], manifest["delta"]) == (folder.id, "some-model", 0.1)
    code, _, err = run(capsys, "export", "latest", "--to", "text", "--out", "tuned")
    assert code == 2
    assert "exists already" in err


def test_model_list_says_what_is_missing_and_how_to_get_it(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "model", "list")
    assert "memtune model pull smollm2-135m" in out


def test_a_command_still_has_its_earlier_name_and_says_the_new_one(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "report", "latest")
    assert code == 2
    assert err.startswith("note: report is called diagnose now; the old name still works in this version\n")
    assert "latest: no such run" in err


def test_an_option_that_is_gone_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "run", "--executor", "ray")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("memtune: --executor: Ray is no longer part of memtune: ")


def test_a_command_that_is_gone_says_why_and_what_to_use(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "ask", "trace.jsonl", "why?")
    assert (code, err.count("\n")) == (2, 1)
    assert "'ask' is no longer part of memtune: it answered none of 45 questions; search the trace with" in err
