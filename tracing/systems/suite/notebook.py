"""A memory system without a model, for conformance suites: it remembers every turn and answers by rule."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tracing.llm.access import ModelAccess
from tracing.recording.operations import operation
from tracing.recording.trace_context import session, variable
from tracing.systems.conversations import Conversation, DialogueSession, Question, Turn
from tracing.systems.prompts import Candidate, Contract, PromptSpec
from tracing.systems.protocol import Answer, Memory, OperationSpec

LENGTHY = "As far as anyone can make out from all that the two of them have said so far it is {}"


class Notebook:
    """Answers with the last word of the turn that shares most words with the question.

    With its own prompt it answers in a long sentence, which the default metric counts as wrong; with any other it
    returns the word alone. So every rewrite is an improvement.
    """

    name = "notebook"
    version = "1"
    settings: Mapping[str, Any] = {}
    prompts = {  # noqa: RUF012
        "answer": PromptSpec(
            name="answer",
            text="Notes:\n{context}\n\nQuestion: {question}\nAnswer in a few words:",
            operation="answer",
            contract=Contract(placeholders=frozenset({"context", "question"})),
            purpose="Answer the question from the notes.",
            builds=False,
        )
    }
    operations = (OperationSpec("note", "extract", None), OperationSpec("answer", "answer", "answer"))

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """A note of each turn."""
        notes = []
        for dialogue in conversation.sessions:
            with session(dialogue.id, time=dialogue.time):
                for turn in dialogue.turns:
                    message = variable(turn.spoken, name=turn.id, kind="message")
                    with operation("note", inputs={"messages": message}) as op:
                        note = op.output("notes", turn.spoken, name=f"n-{turn.id}", kind="memory_entry")
                    notes.append({"text": turn.spoken, "variable": note.id})
        return Memory({"notes": notes})

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """The last word of the nearest note."""
        words = set(re.findall(r"\w+", question.question.lower()))
        nearest = max(
            memory.state["notes"], key=lambda note: len(words & set(re.findall(r"\w+", note["text"].lower())))
        )
        word = re.findall(r"\w+", nearest["text"])[-1]
        lengthy = candidate["answer"] == self.prompts["answer"].text
        prompt = variable(candidate["answer"], name="answer", kind="prompt")
        query = variable(question.question, name=question.id, kind="query")
        context = variable(nearest["text"], name="context", kind="context", source=nearest["variable"])
        with operation("answer", kind="llm", inputs={"query": query, "context": context, "prompt": prompt}) as op:
            reply = LENGTHY.format(word) if lengthy else word
            prediction = op.output("prediction", reply, name="prediction", kind="prediction")
        return Answer(reply, prediction.id or None)


def notebook_conversations(split: str, count: int) -> tuple[Conversation, ...]:
    """Conversations with two questions each, whose answers the notebook finds."""
    pets, hues = (
        ("Zibbel", "Muffin", "Rollo", "Pixel", "Tango", "Hugo"),
        ("ochre", "puce", "teal", "beige", "lime", "grey"),
    )

    def conversation(number: int) -> Conversation:
        name, pet, hue = f"{split}-{number}", pets[number % len(pets)], hues[number % len(hues)]
        turns = (
            Turn(id="D1:1", speaker="Anke", text=f"My parrot is called {pet}."),
            Turn(id="D1:2", speaker="Bodo", text=f"My new lorry was painted {hue}."),
        )
        texts = ("What is the parrot of Anke called?", "How was the lorry of Bodo painted?")
        questions = tuple(
            Question(id=f"{name}-q{place}", question=text, answers=(answer,), evidence=(f"D1:{place}",))
            for place, (text, answer) in enumerate(zip(texts, (pet, hue), strict=True), start=1)
        )
        sessions = (DialogueSession(id="D1", turns=turns),)
        return Conversation(id=name, speakers=("Anke", "Bodo"), sessions=sessions, questions=questions)

    return tuple(conversation(number) for number in range(count))
