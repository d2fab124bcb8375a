"""A run starts from the prompts that it is given, keeps them in its folder, and is resumed with these."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from scripted_server import ScriptedServer, prompt_of

from experiments.command import main
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.runs.folder import RunFolder

TEXT = "Notes:\r\n{context}\nNow {{answer}}: {question} "
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(
    mlflow_home: Path,
    tmp_path: Path,
    scripted_server: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Starts `memtune` with arguments; gives its exit code and what it said."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMTUNE_HOME", str(tmp_path / "home"))
    endpoint = f"base_url: '{scripted_server.base_url}', retries: 0"
    Path("run.yaml").write_text(
        "system: rag\nlimits: {conversations: 3, questions: 1}\nrounds: 0\n"
        f"models:\n  task: {{model: m, {endpoint}}}\n  embedding: {{model: e, {endpoint}}}\n"
        f"tracking: {{uri: '{store_uri(mlflow_home)}', experiment: {tmp_path.name}}}\n"
    )

    def started(*arguments: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert isinstance(caught.value.code, int)
        said = capsys.readouterr()
        return caught.value.code, said.out + said.err

    return started


@pytest.mark.slow
def test_imported_prompts_are_what_a_run_sends_keeps_and_exports(run: Run, scripted_server: ScriptedServer) -> None:
    Path("mine.py").write_text(f"QA = {TEXT!r}\n", newline="")
    code, said = run("import-prompts", "rag", "--from", "mine.py", "--map", "answer=QA", "--out", "prompts")
    assert (code, said.splitlines()[0]) == (0, "answer: QA")
    asked: list[str] = []

    def reply(body: dict[str, object]) -> str:
        asked.append(prompt_of(body))
        return "unknown"

    scripted_server.script = reply
    code, said = run("run", "run.yaml", "--start", "prompts", "--out", "tuned")
    assert code == 0, said
    sent = [text for text in asked if "Now {answer}: " in text]
    assert sent
    assert all(text.startswith("Notes:\r\n") for text in sent)
    folder = RunFolder(Path("tuned"))
    assert folder.prompts("baseline") == folder.prompts("champion") == {"answer": TEXT}
    # The folder that it was given may change or go; the run has its own copy.
    shutil.rmtree("prompts")
    before = scripted_server.count
    code, said = run("run", "--resume", "tuned")
    assert code == 0, said
    assert scripted_server.count == before
    code, said = run("export", "tuned", "--to", "text", "--out", "out")
    assert code == 0, said
    assert Path("out/answer.txt").read_bytes() == TEXT.encode()
    assert json.loads(Path("out/manifest.json").read_text())["tuned"] == []


@pytest.mark.slow
def test_prompts_are_scored_against_what_the_run_began_with_though_its_folder_changed(
    run: Run, scripted_server: ScriptedServer
) -> None:
    Path("prompts").mkdir()
    Path("prompts/answer.txt").write_text(TEXT)
    code, said = run("run", "run.yaml", "--start", "prompts", "--out", "tuned")
    assert code == 0, said
    for change in (lambda: Path("prompts/answer.txt").write_text(f"TUNED {TEXT}"), lambda: shutil.rmtree("prompts")):
        change()
        code, said = run("eval", "--prompts", "tuned", "--against", "baseline", "--split", "test")
        assert code == 0, said
    assert not any("TUNED" in prompt_of(body) for body in scripted_server.requests)


def test_a_resumed_run_takes_no_other_baseline(run: Run) -> None:
    code, said = run("run", "--resume", "latest", "--start", "prompts")
    assert code == 2
    assert "--resume continues with the prompts that the run began with; leave out --start" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--from", "nowhere.json"), "nowhere.json: no such file or folder; give --from"),
        (("--from", "run.yaml", "--format", "xml"), "unknown: 'xml'; choose one of text"),
        (("--setting", "top_k=["), "no value as in a configuration"),
        (("--setting", "depth=3"), "system_settings.depth: unknown to rag"),
        (("--map", "answer"), "'answer': give PROMPT=NAME"),
        (("--map", "answer=a", "--map", "answer=b"), "answer is given twice"),
    ],
)
def test_an_import_that_cannot_be_made_is_told_in_one_line(run: Run, arguments: tuple[str, ...], said: str) -> None:
    code, told = run("import-prompts", "rag", *arguments, "--out", "prompts")
    assert code == 2
    assert said in told
    assert len(told.splitlines()) == 1
    assert not Path("prompts").exists()
