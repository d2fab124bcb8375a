"""`examples/own_memory_system` from configuration to export: what works for built-in systems works for one's own."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripted_server import Reply, ScriptedServer, prompt_of

from benchmarks.generating.scripted_author import ScriptedAuthor
from experiments.command import main
from experiments.data.datasets import sample
from experiments.data.loaders import load_dataset
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.runs.config_file import load_config
from experiments.runs.folder import RunFolder
from tracing.files.loading import load_trace
from tracing.systems.conversations import Conversation, read_conversations, write_conversations

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_memory_system"
Command = Callable[..., tuple[int, str, str]]


class Model:
    """Notes down every turn; answers right, but in a long sentence until the prompt is another than the baseline's."""

    def __init__(self, conversations: Sequence[Conversation] = ()) -> None:
        groups = [conversations] if conversations else load_dataset(load_config(None)).splits.named().values()
        asked = [question for group in groups for conversation in group for question in conversation.questions]
        self.known = {question.question: question.answers[0] for question in asked}

    def __call__(self, body: dict[str, Any]) -> str:
        prompt = prompt_of(body)
        if "Said:\n" in prompt:
            return prompt.partition("Said:\n")[2].partition("\n\nNotes:")[0]
        if "one line at a time" in prompt:
            return json.dumps({"lines": ["Short, please."]})
        reply = next((self.known[question] for question in self.known if f"Question: {question}" in prompt), "no idea")
        if re.fullmatch(r"Notes:\n(?s:.*)\n\nQuestion: [^\n]*\nAnswer:", prompt) and "Example:" not in prompt:
            return f"According to everything that the two of them have told each other so far it is {reply} I think"
        return reply


