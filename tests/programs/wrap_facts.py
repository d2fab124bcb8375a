"""The notebook on LlamaIndex as a memory system."""

import facts_program

import memtune


async def build(folder, conversation):
    notebook = facts_program.Notebook(folder / "facts.json")
    for part in conversation.sessions:
        await notebook.hear([turn.spoken for turn in part.turns])


async def answer(folder, question):
    return await facts_program.Notebook(folder / "facts.json").ask(question)


system = memtune.system(
    build=build,
    answer=answer,
    prompts={"facts": "facts_program:FACTS", "reply": "facts_program:REPLY"},
    stages={"facts": "extract"},
)
