"""A memory system to begin with: it takes notes of each session, and answers from all of them.

Replace what `build` and `answer` do with calls of your own system. memtune needs no more than `prompts`, `operations`,
`build` and `answer`; docs/extending.md explains each of them.
"""

from tracing import operation, session, variable
from tracing.llm.access import ModelAccess
from tracing.systems.conversations import Conversation, Question
from tracing.systems.prompts import Candidate, Contract, PromptSpec, render
from tracing.systems.protocol import Answer, Memory, OperationSpec
from tracing.systems.texts import recalled

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


class MyMemory:
    """The memory system; `experiment.yaml` names it as `my_memory:MyMemory`."""

    prompts = {"note": NOTE, "answer": ANSWER}  # noqa: RUF012
    # Each operation with its stage: extract, update, store, retrieve or answer.
    operations = (OperationSpec("write_notes", "extract", "note"), OperationSpec("answer", "answer", "answer"))

    def build(self, conversation: Conversation, candidate: Candidate, access: ModelAccess) -> Memory:
        """Make the memory of a conversation with the prompts of `candidate`; its state must be plain JSON."""
        notes: list[dict[str, str]] = []
        prompt = variable(candidate["note"], name="note", kind="prompt")
        for part in conversation.sessions:
            with session(part.id, time=part.time):
                turns = [variable(turn.spoken, name=turn.id, kind="message") for turn in part.turns]
                # What an operation read and made is recorded, so that a wrong answer can be followed back to it.
                with operation("write_notes", kind="llm", inputs={"turns": turns, "prompt": prompt}) as op:
                    said = "\n".join(turn.spoken for turn in part.turns)
                    for line in ask(access, render(candidate["note"], {"turns": said}), 300).splitlines():
                        note = op.output("note", line, name=f"note{len(notes) + 1}", kind="memory_entry")
                        notes.append({"text": line, "variable": note.id})
        return Memory({"notes": notes})

    def answer(self, memory: Memory, question: Question, candidate: Candidate, access: ModelAccess) -> Answer:
        """Answer a question from a memory that `build` made."""
        query = variable(question.question, name=question.id, kind="query")
        notes = recalled(note["variable"] for note in memory.state["notes"])
        prompt = variable(candidate["answer"], name="answer", kind="prompt")
        with operation("answer", kind="llm", inputs={"question": query, "notes": notes, "prompt": prompt}) as op:
            texts = "\n".join(note["text"] for note in memory.state["notes"])
            text = ask(access, render(candidate["answer"], {"notes": texts, "question": question.question}), 40)
            prediction = op.output("prediction", text, kind="prediction")
        return Answer(text, prediction.id or None)


def ask(access: ModelAccess, request: str, max_tokens: int) -> str:
    """Ask the task model, through memtune's cache and budgets. A client of your own works too (docs/extending.md)."""
    return access.task.chat([{"role": "user", "content": request}], max_tokens=max_tokens, whole=False).text.strip()
