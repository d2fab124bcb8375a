"""A dialogue, the model that stands behind a memory of it, and one planted fault at a time in what the memory does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scripted_server import vector_of

from attribution.cases import Attribution, Case
from attribution.judging.words import judge
from attribution.recordings import Recording, conversation_of, operations_of
from attribution.survival.survival_method import attribute
from tracing.graph.execution_graph import ExecutionGraph
from tracing.systems.conversations import Conversation

KEY = "sk-abcdefgh12345678"

TURNS = {
    "D1:1": "My tortoise Brisket only eats radicchio.",
    "D1:2": "My sister Agata works as a farrier in Bergen.",
    "D1:3": "The bus was late again today.",
}
FACTS = {
    "D1:1": "Tortoise Brisket only eats radicchio.",
    "D1:2": "Sister Agata works as a farrier in Bergen.",
    "D1:3": "The bus was late again.",
}
QUESTION = "What does the tortoise Brisket eat?"

DIALOGUE = Conversation.model_validate(
    {
        "id": "pets",
        "speakers": ["Mara"],
        "sessions": [
            {
                "id": "D1",
                "time": "2021-03-06",
                "turns": [{"id": turn, "speaker": "Mara", "text": text} for turn, text in TURNS.items()],
            }
        ],
        "questions": [{"id": "food", "question": QUESTION, "answers": ["radicchio"], "evidence": ["D1:1"]}],
    }
)


@dataclass(frozen=True)
class Fault:
    """What goes wrong on the way from the first turn to the answer; by default nothing does.

    Attributes:
        forgotten: the model extracts nothing from the turn.
        overwritten: the next fact is written under the same key.
        misplaced: the search gives another entry.
        ignored: the model answers something else.
    """

    forgotten: bool = False
    overwritten: bool = False
    misplaced: bool = False
    ignored: bool = False

    def extracted(self, body: dict[str, Any]) -> list[str]:
        """The facts of the turns in a request."""
        request = json.dumps(body["messages"])
        said = [turn for turn, text in TURNS.items() if text in request]
        return [FACTS[turn] for turn in said if not (self.forgotten and turn == "D1:1")]

    def answered(self, body: dict[str, Any]) -> str:
        """The reply to the question, given what the request tells."""
        told = "radicchio" in json.dumps(body["messages"])
        return "radicchio" if told and not self.ignored else "lettuce"

    def embedded(self, text: str) -> Sequence[float]:
        """A vector of a text; a misplaced search finds what is said of buses nearest to the question."""
        return vector_of("bus" if self.misplaced and (text == QUESTION or "bus" in text) else text)


def attributed(graph: ExecutionGraph, *, gold: bool = True) -> Attribution:
    """Whose fault the last answer is. Without gold evidence the dialogue too is read off the graph."""
    prediction = graph.find_variables(kind="prediction")[-1]
    asked = DIALOGUE.questions[0]
    conversation = DIALOGUE
    if not gold:
        asked, conversation = asked.model_copy(update={"evidence": ()}), conversation_of(graph, "pets")
    reply = str(prediction.value)
    case = Case("pets", asked, reply, judge(reply, asked.answers), prediction.id)
    recording = Recording(graph, conversation, operations_of(graph))
    return attribute(case, recording.graph, recording.conversation, recording.operations)


def blamed(graph: ExecutionGraph, *, gold: bool = True) -> tuple[str, str]:
    """The operation and the error type that are to blame for the last answer."""
    found = attributed(graph, gold=gold)
    assert found.main is not None, found.abstained
    return found.main.operation, found.main.error_type


def shown(graph: ExecutionGraph) -> str:
    """A graph in words, for messages of failed tests."""
    lines = []
    for one in graph.operations.values():
        lines.append(f"{one.id} {one.name} {one.kind} {one.status} in {one.parent}")
        for arrow, links in (("<-", one.inputs), ("->", one.outputs)):
            for role, vid in links:
                made = graph.variables[vid]
                lines.append(f"   {arrow} {role}: {vid} {made.kind} {made.name} {str(made.value)[:70]!r}")
    return "\n".join(lines)
