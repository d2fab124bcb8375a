"""Every command of docs/coding-agents.md in the page's order, from the tutorial's program to a tuned one."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from memtune_command import MemtuneCommand
from scripted_server import ScriptedServer
from tutorial_program import DOCS, TUTORIAL_FILES, SmallModel, console_commands

from experiments.data.loaders import load_dataset
from experiments.runs.config import RunConfig
from experiments.runs.folder import RunFolder

PAGE = (DOCS / "coding-agents.md").read_text(encoding="utf-8")
CONVERSATIONS = {"train": 6, "validation": 6, "test": 8}


def own_data() -> str:
    """Twenty conversations of the bundled sample with two questions each, as a user's own file."""
    splits = load_dataset(RunConfig(dataset="sample")).splits.named()
    rows = [
        conversation.model_copy(update={"split": split, "questions": conversation.questions[:2]})
        for split, number in CONVERSATIONS.items()
        for conversation in splits[split][:number]
    ]
    return "".join(f"{row.model_dump_json()}\n" for row in rows)


def fill_in(base_url: str) -> None:
    """The keys that the page names, set in the file that `init` wrote."""
    (keys,) = re.findall(r"```yaml\n# keys of experiment.yaml\n(.*?)```", PAGE, re.DOTALL)
    written = yaml.safe_load(Path("experiment.yaml").read_text(encoding="utf-8"))
    filled = written | yaml.safe_load(keys)
    filled["models"]["task"]["base_url"] = base_url
    Path("experiment.yaml").write_text(yaml.safe_dump(filled), encoding="utf-8")


@pytest.mark.slow
def test_an_agent_that_follows_the_page_ends_with_a_tuned_program(
    tmp_path: Path, scripted_server: ScriptedServer, memtune: MemtuneCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted_server.script = SmallModel()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    sys.modules.pop("assistant", None)
    Path("assistant.py").write_text(TUTORIAL_FILES["assistant.py"], encoding="utf-8")
    Path("mine.jsonl").write_text(own_data(), encoding="utf-8")
    done = []
    for line, shown in console_commands(PAGE):
        program, *arguments = shlex.split(line)
        if program == "git" or "eval" in arguments:
            # This process has read the program as it was.
            anew = [program] if program == "git" else [sys.executable, "-m", program]
            said = subprocess.run(
                [*anew, *arguments],
                env=os.environ | {"PYTHONPATH": str(DOCS.parent)},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        else:
            code, said, problem = memtune(*arguments)
            assert code == 0, f"{line}\n{said}\n{problem}"
        assert [expected for expected in shown if expected not in said.splitlines()] == [], said
        done.append(line)
        if line.startswith("memtune data validate"):
            fill_in(scripted_server.base_url)
    assert done[-2:] == ["git apply tuned.patch", "memtune eval --prompts latest --against baseline"]
    assert "+0.000" in said
    runs = [RunFolder(run) for run in Path(os.environ["MEMTUNE_HOME"], "runs").iterdir()]
    tuned = max(runs, key=lambda run: run.id)
    assert tuned.summary().verdict == "improved"
    sys.modules.pop("assistant")
    note = importlib.import_module("assistant").NOTE
    assert note == tuned.prompts("champion")["note"]
    sys.modules["wrapped_assistant"].system.watched.undo()