@pytest.fixture
def example(
    mlflow_home: Path, tmp_path: Path, scripted_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The example's folder, for the scripted server; the current folder is another one."""
    folder = tmp_path / "project"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__", "test_*"))
    config = folder / "experiment.yaml"
    text = config.read_text().replace("http://127.0.0.1:8080/v1", scripted_server.base_url)
    text = text.replace(
        "rounds: 2\nproposals: 4\n", "rounds: 1\nproposals: 2\nlimits: {conversations: 9, sessions: 2, questions: 1}\n"
    )
    config.write_text(f"{text}tracking: {{uri: '{store_uri(mlflow_home)}', experiment: {tmp_path.name}, traces: 1}}\n")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    scripted_server.script = Model()
    return folder


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> tuple[int, str, str]:
        # As another process would begin.
        for name in ("own_memory", "own_exporter"):
            sys.modules.pop(name, None)
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        said = capsys.readouterr()
        assert isinstance(caught.value.code, int)
        return caught.value.code, said.out, said.err

    return run


@pytest.mark.slow
def test_a_system_of_ones_own_is_tuned_looked_at_and_exported(
    example: Path,
    command: Command,
    scripted_server: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
    memtune_home: Path,
) -> None:
    config = str(example / "experiment.yaml")
    code, out, err = command("run", config, "--dry-run")
    assert code == 0, err
    assert "own_memory:NoteMemory on sample" in out
    assert "own_memory:NoteMemory has no rerun: where an operation makes one recorded model call" in " ".join(
        out.split()
    )
    assert scripted_server.count == 0

    code, out, err = command("run", config)
    assert code == 0, err
    (folder,) = RunFolder.all(memtune_home)
    assert re.fullmatch(r"\d{8}-\d{6}-own_memory-NoteMemory", folder.id)
    summary = folder.summary()
    assert summary.system == "own_memory:NoteMemory"
    assert (summary.baseline["test"].score, summary.champion["test"].score) == (0, 1)
    assert "code.own_memory:NoteMemory" in json.loads((folder.path / "fingerprint.json").read_text())
    (first, *_) = summary.rounds
    assert re.match(r"answer: (\d+) of \1 recorded inputs can be asked again", first.asked_again["answer"])
    assert first.asked_again["answer"] in " ".join((out + err).split())
    assert first.asked_again["answer"] in (folder.path / "report.html").read_text()
    rewrites = [json.loads(line) for line in (folder.path / "rewrites.jsonl").read_text().splitlines()]
    assert any(rewrite["local"] is not None and rewrite["local"] > 0 for rewrite in rewrites)
    tokens = [
        sum(operation.prompt_tokens for operation in load_trace(path).graph.operations.values())
        for path in (folder.path / "traces").glob("*/*.jsonl")
    ]
    assert tokens
    assert all(count > 0 for count in tokens), "calls of the system's own client are recorded with their tokens"

    # From a third folder, the run knows where its module lies.
    monkeypatch.chdir(example.parent)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if not each.startswith(str(example.parent))])
    commands = {
        "runs": ["runs"],
        "resume": ["run", "--resume", "latest"],
        "eval": ["eval", config, "--prompts", str(folder.path / "prompts" / "champion")],
        "attribute": ["attribute", "latest", "--traces-of", "baseline", "--out", "blames.jsonl"],
        "replay": ["attribute", "latest", "--traces-of", "baseline", "--replay", "--out", "replayed.jsonl"],
        "diagnose": ["diagnose", "latest", "--traces-of", "baseline", "--out", "diagnosis.html"],
        "compare": ["compare", "latest", folder.id],
        "text": ["export", "latest", "--to", "text", "--out", "text"],
        "own": ["export", "latest", "--to", "own_exporter:JsonPrompts", "--out", "own"],
    }
    for name, arguments in commands.items():
        code, out, err = command(*arguments)
        assert code in ((0, 1) if name in ("attribute", "replay") else (0,)), f"{name}: {err}"
    replayed = [json.loads(line) for line in Path("replayed.jsonl").read_text().splitlines()]
    verdicts = [blame["verdict"] for row in replayed for blame in row.get("decisive", ())]
    assert verdicts
    assert set(verdicts) == {"not repairable"}, "a system without interventions is attributed, and not repaired"
    champion = folder.prompts("champion")
    assert Path("text/answer.txt").read_text() == champion["answer"] != folder.prompts("baseline")["answer"]
    assert json.loads(Path("own/prompts.json").read_text()) == champion
    same = {"calls": summary.calls, "rounds": summary.rounds}
    assert replace(folder.summary(), **same) == summary  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_generated_data_set_is_tuned_on_as_a_written_one(
    example: Path, command: Command, scripted_server: ScriptedServer, memtune_home: Path
) -> None:
    written = sample(None)[:12]
    nothing = {"questions": (), "facts": (), "split": None}
    write_conversations(Path("chats.jsonl"), [conversation.model_copy(update=nothing) for conversation in written])
    scripted_server.script = ScriptedAuthor(written)
    endpoint = ("--base-url", scripted_server.base_url, "--model", "strong")
    code, _, err = command("data", "generate", "chats.jsonl", "--out", "generated.jsonl", *endpoint)
    assert code == 0, err
    data = Path("confirmed.jsonl").absolute()
    write_conversations(
        data, [_confirmed(conversation) for conversation in read_conversations(Path("generated.jsonl"))]
    )
    scripted_server.script = Model(read_conversations(data))
    code, out, err = command("run", str(example / "experiment.yaml"), "--dataset", "jsonl", "--data", str(data))
    assert code == 0, err
    (folder,) = RunFolder.all(memtune_home)
    summary = folder.summary()
    assert "(100%) were generated" in " ".join((out + err).split())
    assert re.match(r"answer: (\d+) of \1 recorded inputs can be asked again", summary.rounds[0].asked_again["answer"])
    rewrites = [json.loads(line) for line in (folder.path / "rewrites.jsonl").read_text().splitlines()]
    assert any(rewrite["local"] is not None and rewrite["local"] > 0 for rewrite in rewrites)
    assert summary.champion["test"].score > summary.baseline["test"].score


def _confirmed(conversation: Conversation) -> Conversation:
    questions = [question.model_copy(update={"confirmed_by": ("a reader",)}) for question in conversation.questions]
    return conversation.model_copy(update={"questions": tuple(questions)})


