"""Programs that know nothing of memtune, from `init --wrap` to a run, an exported patch, and what is sent with it."""

from __future__ import annotations

import asyncio
import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from memtune_command import MemtuneCommand
from scripted_server import Reply, ScriptedServer

from experiments.data.loaders import load_dataset
from experiments.runs.config_file import load_config
from experiments.runs.folder import RunFolder
from experiments.starter.wrapping import problems_of, write_wrapping

PROGRAMS = Path(__file__).parents[1] / "programs"
TUNED = 'Be "brief": at most {{3}} words.'
SENT = 'Be "brief": at most {3} words.'


class Model:
    """Notes what is said, and answers at length unless it is told to be brief; with tools it saves and searches."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        for group in load_dataset(load_config(None)).splits.named().values():
            for conversation in group:
                self.known |= {question.question: question.answers[0] for question in conversation.questions}

    def __call__(self, body: dict[str, Any]) -> Reply | str:
        messages = body["messages"]
        told = "\n".join(str(message.get("content")) for message in messages)
        said = next(str(message["content"]) for message in reversed(messages) if message["role"] == "user")
        question = next((known for known in self.known if known in said), None)
        if "tool_choice" in body:
            return Reply(change=lambda reply: called(reply, "save_facts", {"facts": [said]}))
        if body.get("tools") and messages[-1]["role"] != "tool":
            name, argument = ("search", "query") if question else ("save", "text")
            return Reply(change=lambda reply: called(reply, name, {argument: question or said}))
        if question is None:
            return json.dumps({"facts": [said]}) if "JSON" in told else said.replace("\n", " ")
        short = self.known[question]
        return (
            short
            if SENT in told
            else f"According to everything that I have been told so far by you it is {short} I think"
        )


def called(reply: dict[str, Any], name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {**reply, "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}


@pytest.fixture
def _programs(tmp_path: Path, memtune: MemtuneCommand, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for file in PROGRAMS.glob("*_program.py"):
        shutil.copy(file, tmp_path)
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    _forget()
    yield
    _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.endswith("_program")]:
        wrapped = getattr(sys.modules.pop(name), "system", None)
        if wrapped is not None and wrapped.watched is not None:
            wrapped.watched.undo()
    importlib.invalidate_caches()


def asked_service(program: Any) -> None:
    service = program.get_service(program.Settings(database_url="sqlite://"))
    asyncio.run(service.answer("me", "Who?"))


def asked_diary(program: Any) -> None:
    program.NOTES["me"] = ["Mara sails."]
    program.answer("me", "Who?")


def asked_butler(program: Any) -> None:
    asyncio.run(program.Butler().chat("Who?"))


def asked_coach(program: Any) -> None:
    program.memory.answer("me", "Who?")


def asked_keeper(program: Any) -> None:
    program.answer("me", "Who?")


def asked_clerk(program: Any) -> None:
    program.answer("Who?")


CASES = {
    "clerk_program": ("", "answer_prompt", asked_clerk),
    "coach_program": (":CoachMemory", "style", asked_coach),
    "keeper_program": ("", "reply", asked_keeper),
    "service_program": (":MemoryService", "answer_prompt", asked_service),
    "diary_program": ("", "answer", asked_diary),
    "butler_program": (":Butler", "lines", asked_butler),
}


@pytest.mark.slow
@pytest.mark.usefixtures("_programs")
@pytest.mark.parametrize("program", CASES)
def test_a_program_of_another_shape_is_wrapped_tuned_and_patched(
    program: str,
    memtune: MemtuneCommand,
    scripted_server: ScriptedServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """A service that is given what it needs, a script with a dict of notes, an async agent with tools, a memory that
    the module has, one whose replies are kept in a cache, and one that a worker in the background writes."""
    owner, prompt, ask = CASES[program]
    before = (tmp_path / f"{program}.py").read_text()
    wrapping = write_wrapping(f"{program}{owner}", tmp_path)
    own = tmp_path / f"wrapped_{program}.py"
    assert wrapping.can_run
    assert len([line for line in own.read_text().splitlines() if line.strip()]) <= 25
    assert problems_of(f"wrapped_{program}:system") == []
    scripted_server.script = Model()
    lines = f"system: wrapped_{program}:system\nlimits: {{conversations: 9, questions: 1}}\nrounds: 1\nproposals: 1\n"
    memtune.configure("run.yaml", lines)
    baseline = importlib.import_module(f"wrapped_{program}").system.prompts[prompt].text
    mine = baseline.replace("Answer ", f"{TUNED} Answer ", 1) if "Answer " in baseline else f"{baseline} {TUNED}"
    Path(f"{prompt}.mine.txt").write_text(mine)
    code, out, err = memtune("run", "run.yaml", "--out", "run", "--rewrites", f"{prompt}.mine.txt")
    assert code == 0, err
    assert "export: memtune export run --to source --patch tuned.patch" in out
    assert RunFolder(Path("run")).prompts("champion")[prompt] == mine
    code, _, err = memtune("export", "run", "--to", "source", "--patch", "tuned.patch")
    assert code == 0, err
    assert (tmp_path / f"{program}.py").read_text() == before
    subprocess.run(["git", "apply", "tuned.patch"], cwd=tmp_path, check=True)
    _forget()
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_server.base_url)
    ask(importlib.import_module(program))
    assert SENT in "\n".join(str(message.get("content")) for message in scripted_server.requests[-1]["messages"])
