"""Conversations and a scripted model with one weakness, which an instruction in the right prompt cures."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from memory_recordings import conversation
from scripted_server import Reply, prompt_of

from experiments.systems.fact_memory import FactMemory
from optimizer.evaluation.scores import Splits
from optimizer.proposers.bank import INSTRUCTIONS
from tracing.systems.conversations import Conversation
from tracing.systems.protocol import Stage

LENGTHY = "As far as I can make out from all that the two of them have ever told it is {} I think"


def world(train: int = 3, validation: int = 3, test: int = 2) -> Splits:
    """Conversations with one question each that depends on the model, and one that it always answers."""

    def some(split: str, count: int) -> tuple[Conversation, ...]:
        return tuple(
            conversation(
                f"{split}-{n}",
                f"Anke{split}{n}",
                f"Bodo{split}{n}",
                f"Zibbel{split}{n}",
                f"ochre{split}{n}",
            )
            for n in range(count)
        )

    return Splits(some("train", train), some("validation", validation), some("test", test))


def memory() -> FactMemory:
    """A fact memory that stores every fact without a decision: no two vectors are nearer than 1."""
    return FactMemory(near=2.0)


def kind_of(body: dict[str, Any]) -> str:
    """What a request asks for: `extract`, `decide`, `reflect` or `answer`."""
    properties = body.get("response_format", {}).get("json_schema", {}).get("schema", {}).get("properties", {})
    if "facts" in properties:
        return "extract"
    if "event" in properties:
        return "decide"
    asked = prompt_of(body)
    author = "one line at a time" in asked or "Write a better template" in asked
    return "reflect" if author else "answer"


def for_dspy(request: str, instruction: str) -> str:
    """Every field that DSPy asks for, with this as the instruction and as the advice on the answer prompt."""
    wanted = dict.fromkeys(re.findall(r"\[\[ ## (\w+) ## \]\]", request.rpartition("Respond with")[2]))
    said = {"module_advice": json.dumps({"answer_prompt": instruction}), "proposed_instruction": instruction}
    return "\n\n".join(f"[[ ## {name} ## ]]\n{said.get(name, 'None.')}" for name in wanted)


class WeakModel:
    """Extracts and answers by rule, but at one stage badly unless its prompt has an instruction of the bank.

    Args:
        weak: the stage: `extract` overlooks the parrots, `answer` gives the right reply in a long sentence.
        curable: whether instructions help.
        overlooked: parrots that no extraction ever finds.
    """

    def __init__(self, weak: Stage | None = None, *, curable: bool = True, overlooked: Sequence[str] = ()) -> None:
        self.weak, self.overlooked = weak, overlooked
        self.cures = [each.text for each in INSTRUCTIONS if each.stage == weak] if curable else []

    def __call__(self, body: dict[str, Any]) -> Reply | str:
        text, kind = prompt_of(body), kind_of(body)
        if kind == "reflect":
            return "I have no better idea."
        if kind == "decide":
            return json.dumps({"event": "ADD", "id": "1"})
        hampered = kind == self.weak and not any(cure in text for cure in self.cures)
        if kind == "extract":
            pets = [] if hampered else re.findall(r"(\w+): My parrot is called (\w+)", text)
            hues = re.findall(r"(\w+): My lorry is (\w+)", text)
            facts = [f"{who}'s parrot is called {pet}." for who, pet in pets if pet not in self.overlooked]
            return json.dumps({"facts": facts + [f"{who}'s lorry is {hue}." for who, hue in hues]})
        asked = re.search(r"parrot of (\w+) called", text.rpartition("Question:")[2])
        found = re.search(rf"{asked[1]}'s parrot is called (\w+)", text) if asked else None
        reply = found[1] if found else "unknown"
        return LENGTHY.format(reply) if hampered and found else reply