def test_the_example_and_its_exporter_keep_their_contracts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    suites = importlib.import_module("test_own_memory")
    assert suites.TestNoteMemory().problems() == []
    assert suites.TestJsonPrompts().problems() == []
    for name in ("own_memory", "own_exporter", "test_own_memory"):
        sys.modules.pop(name, None)


def test_what_a_system_lacks_is_told_by_the_feature_that_needs_it(example: Path, command: Command) -> None:
    code, _, err = command("data", "audit", str(example / "experiment.yaml"))
    assert code == 2
    assert err.splitlines()[-1].startswith(
        "memtune: the ladder needs a memory system with build_from_facts, with_entries, answer_from"
    )


def test_a_changed_system_is_not_resumed_as_the_run_it_was(example: Path, command: Command) -> None:
    config = str(example / "experiment.yaml")
    assert command("run", config, *SHORT)[0] == 0
    with (example / "own_memory.py").open("a") as file:
        file.write("\n# another system\n")
    code, _, err = command("run", "--resume", "latest")
    assert code == 2
    assert "the code of own_memory:NoteMemory has changed" in err.splitlines()[-1]


SHORT = ("--rounds", "0", "--limit-conversations", "3")

BROKEN = {
    "the module is gone": (None, "no module 'own_memory'"),
    "its import fails": ("import nowhere_at_all", "no module 'nowhere_at_all'"),
    "it has no build": (
        "class NoteMemory:\n    prompts = {}",
        "a NoteMemory without build, answer is not a memory system",
    ),
}


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_broken_system_ends_a_command_with_one_line_and_leaves_the_run_as_it_was(
    example: Path, command: Command
) -> None:
    config, module = str(example / "experiment.yaml"), example / "own_memory.py"
    assert command("run", config, *SHORT, "--out", "run")[0] == 0
    sound = module.read_text()
    before = files_of(Path("run"))
    for text, complaint in BROKEN.values():
        module.unlink() if text is None else module.write_text(text)
        shutil.rmtree(example / "__pycache__", ignore_errors=True)
        for arguments in (
            ["run", config, "--dry-run"],
            ["run", "--resume", "run"],
            ["eval", config, "--prompts", "run/prompts/baseline"],
            ["export", "run", "--to", "text", "--out", "out"],
        ):
            code, _, err = command(*arguments)
            assert code == 2, arguments
            assert "Traceback" not in err
            assert complaint in err.splitlines()[-1]
        assert command("runs")[0] == 0
        assert files_of(Path("run")) == before
    module.write_text(sound)
    (example / "own_exporter.py").write_text("raise OSError('licence expired')")
    code, _, err = command("export", "run", "--to", "own_exporter:JsonPrompts", "--out", "out")
    assert (code, err.splitlines()[-1]) == (
        2,
        "memtune: --to: 'own_exporter:JsonPrompts': cannot be imported: OSError: licence expired",
    )
    assert not Path("out").exists()
    assert files_of(Path("run")) == before
    shutil.rmtree(example / "__pycache__", ignore_errors=True)
    code, _, err = command("run", "--resume", "run")
    assert code == 0, err


@pytest.mark.slow
def test_an_error_of_the_systems_own_ends_the_run_with_one_line_and_its_place(
    example: Path, command: Command, scripted_server: ScriptedServer
) -> None:
    model, small = Model(), [{"role": "user", "content": "hello"}]
    scripted_server.script = lambda body: (
        model(body) if body["messages"] == small else Reply("no such model", status=400)
    )
    code, _, err = command("run", str(example / "experiment.yaml"), *SHORT, "--out", "run")
    assert code == 2
    assert "Traceback" not in err
    assert "the memory system failed in build" in err.splitlines()[-1]
    assert "BadRequestError" in err.splitlines()[-1]
    scripted_server.script = Model()
    code, _, err = command("run", "--resume", "run")
    assert code == 0, err
