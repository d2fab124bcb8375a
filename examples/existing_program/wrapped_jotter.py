from jotter import Jotter

import memtune


def build(folder, conversation):
    memory = Jotter(path=folder / "jotter.db")
    for part in conversation.sessions:
        for turn in part.turns:
            memory.hear(turn.speaker, turn.text)


def answer(folder, question):
    return Jotter(path=folder / "jotter.db").reply(question)


system = memtune.system(
    build=build,
    answer=answer,
    prompts={"reply": "jotter:REPLY"},
    stages={"reply": "answer"},
    watched=memtune.watch(Jotter, retrieve="recall"),
)
