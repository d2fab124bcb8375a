"""The diary that asks at once as a memory system."""

import crowd_program

import memtune


async def build(folder, conversation):
    await crowd_program.Diary(folder / "notes.json").hear([turn.spoken for turn in conversation.turns()])


async def answer(folder, question):
    return await crowd_program.Diary(folder / "notes.json").reply(question)


system = memtune.system(
    build=build,
    answer=answer,
    prompts={"note": "crowd_program:Diary.note", "reply": "crowd_program:Diary.reply"},
    stages={"note": "extract"},
)
