"""A memory system with its own client: it takes notes of each session, and answers from all of them.

It inherits from no class of memtune; `prompts`, `operations`, `build` and `answer` are all that memtune needs.
"""

import functools

from openai import OpenAI

from memtune.systems import (
    Answer,
    ConfigError,
    Contract,
    Memory,
    OperationSpec,
    PromptSpec,
    instrument,
    operation,
    recalled,
    render,
    session,
    variable,
)

NOTE = PromptSpec(
    name="note",
    text="Write down what the speakers tell about themselves, a line for each thing.\n\nSaid:\n{turns}\n\nNotes:",
    operation="write_notes",
    contract=Contract(placeholders=frozenset({"turns"})),
    purpose="Turn what was said into short notes that name the person and keep every concrete value.",
    builds=True,
)
ANSWER = PromptSpec(
    name="answer",
    text="Notes:\n{notes}\n\nQuestion: {question}\nAnswer:",
    operation="answer",
    contract=Contract(placeholders=frozenset({"notes", "question"})),
    purpose="Answer the question from the notes in one to four words, or with 'unknown' when they do not tell.",
    builds=False,
)


class NoteMemory:
    prompts = {"note": NOTE, "answer": ANSWER}
    operations = (OperationSpec("write_notes", "extract", "note"), OperationSpec("answer", "answer", "answer"))

    def build(self, conversation, candidate, access):
        notes = []
        prompt = variable(candidate["note"], name="note", kind="prompt")
        for part in conversation.sessions:
            with session(part.id, time=part.time):
                turns = [variable(turn.spoken, name=turn.id, kind="message") for turn in part.turns]
                with operation("write_notes", kind="llm", inputs={"turns": turns, "prompt": prompt}) as op:
                    said = "\n".join(turn.spoken for turn in part.turns)
                    for line in ask(access, render(candidate["note"], {"turns": said}), 400).splitlines():
                        note = op.output("note", line, name=f"note{len(notes) + 1}", kind="memory_entry")
                        notes.append({"text": line, "variable": note.id})
        return Memory({"notes": notes})

    def answer(self, memory, question, candidate, access):
        query = variable(question.question, name=question.id, kind="query")
        notes = recalled(note["variable"] for note in memory.state["notes"])
        prompt = variable(candidate["answer"], name="answer", kind="prompt")
        with operation("answer", kind="llm", inputs={"question": query, "notes": notes, "prompt": prompt}) as op:
            texts = "\n".join(note["text"] for note in memory.state["notes"])
            text = ask(access, render(candidate["answer"], {"notes": texts, "question": question.question}), 40)
            prediction = op.output("prediction", text, kind="prediction")
        return Answer(text, prediction.id or None)


def ask(access, request, max_tokens):
    task = access.task.settings  # `models.task` of the configuration
    messages = [{"role": "user", "content": request}]
    if task.base_url is None:
        raise ConfigError("models.task.base_url: missing; NoteMemory calls an endpoint with its own client")
    completions = client_of(task.base_url, task.key()).chat.completions
    reply = completions.create(model=task.model, messages=messages, max_tokens=max_tokens, temperature=task.temperature)
    return (reply.choices[0].message.content or "").strip()


@functools.cache
def client_of(base_url, key):
    client = OpenAI(base_url=base_url, api_key=key or "none")
    instrument.openai(client)  # records each call, with its tokens, in the operation that makes it
    return client
