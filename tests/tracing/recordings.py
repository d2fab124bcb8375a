"""Small executions to record, for tests that look at traces from outside."""

from __future__ import annotations

import itertools
from pathlib import Path

from tracing import Recorder, operation, session, trace, variable


def record_memory(path: Path | None = None, *, fact: str = "Mara lives in Oslo", fails: bool = False) -> Recorder:
    """Two messages become a fact, the fact an entry with two versions, and a question is answered from it."""
    ticks = itertools.count(1000)
    with trace(path, prefix="", clock=lambda: float(next(ticks))) as recorder:
        with session("D1"):
            messages = [
                variable(text, name=f"D1:{n}", kind="message") for n, text in ((1, "hi"), (2, "I moved to Oslo"))
            ]
            with operation("update_memory", inputs={"messages": messages}):
                with operation("extract_facts", kind="llm", inputs={"messages": messages}) as op:
                    made = op.output("facts", fact, kind="fact")
                    op.record_call(model="small", prompt_tokens=30, completion_tokens=5, cost=0.01)
                with operation("store", inputs={"fact": made}) as op:
                    entry = op.output("entry", f"- {fact}", name="home", kind="memory_entry")
                    entry = op.output(
                        "entry", f"- {fact}\n- since May", name="home", kind="memory_entry", previous=entry
                    )
        with session("Q1"):
            question = variable("Where does Mara live?", name="Q1", kind="query")
            with operation("retrieve", kind="embedding", inputs={"query": question, "entries": [entry]}) as op:
                context = op.output("context", entry.value, kind="context")
            try:
                with operation("answer", kind="llm", inputs={"question": question, "context": context}) as op:
                    if fails:
                        raise ValueError("no reply")
                    op.output("reply", fact.split()[-1], kind="prediction")
                    op.record_call(model="small", prompt_tokens=40, completion_tokens=2, cost=0.02)
            except ValueError:
                pass
    return recorder
