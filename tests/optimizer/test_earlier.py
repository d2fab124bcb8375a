"""Authors are told what was tried before and how it scored, within a bound."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from scripted_server import Reply, ScriptedServer, prompt_of
from scripted_world import WeakModel, kind_of, memory, world

from attribution.methods import survival
from experiments.systems.fact_memory import PROMPTS
from optimizer.evaluation.evaluator import Evaluator
from optimizer.proposers.earlier import MOST_TOKENS, EarlierText, best_and_worst
from optimizer.proposers.reflection import request_for
from optimizer.proposers.rewrites import open_proposers
from optimizer.search.optimize import optimize
from optimizer.search.optimizers import open_optimizer
from optimizer.tuning.failures import Failures
from optimizer.tuning.results import LoopSettings
from tracing.llm.access import ModelAccess
from tracing.llm.settings import Limits, ModelSettings, Role
from tracing.systems.prompts import tokens_of

SEED = {name: spec.text for name, spec in PROMPTS.items()}


def test_the_best_and_the_worst_are_shown_by_what_they_gained_best_first() -> None:
    # The champion was better in the meantime: a higher score can be a loss.
    texts = [EarlierText(str(n), n / 10, 0.3) for n in range(7)] + [EarlierText("late", 0.7, 0.9)]
    assert [each.text for each in best_and_worst(texts)] == ["6", "5", "late", "0"]
    assert [each.text for each in best_and_worst(texts[:3])] == ["2", "1", "0"]
    assert best_and_worst([]) == []


def test_what_is_shown_has_a_bound_and_a_text_that_is_too_long_makes_room_for_the_next() -> None:
    half = "x" * 4 * (MOST_TOKENS // 2)
    texts = [EarlierText(half * 3, 1.0, 0.5), *(EarlierText(half + str(n), 0.9 - n / 10, 0.5) for n in range(4))]
    shown = best_and_worst([*texts, EarlierText("short", 0.1, 0.5)])
    assert sum(tokens_of(each.text) for each in shown) <= MOST_TOKENS
    assert "short" in [each.text for each in shown]


def test_a_request_without_earlier_texts_is_as_it_was() -> None:
    assert "tried before" not in request_for(PROMPTS["answer"])
    told = request_for(PROMPTS["answer"], [EarlierText("Say {context} {question}", 0.25, 0.5)])
    assert "Scored 0.25, where the template of the time scored 0.50:\n```\nSay {context} {question}\n```" in told


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
        return f"```\n{told}\n{SEED['answer']}\n```"


def test_the_author_of_the_second_generation_is_told_what_the_first_scored(
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
            seed_candidate=SEED,
            settings=LoopSettings(rounds=1),
            access=access,
            failures=Failures(survival, access, system.operations),
            observer=type("Silent", (), {"__getattr__": lambda *_: lambda *told, **more: None})(),
            optimizer=open_optimizer("local-search"),
            proposers=open_proposers(["reflection"]),
        )
    told = [text for text in author.asked if "tried before" in text]
    assert "tried before" not in author.asked[0]
    assert told
    scores = re.findall(r"Scored (\d\.\d\d), where the template of the time scored (\d\.\d\d):\n```\n(.+)", told[-1])
    assert scores
    # The text that is to be rewritten, the one that helps, stands above with no score.
    assert all(float(score) <= float(champion) for score, champion, _ in scores)
