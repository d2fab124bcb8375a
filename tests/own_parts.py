"""Parts of a user's own, as files in a folder and as an installed distribution with entry points."""

from pathlib import Path

SYSTEM = '''
"""A memory that keeps every turn as it was said, and reads all of them for every answer."""

from tracing import operation, session, variable
from tracing.systems.prompts import Contract, PromptSpec, render
from tracing.systems.protocol import Answer, Memory, OperationSpec

SEED = "Notes:\\n{notes}\\n\\nAsked: {asked}\\nSay it in a few words:"


class Keeper:
    prompts = {
        "reply": PromptSpec(
            name="reply",
            text=SEED,
            operation="reply",
            contract=Contract(placeholders=frozenset({"notes", "asked"})),
            purpose="Answer the question from the notes.",
            builds=False,
        )
    }
    operations = (OperationSpec("keep", "extract", None), OperationSpec("reply", "answer", "reply"))

    def build(self, conversation, candidate, access):
        notes = []
        for dialogue in conversation.sessions:
            with session(dialogue.id):
                for turn in dialogue.turns:
                    message = variable(turn.spoken, name=turn.id, kind="message")
                    with operation("keep", inputs={"messages": message}) as op:
                        note = op.output("note", turn.spoken, name=f"n{len(notes) + 1}", kind="memory_entry")
                        notes.append([turn.spoken, note.id])
        return Memory({"notes": notes})

    def answer(self, memory, question, candidate, access):
        recorded = [variable(text, name=f"n{n}", kind="context") for n, (text, _) in enumerate(memory.state["notes"])]
        asked = variable(question.question, name=question.id, kind="query")
        prompt = variable(candidate["reply"], name="reply", kind="prompt")
        with operation("reply", kind="llm", inputs={"notes": recorded, "asked": asked, "prompt": prompt}) as op:
            lines = "\\n".join(text for text, _ in memory.state["notes"])
            request = render(candidate["reply"], {"notes": lines, "asked": question.question})
            text = access.task.chat([{"role": "user", "content": request}], max_tokens=40, whole=False).text
            said = op.output("prediction", text, kind="prediction")
        return Answer(text, said.id or None)


def make(*, size: int = 3):
    return Keeper()


made = Keeper()
'''


def write_module(folder: Path, name: str, text: str = SYSTEM) -> Path:
    """A module of the user's own in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(text)
    return path


def install(folder: Path, group: str, name: str, target: str) -> None:
    """A distribution with one entry point, as an installer leaves it in a folder of `sys.path`."""
    info = folder / f"{name.replace('-', '_')}_dist-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-dist\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {target}\n")
