"""Run in the environment of a Mem0: what recording somebody's Mem0 shows, as JSON; the argument is an endpoint."""

import asyncio
import inspect
import json
import os
import sys

os.environ["MEM0_TELEMETRY"] = "False"

from experiments.systems.mem0 import library
from tracing import answered, instrument, trace, variable

QUESTION = "Mara moved to Oslo."
GENERATION = next(each for each in library.GENERATIONS if each.is_here())
WHOSE = {"filters": {"user_id": "u"}} if GENERATION is library.V2 else {"user_id": "u"}


def opened(name):
    settings = {"api_key": "sk-abcdefgh12345678", "openai_base_url": sys.argv[1]}
    embedder = {**settings, "model": "scripted", "embedding_dims": 64}
    store = {"path": ":memory:", "collection_name": name, "embedding_model_dims": 64}
    made = getattr(library.load(GENERATION), name).from_config(
        {
            "llm": {"provider": "openai", "config": {**settings, "model": "scripted"}},
            "embedder": {"provider": "openai", "config": embedder},
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": ":memory:",
        }
    )
    return asyncio.run(made) if inspect.isawaitable(made) else made


def told(graph, one):
    read = [[role, graph.variables[vid].name] for role, vid in one.inputs if graph.variables[vid].kind == "message"]
    facts = [graph.variables[vid].value for vid in one.input_ids("fact")]
    made = [graph.variables[vid].value for vid in one.output_ids() if graph.variables[vid].kind != "reply"]
    return [one.name, read, facts, made]


def recorded(memory, run):
    with instrument.mem0(memory), trace() as recorder:
        variable("Mara: I moved to Oslo.", name="D1:1", kind="message")
        variable("Mara: I like tea.", name="D1:2", kind="message")
        run()
    return [told(recorder.graph, one) for one in recorder.graph.operations.values()]


def sync():
    memory.add(
        [{"role": "user", "content": "I moved to Oslo."}, {"role": "user", "content": "x", "id": "D1:2"}], user_id="u"
    )
    memory.search(QUESTION, **WHOSE)
    answered(QUESTION, "yes")


async def awaited():
    await beside.add([{"role": "user", "content": "I moved to Oslo."}], user_id="u")
    await beside.search(QUESTION, **WHOSE)


memory, beside = opened("Memory"), opened("AsyncMemory")
print(json.dumps([recorded(memory, sync), recorded(beside, lambda: asyncio.run(awaited()))]))
