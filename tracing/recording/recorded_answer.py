"""A question and the reply to it, recorded in one call by a program that answers with code of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tracing.graph.elements import Variable
from tracing.recording.operations import operation
from tracing.recording.recorder import Recorder, current_recorder, variable


def answered(
    question: str, reply: str, *, context: Iterable[Any] | None = None, name: str = "question", **attributes: Any
) -> Variable:
    """Record an answer as an operation `answer`, which is what attribution looks for; returns the reply's variable.

    Args:
        question: as the user asked it.
        reply: as the user got it.
        context: what it was answered from, as an input of `operation`; by default what the latest recorded search for
            this very question has found.
        name: of the question, such as its id in your log.
        attributes: of the operation.

    Example:
        >>> with trace() as recorder:
        ...     reply = answered("Where does Mara live?", "Oslo", context=["Mara lives in Oslo."])
        >>> [role for role, _ in recorder.graph.producers(reply.id)[0].inputs]
        ['query', 'context']
    """
    recorder = current_recorder()
    query, contexts = None, [*context] if context is not None else []
    if recorder is not None and context is None:
        query, contexts = _search_for(recorder, question)
    query = query or variable(question, name=name, kind="query")
    with operation("answer", inputs={"query": query}, **attributes) as op:
        for item in contexts:
            op.use("context", item)
        return op.output("prediction", reply, kind="prediction")


def _search_for(recorder: Recorder, question: str) -> tuple[Variable | None, list[Any]]:
    """The query of the latest search for a question, and what it found."""
    with recorder.lock:
        graph, question_text = recorder.graph, recorder.redaction.text(question)
        for operation_ in reversed(graph.operations.values()):
            inputs = [graph.variables[vid] for vid in operation_.input_ids()]
            query = next(
                (candidate for candidate in inputs if candidate.kind == "query" and candidate.value == question_text),
                None,
            )
            outputs = [graph.variables[vid] for vid in operation_.output_ids()]
            context = [output for output in outputs if output.kind == "context"]
            if query is not None and (context or operation_.kind == "retrieval"):
                return query, context
    return None, []
