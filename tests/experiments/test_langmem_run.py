"""A flawed instruction of LangMem is won back by a run on the real library, and is what LangMem sends in the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from memtune_command import MemtuneCommand
from scripted_server import Reply, ScriptedServer
from talks_in_passing import PASSING, answered, write_talks

from experiments.runs.folder import RunFolder
from experiments.systems.worker.handle import close_pools

pytestmark = pytest.mark.slow

FLAWED = "Keep what the user likes."


def obedient(body: dict[str, Any]) -> Reply | str:
    """Keeps of what is said what its instructions ask for, and reads what it is shown."""
    text = body["messages"][-1]["content"]
    if not body.get("tools"):
        return answered(text) or "unknown"
    instructions, _, said = text.partition("<session_1>")
    lines = [line for line in said.splitlines() if ": " in line]
    kept = lines if any(map(instructions.__contains__, PASSING)) else [line for line in lines if " like " in line]

    def change(answer: dict[str, Any]) -> dict[str, Any]:
        functions = [{"name": "Memory", "arguments": json.dumps({"content": line})} for line in kept]
        calls = [{"id": f"c{at}", "type": "function", "function": each} for at, each in enumerate(functions)]
        answer["choices"][0]["message"] |= {"content": None, "tool_calls": calls}
        return answer

    return Reply(change=change) if kept else "Nothing."


@pytest.fixture(autouse=True)
def _workers(environments: Callable[[str], None]) -> Iterator[None]:
    environments("langmem")
    yield
    close_pools()


def test_a_flawed_instruction_is_won_back_and_exported(
    memtune: MemtuneCommand, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = obedient
    write_talks(Path("mine.jsonl"))
    Path("langmem.json").write_text(json.dumps({"instructions": FLAWED}))
    code, _, err = memtune("import-prompts", "langmem", "--from", "langmem.json", "--out", "start")
    assert code == 0, err
    lines = "system: langmem\ndataset: jsonl\ndata: mine.jsonl\nrounds: 1\n"
    memtune.configure("tune.yaml", f"{lines}prompts: {{start: start, tune: [instructions]}}\n")
    code, _, err = memtune("run", "tune.yaml", "--out", "run")
    assert code == 0, err
    asked = [body["messages"][-1]["content"] for body in scripted_server.requests if body.get("tools")]
    assert any(text.startswith(f"{FLAWED}\n\nEnrich, prune") for text in asked), "LangMem sends it"
    summary = RunFolder(Path("run")).summary()
    assert summary.rounds[1].edited == ("instructions",)
    assert (summary.baseline["test"].score, summary.verdict, summary.delta) == (0.0, "improved", 1.0)
    code, _, err = memtune("export", "run", "--to", "langmem", "--out", "tuned", "--verify")
    assert code == 0, err
    tuned = json.loads(Path("tuned/langmem.json").read_text())
    assert any(map(tuned["instructions"].__contains__, PASSING))
