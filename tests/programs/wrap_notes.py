from notes_program import Memory

import memtune


async def build(folder, conversation):
    memory = Memory(folder / "notes.db")
    for part in conversation.sessions:
        await memory.add([turn.spoken for turn in part.turns])


async def answer(folder, question):
    return await Memory(folder / "notes.db").reply(question)


watched = memtune.watch(Memory, retrieve="search")
system = memtune.system(
    build=build,
    answer=answer,
    prompts={"note": "notes_program:NOTE", "merge": "notes_program:Memory.store", "answer": "notes_program:ANSWER"},
    watched=watched,
)
