"""Recording an execution while it runs: what is noted within a trace, and in which session.

    with trace(path) as recorder, session("D1"):
        with operation("extract_facts", kind="llm", inputs={"messages": messages, "prompt": prompt}) as op:
            fact = op.output("facts", text, kind="fact")

asyncio tasks inherit what is being recorded; a thread gets it through `bind`, a process through `hand_over`. Without a
trace all of this does nothing and costs next to nothing.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tracing.errors import TraceError
from tracing.graph.elements import Session, Variable
from tracing.graph.values import snapshot
from tracing.recording.operations import operation
from tracing.recording.recorder import Recorder, current_recorder
from tracing.recording.redaction import Redaction
from tracing.recording.scope import SILENCE, Scope, current, within

_WHOLE = "whole session"


@contextlib.contextmanager
def trace(
    path: str | Path | None = None,
    *,
    prefix: str | None = None,
    clock: Callable[[], float] = time.time,
    strict: bool = False,
    redaction: Redaction | None = None,
) -> Iterator[Recorder]:
    """Record what happens inside; an outer trace pauses meanwhile, and the `attributes` around it are inherited.

    A thread of its own writes the file, a few hundredths of a second behind. Where it cannot, the program continues,
    the logger `tracing` warns once, and `Recorder.lost` counts what was lost.

    Args:
        path: a new file to append records to, or a folder (it exists, or the path ends in "/"), in which each trace
            gets a file of its own, named by moment and prefix; None keeps them in memory only.
        prefix: begins every id, so that no two traces have one in common; drawn at random by default. With one of
            your own the same program gets the same ids again, as long as no other trace has it.
        clock: gives epoch seconds.
        strict: refuse an input that was recorded and then changed without that being recorded; the message shows how.
        redaction: what is taken out before anything is recorded; API keys and bearer tokens always are.

    Raises:
        TraceError: the file holds something already, or cannot be one.

    Example:
        >>> with trace("run.jsonl"), session("D1"):
        ...     message = variable("I moved to Oslo.", name="D1:1", kind="message")
        >>> load_trace("run.jsonl").graph.variables[message.id].value
        'I moved to Oslo.'
    """
    prefix = _unique_prefix() if prefix is None else prefix
    file = None if path is None else _file_of(path, prefix, clock)
    recorder = Recorder(file, prefix, clock, strict=strict, redaction=redaction)
    outer = current_recorder()
    going_on = outer is not None and not outer.ended
    try:
        with within(Scope(recorder, inherited=recorder.facts(current.get().inherited))):
            yield recorder
    finally:
        recorder.end()
        if going_on and outer is not None and outer.ended and current.get().recorder is outer:
            current.set(SILENCE)  # a generator held the outer one, and was closed inside of this one


@contextlib.contextmanager
def session(name: str, **attributes: Any) -> Iterator[Session]:
    """A named stage: what is recorded inside belongs to it; the innermost counts. Without a trace its id is empty.

    Example:
        >>> with trace() as recorder, session("D1", date="Monday"):
        ...     message = variable("I moved to Oslo.", name="D1:1", kind="message")
        >>> [variable.name for variable in recorder.graph.find_variables(session="D1")]
        ['D1:1']
    """
    scope, recorder = current.get(), current_recorder()
    if recorder is None:
        yield Session("", name)
        return
    if recorder.ended:
        raise recorder.late()
    whole = recorder.beside.get((_WHOLE, scope.session))
    if whole is not None:
        yield whole
        return
    with recorder.lock:
        recorder.settle()
        new_session = recorder.builder.add_session(name, {**scope.inherited, **snapshot(attributes)})
    recorder.noticed()
    with within(Scope(recorder, scope.operation, new_session.id, scope.inherited)):
        yield new_session


@contextlib.contextmanager
def whole_session(name: str) -> Iterator[Session]:
    """A session that those which begin inside do not divide, such as a question's: all inside belongs to it."""
    with session(name) as whole:
        recorder = current_recorder()
        if recorder is not None:
            recorder.beside[_WHOLE, whole.id] = whole
        yield whole


@contextlib.contextmanager
def attributes(**facts: Any) -> Iterator[None]:
    """Give attributes such as tenant, conversation or user to every session, operation and variable recorded inside.

    They are inherited across tasks and bound threads, and by a trace that begins inside; inner ones, and an element's
    own, take precedence. `user` and `session_id` tell whose traces belong together, and what was one chat.

    Example:
        >>> with trace(), attributes(tenant="acme", user="mara"):
        ...     message = variable("I moved to Oslo.", name="D1:1", kind="message")
        >>> message.attributes
        {'tenant': 'acme', 'user': 'mara'}
    """
    scope = current.get()
    inherited = {**scope.inherited, **(snapshot(facts) if scope.recorder is None else scope.recorder.facts(facts))}
    with within(Scope(scope.recorder, scope.operation, scope.session, inherited)):
        yield


def variable(
    value: Any, *, name: str, kind: str = "value", previous: Variable | str | None = None, **attributes: Any
) -> Variable:
    """Record a value that no operation made, such as a message or a prompt.

    Without a trace the variable has no id and holds `value` itself.

    Example:
        >>> with trace():
        ...     lima = variable("Lima", name="home", kind="memory_entry")
        ...     oslo = variable("Oslo", name="home", kind="memory_entry", previous=lima)
        >>> oslo.value, oslo.version
        ('Oslo', 2)
    """
    scope = current.get()
    if scope.recorder is None:
        return Variable("", name, kind, value, attributes=attributes)
    return scope.recorder.make(scope, None, value, name, kind, previous, attributes)


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


def _unique_prefix() -> str:
    """The beginning of ids that no other trace has: 50 bits drawn at random, as letters and digits."""
    return f"{''.join(secrets.choice(_LETTERS) for _ in range(_PREFIX_LENGTH))}-"


_LETTERS, _PREFIX_LENGTH = "0123456789abcdefghjkmnpqrstvwxyz", 10


def _file_of(path: str | Path, prefix: str, clock: Callable[[], float]) -> Path:
    """The file that a path means."""
    file = Path(path)
    if not (str(path).endswith("/") or file.is_dir()):
        return file
    try:
        file.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TraceError(f"{file}: cannot be made ({error.strerror}); give trace() another folder") from None
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(clock()))
    return file / f"{moment}-{prefix.rstrip('-')}.jsonl"
