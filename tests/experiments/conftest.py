"""What tests share: memtune in a folder of its own, and since it takes seconds, a run that nobody disturbed."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gold_runs import GoldModel, Whole, curves, live, outcome
from memtune_command import MemtuneCommand
from scripted_server import ScriptedServer, prompt_of

from experiments.data.loaders import load_dataset
from experiments.mlflow_tracking.sqlite_store import store_uri
from experiments.runs.config_file import load_config
from experiments.runs.folder import RunFolder
from experiments.systems.rag import Rag


@pytest.fixture
def memtune(
    mlflow_home: Path,
    tmp_path: Path,
    scripted_server: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> MemtuneCommand:
    """memtune in `tmp_path`, on a wide terminal.

    An MLflow store of its own would cost each test the seconds of making its tables; the caches are the test's own.
    """
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    tracking = f"uri: '{store_uri(mlflow_home)}', experiment: {tmp_path.name}"
    return MemtuneCommand(capsys, scripted_server.base_url, tracking)


@pytest.fixture
def configured(
    mlflow_home: Path, tmp_path: Path, scripted_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """Writes `run.yaml` for the scripted server and an experiment of this name, or for the store of the run's home."""
    monkeypatch.chdir(tmp_path)
    scripted_server.script = GoldModel(delay=0.002)
    endpoint = f"base_url: '{scripted_server.base_url}', retries: 0"

    def write(experiment: str | None = None) -> None:
        shared = f"uri: '{store_uri(mlflow_home)}', experiment: {tmp_path.name}-{experiment}, " if experiment else ""
        Path("run.yaml").write_text(
            "limits: {conversations: 9, sessions: 2, questions: 3}\nrounds: 2\nproposals: 3\nbudget: {calls: 2000}\n"
            f"models:\n  task: {{model: m, {endpoint}}}\n  embedding: {{model: e, {endpoint}}}\n"
            f"tracking: {{{shared}traces: 2}}\n"
        )

    return write


@pytest.fixture
def wordy(scripted_server: ScriptedServer) -> None:
    """A model that answers in a long sentence under the baseline prompt, and shortly under any other."""
    escaped = re.escape(Rag.prompts["answer"].text)
    baseline = re.compile(re.sub(r"\\\{\w+\\\}", "(?s:.*)", escaped))
    known: dict[str, str] = {}
    for group in load_dataset(load_config(None)).splits.named().values():
        for conversation in group:
            known |= {question.question: question.answers[0] for question in conversation.questions}

    def answer(body: dict[str, Any]) -> str:
        prompt = prompt_of(body)
        reply = next((known[question] for question in known if f"Question: {question}" in prompt), "no idea")
        if baseline.fullmatch(prompt):
            return f"According to everything that the two of them have told each other so far it is {reply} I think"
        return reply

    scripted_server.script = answer


_WHOLE: list[Whole] = []


@pytest.fixture
def whole(configured: Callable[..., None], scripted_server: ScriptedServer) -> Whole:
    """Run once for all tests."""
    if not _WHOLE:
        configured("whole")
        before = scripted_server.asked
        assert live(["run", "run.yaml", "--out", "whole", "--home", "home0"], None) == 0
        folder = RunFolder(Path("whole"))
        _WHOLE.append(Whole(outcome(folder), curves(folder), scripted_server.asked - before))
    return _WHOLE[0]
