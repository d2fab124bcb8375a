import json

import helper_program as helper

import memtune


def build(folder, conversation):
    notes = [note for part in conversation.sessions for note in helper.take_notes([turn.spoken for turn in part.turns])]
    (folder / "notes.json").write_text(json.dumps(notes))


def answer(folder, question):
    return helper.answer(json.loads((folder / "notes.json").read_text()), question)


watched = memtune.watch(helper, retrieve="find")
system = memtune.system(
    build=build,
    answer=answer,
    prompts={"note": "helper_program:NOTE", "reply": "reply.j2", "manner": "prompts.yaml:answer.system"},
    stages={"manner": "answer"},
    watched=watched,
)
