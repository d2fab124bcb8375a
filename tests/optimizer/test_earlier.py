"""Authors are told what was tried before and what it brought."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from scripted_server import Reply, ScriptedServer, prompt_of
from scripted_world import WeakModel, kind_of, memory, world

from attribution.methods import survival
from experiments.systems.fact_memory import PROMPTS
from optimizer.evaluation.evaluator import Evaluator
from optimizer.proposers.rewrites import open_proposers
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import open_optimizer
from optimizer.tuning.failures import Failures
from optimizer.tuning.results import LoopSettings
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits, ModelSettings, Role

BASELINE = {name: spec.text for name, spec in PROMPTS.items()}


class Author(WeakModel):
    """Writes another text whenever it is asked; only the first helps, and questions about lorries stay wrong."""

    def __init__(self) -> None:
        super().__init__("answer")
        self.asked: list[str] = []

    def __call__(self, body: dict[str, Any]) -> Reply | str:
        if kind_of(body) == "answer" and "lorry" in prompt_of(body).rpartition("Question:")[2]:
            return "nonsense"
        if kind_of(body) != "reflect":
            return super().__call__(body)
        self.asked.append(prompt_of(body))
        number = len(self.asked)
        told = self.cures[0] if number == 1 else f"Be of good cheer, number {number}."
        return json.dumps({"lines": [told]})


def test_the_author_of_a_later_text_is_told_what_those_before_it_scored(
    scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    scripted_server.script = author = Author()
    model = ModelSettings.model_validate({"model": "m", "base_url": scripted_server.base_url, "retries": 0})
    roles: dict[Role, ModelSettings] = {"task": model, "proposer": model, "embedding": model}
    system = memory()
    with ModelAccess.open(roles, cache_dir=None, limits=Limits()) as access:
        optimize(
            evaluator=Evaluator(system, access, "short_contains", tmp_path / "memories"),
            splits=world(train=4, validation=4, test=1),
            baseline=BASELINE,
            settings=LoopSettings(rounds=2),
            access=access,
            failures=Failures(survival, access, system.operations),
            observer=type("Silent", (), {"__getattr__": lambda *_: lambda *told, **more: None})(),
            optimizer=open_optimizer("local-search"),
            proposers=open_proposers(["reflection"]),
        )
    told = [text for text in author.asked if "tried before" in text]
    assert "tried before" not in author.asked[0]
    gains = re.findall(r"^([+-]\d\.\d\d): (?:added|replaced): (.+)$", told[-1], re.MULTILINE)
    # The line that helps is the champion's by then, and what would take its place gains nothing.
    assert gains
    assert all(author.cures[0] in change and float(gain) <= 0 for gain, change in gains)
