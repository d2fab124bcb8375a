"""The companion on LangChain as a memory system."""

import summing_program

import memtune


def build(folder, conversation):
    companion = summing_program.Companion(folder / "chat.json")
    for turn in conversation.turns():
        companion.hear(turn.spoken)


def answer(folder, question):
    return summing_program.Companion(folder / "chat.json").ask(question)


system = memtune.system(
    build=build,
    answer=answer,
    prompts={"summary": "summing_program:SUMMARY", "reply": "summing_program:REPLY"},
    stages={"summary": "extract", "reply": "answer"},
)
