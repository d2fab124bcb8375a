"""A flawed instruction of LangMem is won back by a run on the real library, and is what LangMem sends in the end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from memtune_command import MemtuneCommand
from scripted_server import Reply, ScriptedServer

from experiments.runs.folder import RunFolder
from experiments.systems.worker.handle import close_pools

pytestmark = pytest.mark.slow

FLAWED = "Keep what the user likes."
PASSING = ("in passing", "Small remarks", "every concrete detail", "exact names", "Copy the sentences", "each turn")
"""Of the instructions that people write: those that ask for what is said beside the matter."""
_PLACES = ["harbour", "brewery", "foundry", "depot", "mill", "museum", "rope yard", "ice factory", "bell tower"]
_PLACES += ["seed bank", "clock school", "ferry", "tea auction", "map archive", "observatory"]
_NAMES = ["Ines", "Olga", "Petra", "Rosa", "Tilda", "Vera", "Wanda", "Yara", "Zita", "Ada", "Berit", "Clara", "Dora"]
PLACE_OF = dict(zip([*_NAMES, "Edda", "Frida"], _PLACES, strict=True))
_WORKS = re.compile(r"sister (\w+) works at the ([a-z ]+)")


def obedient(body: dict[str, Any]) -> Reply | str:
    """Keeps of what is said what its instructions ask for, and reads what it is shown."""
    text = body["messages"][-1]["content"]
    if not body.get("tools"):
        asked = re.search(r"Question: .*sister (\w+) work", text)
        return next((place for name, place in _WORKS.findall(text) if asked and name == asked[1]), "unknown")
    instructions, _, said = text.partition("<session_1>")
    lines = [line for line in said.splitlines() if ": " in line]
    kept = lines if any(map(instructions.__contains__, PASSING)) else [line for line in lines if " like " in line]

    def change(answer: dict[str, Any]) -> dict[str, Any]:
        functions = [{"name": "Memory", "arguments": json.dumps({"content": line})} for line in kept]
        calls = [{"id": f"c{at}", "type": "function", "function": each} for at, each in enumerate(functions)]
        answer["choices"][0]["message"] |= {"content": None, "tool_calls": calls}
        return answer

    return Reply(change=change) if kept else "Nothing."


def conversation(number: int, name: str, place: str) -> dict[str, Any]:
    said = [f"I like the songs of {name}.", f"My sister {name} works at the {place}."]
    turns = [{"id": f"D1:{at}", "speaker": "Mara", "text": text} for at, text in enumerate(said)]
    question = f"Where does the sister {name} work?"
    return {
        "id": f"talk{number}",
        "speakers": ["Mara"],
        "sessions": [{"id": "D1", "turns": turns}],
        "questions": [{"id": f"q{number}", "question": question, "answers": [place], "evidence": ["D1:1"]}],
    }


@pytest.fixture(autouse=True)
def _workers(environments: Callable[[str], None]) -> Iterator[None]:
    environments("langmem")
    yield
    close_pools()


def test_a_flawed_instruction_is_won_back_and_exported(
    memtune: MemtuneCommand, scripted_server: ScriptedServer
) -> None:
    scripted_server.script = obedient
    rows = [conversation(number, *pair) for number, pair in enumerate(PLACE_OF.items())]
    Path("mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
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
