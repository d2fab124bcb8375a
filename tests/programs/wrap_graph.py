"""The biographer on Graphiti as a memory system."""

from datetime import UTC, datetime

import graph_program

import memtune


async def build(folder, conversation):
    biographer = graph_program.Biographer(folder / "graph")
    await biographer.open()
    for day, part in enumerate(conversation.sessions, start=1):
        text = "\n".join(turn.spoken for turn in part.turns)
        await biographer.hear(part.id, text, datetime(2026, 1, day, tzinfo=UTC))


async def answer(folder, question):
    return await graph_program.Biographer(folder / "graph").ask(question)


system = memtune.system(
    build=build,
    answer=answer,
    prompts={
        "rules": "graph_program:RULES",
        "person": "graph_program:Person.__doc__",
        "tells": "graph_program:Tells.__doc__",
        "triples": "graph_program:triples",
        "reply": "graph_program:REPLY",
    },
    stages={"rules": "extract", "person": "extract", "tells": "extract", "triples": "extract"},
)
