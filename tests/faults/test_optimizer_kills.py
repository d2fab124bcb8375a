"""A run of any optimizer, killed between calls and resumed, ends as the one that nobody disturbed."""

from __future__ import annotations

import json
import random
import re
import signal
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from bench import Tried, conversations
from gold_runs import OUTPUT, killed, live, outcome
from scripted_server import Reply, ScriptedServer, prompt_of
from scripted_world import WeakModel, for_dspy, kind_of

from experiments.runs.folder import RunFolder
from optimizer.search.optimizers import OPTIMIZERS
from tracing.systems.conversations import write_conversations

KILLS = 3


class Fickle(WeakModel):
    """What it answers and writes depends on every word of the request, so one call that goes astray shows."""

    def __call__(self, body: dict[str, Any]) -> Reply:
        text, drawn = prompt_of(body), int(sha256(json.dumps(body, sort_keys=True).encode()).hexdigest(), 16)
        return Reply(self._text(body, text, drawn), delay=0.004 + drawn % 17 / 500)

    def _text(self, body: dict[str, Any], text: str, drawn: int) -> str:
        line = self.cures[drawn % len(self.cures)] if drawn % 7 == 0 else f"Be of good cheer in {drawn % 900} ways."
        if "[[ ## " in text:
            return for_dspy(text, line)
        if current := re.search(r"```\n(.*?)\n```", text, re.DOTALL):
            return f"```\n{line}\n{current[1]}\n```"
        if "In two sentences: what did" in text or text.startswith("Comments on a prompt"):
            return f"It should be {drawn % 1000} times clearer."
        if kind_of(body) == "answer" and drawn % 3 == 0:
            return "unknown"
        reply = super().__call__(body)
        return reply if isinstance(reply, str) else reply.text


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [name if name == "reference" else pytest.param(name, marks=pytest.mark.thorough) for name in OPTIMIZERS.built_in],
)
def test_a_run_killed_between_calls_ends_as_the_undisturbed_one(
    name: str, tmp_path: Path, scripted_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, tried: Tried
) -> None:
    monkeypatch.chdir(tmp_path)
    scripted_server.script = Fickle("answer")
    write_conversations(tmp_path / "data.jsonl", conversations(train=5, validation=4, test=3))
    reached = f"base_url: '{scripted_server.base_url}', retries: 1"
    Path("run.yaml").write_text(
        f"dataset: jsonl\ndata: data.jsonl\nsystem_settings: {{near: 2.0}}\noptimizer: {name}\nrounds: 3\n"
        f"tracking: {{traces: 0}}\nmodels:\n  task: {{model: m, {reached}}}\n  embedding: {{model: e, {reached}}}\n"
    )
    assert live(["run", "run.yaml", "--home", "whole"], None) == 0, Path(OUTPUT).read_text()[-3000:]
    asked, draw = scripted_server.asked, random.Random(1)  # noqa: S311
    arguments = ["run", "run.yaml", "--home", "home"]
    for _ in range(KILLS):
        tried("kill of an optimizer")
        until = scripted_server.asked + draw.randint(1, asked // KILLS)
        killed(arguments, signal.SIGKILL, lambda until=until: scripted_server.asked >= until)
        if RunFolder.all(tmp_path / "home"):
            arguments = ["run", "run.yaml", "--home", "home", "--resume", "latest"]
    assert live(arguments, None) == 0, Path(OUTPUT).read_text()[-3000:]
    (whole,), (resumed,) = RunFolder.all(tmp_path / "whole"), RunFolder.all(tmp_path / "home")
    assert outcome(resumed) == outcome(whole)
