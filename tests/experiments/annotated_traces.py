"""Traces to annotate, recorded with the real recorder: a memory of facts, its answers, and a judge of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tracing.recording.operations import operation
from tracing.recording.trace_context import session, trace, variable

SCRIPT = "<script>document.title = 'stolen'</script><img src=x onerror=\"document.title='stolen'\">"


@dataclass(frozen=True)
class Asked:
    """A question: what was said, what was extracted of it, what is right and what was replied."""

    said: str
    fact: str
    question: str
    right: str
    reply: str


LOST = Asked("Mara: I moved to Oslo in May.", "Mara moved.", "Where does Mara live?", "Oslo", "Bergen")
UNUSED = Asked("Ben: My dog is called Rex.", "Ben's dog is called Rex.", "What is Ben's dog called?", "Rex", "Tom")
RIGHT = Asked("Mara: I play the cello.", "Mara plays the cello.", "What does Mara play?", "cello", "cello")
USUAL = (LOST, UNUSED, RIGHT)


def write_trace(path: Path, asked: Sequence[Asked] = USUAL, *, filler: int = 0) -> None:
    """A trace of a memory that heard these things and `filler` more, and was asked about them afterwards."""
    with trace(path, prefix=""):
        facts = []
        with session("D1"):
            for n, one in enumerate(asked, start=1):
                message = variable(one.said, name=f"D1:{n}", kind="message")
                with operation("extract_facts", inputs={"messages": [message]}) as extract:
                    fact = extract.output("facts", one.fact, name=f"fact-{n}", kind="fact")
                with operation("update_memory", inputs={"fact": fact}) as update:
                    entry = update.output("entry", one.fact, name=f"entry-{n}", kind="memory_entry")
                with operation("update_memory", inputs={"fact": fact, "old": entry}) as update:
                    changed = f"{one.fact} Noted."
                    facts.append(
                        update.output("entry", changed, name=f"entry-{n}", kind="memory_entry", previous=entry)
                    )
            for n in range(filler):
                message = variable(f"Ann: thing number {n} is blue.", name=f"F:{n}", kind="message")
                with operation("extract_facts", inputs={"messages": [message]}) as extract:
                    extract.output("facts", f"Thing number {n} is blue.", name=f"more-{n}", kind="fact")
        for n, one in enumerate(asked, start=1):
            with session(f"q{n}"):
                query = variable(one.question, name=f"q{n}", kind="query", evidence=[f"D1:{n}"])
                with operation("retrieve", inputs={"query": query, "entries": facts}) as retrieve:
                    context = retrieve.output("context", facts[n - 1].value, name="context", kind="context")
                with operation("answer", inputs={"query": query, "context": context}) as answer:
                    prediction = answer.output("prediction", one.reply, name="prediction", kind="prediction")
                gold = variable(one.right, name="gold", kind="golden_answers")
                with operation("judge", inputs={"query": query, "prediction": prediction, "gold": gold}) as judge:
                    judge.output("score", float(one.reply == one.right), name="score", kind="judge_score")
