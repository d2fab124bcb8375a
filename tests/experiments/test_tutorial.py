"""Every file and command of docs/tutorial.md works as it stands there, on replies that its model gave to its chats."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from memtune_command import MemtuneCommand
from scripted_server import ScriptedServer
from tutorial_program import TUTORIAL, TUTORIAL_FILES, SmallModel, console_commands

from experiments.runs.folder import RunFolder

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = ("memtune model pull", "memtune gateway", "memtune ui")
"""What fetches weights, or serves until somebody ends it."""

IDS = re.compile(r"\b[0-9a-z]{10}-([vo]\d+)")
"""What the ids of a trace begin with is another each time."""


@pytest.fixture(autouse=True)
def written(tmp_path: Path, scripted_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's files in the current folder, and a model at the address that its second terminal would tell."""
    scripted_server.script = SmallModel()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    for name, text in TUTORIAL_FILES.items():
        Path(name).write_text(text, encoding="utf-8")
    smaller = TUTORIAL_FILES["experiment.yaml"]
    smaller = smaller.replace("conversations: 30, questions: 4", "conversations: 18, questions: 2")
    smaller = smaller.replace("b}", f"b, base_url: '{scripted_server.base_url}'}}")
    assert scripted_server.base_url in smaller
    Path("experiment.yaml").write_text(smaller, encoding="utf-8")


def python(*arguments: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_page_from_its_first_command_to_its_last(memtune: MemtuneCommand) -> None:
    done = []
    for line, shown in console_commands(TUTORIAL):
        if line.startswith(ELSEWHERE):
            continue
        program, *arguments = shlex.split(line)
        if program == "python":
            said = python(*arguments)
        elif program == "git":
            said = subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout
        else:
            code, said, problem = memtune(*arguments)
            assert code == 0, problem
        done.append(line)
        if "run experiment.yaml" not in line:
            lines = IDS.sub(r"\1", said).splitlines()
            assert [one for one in shown if IDS.sub(r"\1", one) not in lines] == [], said
    assert done[-1] == "git apply tuned.patch"
    assert Path("chat.html").stat().st_size > 1000
    (run,) = Path(os.environ["MEMTUNE_HOME"], "runs").iterdir()
    summary = RunFolder(run).summary()
    assert summary.rounds[0].blame["note"].share > 0.9
    assert summary.delta is not None
    assert summary.delta > 0.5
    tuned = python("-c", "import assistant; print(assistant.NOTE, end='')")
    assert tuned == RunFolder(run).prompts("champion")["note"] != RunFolder(run).prompts("baseline")["note"]
    sys.modules["wrapped"].system.watched.undo()
