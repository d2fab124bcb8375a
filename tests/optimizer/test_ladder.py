"""The oracle ladder: each rung lifts exactly the loss of the stage that it replaces."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from scripted_server import ScriptedServer, prompt_of
from scripted_world import kind_of

from experiments.systems.fact_memory import FactMemory
from optimizer.evaluation.evaluator import Evaluator
from optimizer.evaluation.ladder import attainable, audit
from tracing.errors import DataError
from tracing.llm.access import ModelAccess
from tracing.systems.conversations import Conversation

HARBOUR = Conversation.model_validate(
    {
        "id": "harbour",
        "speakers": ["Jorun", "Tilo"],
        "sessions": [
            {
                "id": "D1",
                "turns": [
                    {"id": "D1:1", "speaker": "Jorun", "text": "My boat is called Plover."},
                    {"id": "D1:2", "speaker": "Tilo", "text": "My dog is called Biscuit."},
                    {"id": "D1:3", "speaker": "Tilo", "text": "My gate is painted teal."},
                ],
            },
            {
                "id": "D2",
                "turns": [{"id": "D2:1", "speaker": "Tilo", "text": "Please forget my gate's paint."}],
            },
        ],
        "facts": [
            {"id": "f1", "turn": "D1:1", "text": "Jorun's boat is called Plover."},
            {"id": "f2", "turn": "D1:2", "text": "Tilo's dog is called Biscuit."},
            {"id": "f3", "turn": "D1:3", "text": "Tilo's gate is painted teal."},
            {"id": "f4", "turn": "D2:1", "text": "Tilo wants his gate forgotten.", "action": "delete", "of": "f3"},
        ],
        "questions": [
            {"id": "boat", "question": "What is Jorun's boat called?", "answers": ["Plover"], "fact": "f1"},
            {"id": "dog", "question": "What is Tilo's dog called?", "answers": ["Biscuit"], "fact": "f2"},
            {"id": "gate", "question": "How is Tilo's gate painted?", "answers": ["unknown"], "fact": "f4"},
        ],
    }
)


class Clerk:
    """Does everything right but for one stage."""

    def __init__(self, fault: str) -> None:
        self.fault = fault

    def __call__(self, body: dict[str, Any]) -> str:
        text, kind = prompt_of(body), kind_of(body)
        if kind == "extract":
            found = [] if self.fault == "extract" else [fact for fact in HARBOUR.facts if self._told(fact.turn, text)]
            return json.dumps({"facts": [fact.text for fact in found]})
        if kind == "decide":
            memories, _, fact = text.rpartition("New fact:")
            listed = re.search(r"(\d+): Tilo's gate", memories)
            if self.fault == "update":
                return json.dumps({"event": "NONE", "id": "1"})
            if "forgotten" in fact and listed:
                return json.dumps({"event": "DELETE", "id": listed[1]})
            return json.dumps({"event": "ADD", "id": "1"})
        known, _, asked = text.rpartition("Question:")
        if self.fault == "answer":
            return "Biscuit"
        thing = next(word for word in ("boat", "dog", "gate") if word in asked)
        value = re.search(rf"{thing} is \w+ (\w+)\.", known)
        return value[1] if value else "unknown"

    def _told(self, turn: str, request: str) -> bool:
        return next(each.text for each in HARBOUR.turns() if each.id == turn) in request


def evaluator(access: ModelAccess, folder: Path, top_k: int = 4) -> Evaluator:
    return Evaluator(FactMemory(near=-1.0, compared=4, top_k=top_k), access, "short_contains", folder / "memories")


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        # What is nowhere is "unknown": the last question is right whenever nothing is stored.
        ("none", [3, 3, 3, 3]),
        ("extract", [1, 3, 3, 3]),
        ("update", [2, 2, 3, 3]),
        ("retrieve", [1, 1, 1, 3]),
        # An empty gold context is answered without asking the model.
        ("answer", [1, 1, 1, 2]),
    ],
)
def test_each_rung_lifts_the_loss_of_the_stage_it_replaces(
    open_access: Callable[..., ModelAccess],
    scripted_server: ScriptedServer,
    tmp_path: Path,
    fault: str,
    expected: list[int],
) -> None:
    scripted_server.script = Clerk(fault)
    judging = evaluator(open_access(), tmp_path, top_k=0 if fault == "retrieve" else 4)
    rungs = audit(judging, [HARBOUR])
    assert [round(3 * rung.score) for rung in rungs] == expected
    assert {rung.n for rung in rungs} == {3}
    assert all(rung.ci is None for rung in rungs)  # one conversation tells nothing of others
    gains = {stage: round(3 * gain) for stage, gain in attainable(rungs).items()}
    steps = [*(above - below for below, above in pairwise(expected)), 3 - expected[-1]]
    assert gains == dict(zip(("extract", "update", "retrieve", "answer"), steps, strict=True))


def test_equal_rungs_have_equal_intervals_whatever_the_numbers_of_questions(
    open_access: Callable[..., ModelAccess], scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    scripted_server.script = Clerk("answer")
    asked_little = [
        HARBOUR.model_copy(update={"id": f"harbour {at}", "questions": (HARBOUR.questions[at % 2],)}) for at in range(4)
    ]
    pipeline, *others, _ = audit(evaluator(open_access(), tmp_path), [HARBOUR, *asked_little])
    assert pipeline.ci is not None
    assert [(rung.score, rung.ci) for rung in others] == [(pipeline.score, pipeline.ci)] * 2


def test_what_was_withdrawn_has_an_empty_gold_context_which_is_answered_unknown_without_a_call(
    open_access: Callable[..., ModelAccess], scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    scripted_server.script = Clerk("none")
    judging = evaluator(open_access(), tmp_path)
    rungs = audit(judging, [HARBOUR])
    gate = [body for body in scripted_server.requests if "Tilo's gate painted?" in prompt_of(body)]
    assert gate
    assert all("Memories:\n- " in prompt_of(body) for body in gate)
    assert rungs[-1].score == 1.0


def test_a_question_without_a_gold_fact_is_told_before_any_call(
    open_access: Callable[..., ModelAccess], scripted_server: ScriptedServer, tmp_path: Path
) -> None:
    bare = HARBOUR.questions[0].model_copy(update={"fact": None})
    judging = evaluator(open_access(), tmp_path)
    with pytest.raises(DataError, match=r"harbour: questions\.boat\.fact is missing"):
        audit(judging, [HARBOUR.model_copy(update={"questions": (bare,)})])
    assert scripted_server.count == 0
