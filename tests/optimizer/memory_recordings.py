"""A real fact memory, recorded against the scripted server, for the tests of what reads recordings."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripted_server import prompt_of

from attribution.cases import Attribution
from attribution.survival.survival_method import attribute
from experiments.systems.fact_memory import FactMemory
from optimizer.evaluation.evaluator import Evaluator, Outcome
from tracing.llm.access import ModelAccess
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import Candidate


def conversation(name: str, first: str, second: str, pet: str, hue: str) -> Conversation:
    """Two people; one of two facts is later taken back."""
    return Conversation.model_validate(
        {
            "id": name,
            "split": "train",
            "speakers": [first, second],
            "sessions": [
                {
                    "id": "D1",
                    "turns": [
                        {"id": "D1:1", "speaker": first, "text": f"My parrot is called {pet}."},
                        {"id": "D1:2", "speaker": second, "text": "What lovely weather we have."},
                        {"id": "D1:3", "speaker": second, "text": f"My lorry is {hue}."},
                    ],
                },
                {
                    "id": "D2",
                    "turns": [{"id": "D2:1", "speaker": second, "text": "Please forget the paint of my lorry."}],
                },
            ],
            "questions": [
                {
                    "id": f"{name}-q1",
                    "question": f"What is the parrot of {first} called?",
                    "answers": [pet],
                    "evidence": ["D1:1"],
                },
                {
                    "id": f"{name}-q2",
                    "question": f"What is the paint of the lorry of {second}?",
                    "answers": ["unknown"],
                    "kind": "deleted",
                    "evidence": ["D2:1"],
                    "near_miss": {"turn": "D1:3", "value": hue},
                },
            ],
        }
    )


CONVERSATIONS = (
    conversation("c1", "Anke", "Bodo", "Zibbel", "ochre"),
    conversation("c2", "Cleo", "Dirk", "Muffin", "puce"),
)
SHORT = "Reply with one word."


def script(body: dict[str, Any]) -> str:
    """A model that extracts and decides by rule, and answers in one word only where the prompt says `SHORT`."""
    text = prompt_of(body)
    properties = body.get("response_format", {}).get("json_schema", {}).get("schema", {}).get("properties", {})
    if "facts" in properties:
        return json.dumps({"facts": _facts(text)})
    if "event" in properties:
        fact = text.rpartition("New fact:")[2]
        return json.dumps({"event": "DELETE" if "forgotten" in fact else "ADD", "id": "1"})
    asked = text.rpartition("Question:")[2]
    pet = re.search(r"parrot is called (\w+)", text)
    if "parrot" in asked and pet:
        return (
            pet[1]
            if SHORT in text
            else f"Well, as far as I can tell from all these memories, the answer must surely be {pet[1]}."
        )
    return "unknown"


def _facts(text: str) -> list[str]:
    found = [f"{who}'s parrot is called {pet}." for who, pet in re.findall(r"(\w+): My parrot is called (\w+)", text)]
    found += [f"{who}'s lorry is {hue}." for who, hue in re.findall(r"(\w+): My lorry is (\w+)", text)]
    return found + [
        f"{who} wants the paint of the lorry forgotten." for who in re.findall(r"(\w+): Please forget", text)
    ]


class Watched:
    """A real evaluator of a real fact memory, and the candidates it was asked about."""

    def __init__(self, access: ModelAccess, snapshots: Path) -> None:
        self.system = FactMemory(near=0.1)
        self.evaluator = Evaluator(self.system, access, "short_contains", snapshots)
        self.evaluated: list[dict[str, str]] = []

    def evaluate(self, candidate: Candidate, conversations: Sequence[Conversation]) -> list[Outcome]:
        self.evaluated.append(dict(candidate))
        return self.evaluator.evaluate(candidate, conversations)


def attributions_of(outcomes: Sequence[Outcome], system: FactMemory) -> list[Attribution]:
    """The attribution of every wrong answer."""
    return [
        attribute(case, each.graph, each.conversation, system.operations)
        for each in outcomes
        for case in each.cases
        if not case.passed
    ]
