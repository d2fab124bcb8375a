"""A memory system to begin with: it takes notes of each session, and answers from all of them.

Replace what `build` and `answer` do with calls of your own system. memtune needs no more than `prompts`, `operations`,
`build` and `answer`. The search compares prompts on single recorded inputs, which costs far fewer calls; `rerun` is for
operations of which a trace does not tell enough, such as those with several model calls.
docs/extending.md explains each of them.
"""

from collections.abc import Sequence
from typing import TypedDict

from memtune.systems import (
    Answer,
    Candidate,
    Contract,
    Conversation,
    Memory,
    ModelAccess,
    OperationSpec,
    Parts,
    PromptSpec,
    Question,
    Text,
    noted,
    noted_again,
    operation,
    recalled,
    render,
    session,
    variable,
    variables_of,
)

# The prompts that memtune may rewrite. Each names its operation, the placeholders that it must keep, and its purpose.
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


class StoredNote(TypedDict):
    """A note and the id of its variable, by which a later process links what it reads to what was written."""

    text: str
    variable: str


class MyMemory:
    """The memory system; `experiment.yaml` names it as `my_memory:MyMemory`."""

    prompts = {"note": NOTE, "answer": ANSWER}  # noqa: RUF012
    # Each operation with its stage: extract, update (also for storing), retrieve or answer.
    operations = (OperationSpec("write_notes", "extract", "note"), OperationSpec("answer", "answer", "answer"))

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """Make the memory of a conversation with the prompts of `candidate`; its state must be plain JSON."""
        notes: list[StoredNote] = []
        for part in conversation.sessions:
            with session(part.id, time=part.time):
                turns = [noted(turn.spoken, name=turn.id, kind="message") for turn in part.turns]
                self.write_notes(notes, turns, candidate["note"], access)
        return Memory({"notes": notes})

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """Answer a question from a memory that `build` made."""
        query = noted(question.question, name=question.id, kind="query")
        reply = self.reply(query, memory.state["notes"], candidate["answer"], access)
        return Answer(reply.text, reply.variable.id or None)

    def rerun(self, prompt: str, parts: Parts, candidate: Candidate, access: ModelAccess) -> None:
        """Execute one prompt's operation again, on inputs that were recorded."""
        if prompt == "note":
            self.write_notes([], noted_again(parts["turns"]), candidate["note"], access)
        else:
            (query,) = noted_again(parts["question"])
            notes = [StoredNote(text=note.text, variable=note.variable.id) for note in noted_again(parts["notes"])]
            self.reply(query, notes, candidate["answer"], access)

    # Each step records what it read and made, so that a wrong answer can be followed back to it.

    def write_notes(self, notes: list[StoredNote], turns: Sequence[Text], prompt: str, access: ModelAccess) -> None:
        """Add notes on the turns of a session."""
        inputs = {"turns": variables_of(turns), "prompt": variable(prompt, name="note", kind="prompt")}
        with operation("write_notes", kind="llm", inputs=inputs) as op:
            dialogue = "\n".join(turn.text for turn in turns)
            for line in ask(access, render(prompt, {"turns": dialogue}), 300).splitlines():
                entry = op.output("note", line, name=f"note{len(notes) + 1}", kind="memory_entry")
                notes.append(StoredNote(text=line, variable=entry.id))

    def reply(self, query: Text, notes: Sequence[StoredNote], prompt: str, access: ModelAccess) -> Text:
        """Answer from notes."""
        read_notes = recalled(note["variable"] for note in notes)
        text = variable(prompt, name="answer", kind="prompt")
        with operation(
            "answer", kind="llm", inputs={"question": query.variable, "notes": read_notes, "prompt": text}
        ) as op:
            lines = "\n".join(note["text"] for note in notes)
            reply_text = ask(access, render(prompt, {"notes": lines, "question": query.text}), 40)
            return Text(reply_text, op.output("prediction", reply_text, kind="prediction"))


def ask(access: ModelAccess, request: str, max_tokens: int) -> str:
    """Ask the task model, through memtune's cache and budgets. A client of your own works too (docs/extending.md)."""
    return access.task.chat([{"role": "user", "content": request}], max_tokens=max_tokens, whole=False).text.strip()
