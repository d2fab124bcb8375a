"""Traces as a service in production writes them: a trace a request or one a day, of several users and processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tracing import answered, attributes, operation, trace, variable
from tracing.recording.redaction import Redaction

DAY = 86400.0
MONDAY = 1_700_000_000.0


class Clock:
    """A second passes with each look at it."""

    def __init__(self, moment: float) -> None:
        self.moment = moment

    def __call__(self) -> float:
        self.moment += 1
        return self.moment


def stores(message: str, fact: str | None) -> None:
    """The memory extracts a fact of a message, or loses it."""
    said = variable(message, name=message, kind="message")
    with operation("extract_facts", kind="llm", inputs={"messages": [said]}) as op:
        facts = [op.output("facts", fact, kind="fact")] if fact else []
    for stored in facts:
        with operation("store", inputs={"fact": stored}) as op:
            op.output("entry", stored.value, kind="memory_entry", name="m1")


def asks(question: str, reply: str, context: Sequence[str] = ()) -> None:
    with operation("retrieve", kind="retrieval", inputs={"query": variable(question, name="q", kind="query")}) as op:
        for text in context:
            op.output("context", text, kind="context")
    answered(question, reply)


def request(
    folder: Path,
    user: str,
    moment: float,
    *,
    message: str = "",
    fact: str | None = None,
    question: str = "",
    reply: str = "unknown",
    redaction: Redaction | None = None,
    more: Mapping[str, object] = {},
) -> Path:
    """One request of a user in a trace of its own: something said or asked."""
    facts = {"user": user, **more} if user else more
    with attributes(**facts), trace(f"{folder}/", clock=Clock(moment), redaction=redaction) as recorder:
        if message:
            stores(message, fact)
        if question:
            asks(question, reply)
    assert recorder.path is not None
    return recorder.path
