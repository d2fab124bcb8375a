"""Changing what single operations of a memory system emit while it runs, to inject faults and try repairs.

A system passes what an operation is about to emit, and what the operation was given, to `intervening()`, and continues
with the result. Without an intervention that is the same value. The model is asked anyway, so an operation whose
output is changed costs the same as otherwise: nothing, if its reply is cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from tracing.graph.elements import Variable
from tracing.temporary_values import context_with

if TYPE_CHECKING:
    from tracing.systems.entries import Entry

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Step:
    """One execution of an operation: its name, and its id in the trace (empty if nothing is recorded).

    Example:
        >>> with trace(prefix=""), operation("retrieve") as op:
        ...     Step(op.name, op.id)
        Step(operation='retrieve', id='o1')
    """

    operation: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the memory because of a new fact, decided or carried out.

    Attributes:
        event: ADD, UPDATE, DELETE or NONE.
        target: id of the entry that is updated or deleted; None otherwise.
        text: what is stored on ADD and UPDATE.
    """

    event: str
    target: str | None = None
    text: str = ""


class Intervention:
    """Changes what operations emit; each method gets one kind of output, and by default returns it unchanged.

    A method's first argument identifies the execution, its last is the output, those between are what the operation
    worked on. It must not modify its arguments.
    """

    def extracted(self, step: Step, messages: Sequence[Variable], statements: list[str]) -> list[str]:
        """Statements made of messages: facts, or the lines of a chunk."""
        return self.emitted("extracted", step, messages, output=statements)

    def decided(self, step: Step, fact: str, memories: Sequence[Entry], change: Change) -> Change:
        """What to do about a fact, given the entries shown."""
        return self.emitted("decided", step, fact, memories, output=change)

    def stored(self, step: Step, decision: Change, change: Change) -> Change:
        """What is done about a decision (or, without one, about adding a fact)."""
        return self.emitted("stored", step, decision, output=change)

    def retrieved(self, step: Step, query: Variable, entries: Sequence[Entry], hits: list[Entry]) -> list[Entry]:
        """Entries found for a question, best first, given all that are stored."""
        return self.emitted("retrieved", step, query, entries, output=hits)

    def presented(self, step: Step, query: Variable, lines: list[str]) -> list[str]:
        """Pieces of context as shown to the answer's model."""
        return self.emitted("presented", step, query, output=lines)

    def answered(self, step: Step, query: Variable, context: Sequence[str], reply: str) -> str:
        """The reply to a question, given the pieces of context."""
        return self.emitted("answered", step, query, context, output=reply)

    def emitted(self, method: str, step: Step, *inputs: object, output: T) -> T:
        """Any kind of output, of which the method of this name is told; what the methods above do by default."""
        return output


class _Chain(Intervention):
    """Several interventions; each gets the output of the one before."""

    def __init__(self, parts: Sequence[Intervention]) -> None:
        self._parts = parts

    def emitted(self, method: str, step: Step, *inputs: object, output: T) -> T:
        for part in self._parts:
            output = getattr(part, method)(step, *inputs, output)
        return output


class Heard(Intervention):
    """Changes nothing and records all calls, so that other interventions can be tried on them without another run."""

    def __init__(self) -> None:
        self._calls: list[tuple[str, tuple[object, ...]]] = []

    @property
    def silent(self) -> bool:
        """Whether no call was recorded."""
        return not self._calls

    def tell(self, other: Intervention) -> None:
        """Pass all recorded calls to another intervention, in order; its results are discarded."""
        for method, arguments in self._calls:
            getattr(other, method)(*arguments)

    def emitted(self, method: str, step: Step, *inputs: object, output: T) -> T:
        self._calls.append((method, (step, *inputs, output)))
        return output


_active: ContextVar[tuple[Intervention, ...]] = ContextVar("memtune_interventions", default=())


def intervene(intervention: Intervention) -> AbstractContextManager[None]:
    """Let `intervention` change what is emitted inside; interventions entered further in go first."""
    return context_with(_active, (intervention, *_active.get()))


def intervened() -> bool:
    """Whether there is any intervention in the current context."""
    return bool(_active.get())


def intervening() -> Intervention:
    """The intervention of the current context; a system calls it before it records an output.

    Example:
        >>> query = variable("Where does Mara live?", name="q1", kind="query")
        >>> intervening().answered(Step("answer"), query, ["Mara lives in Oslo."], "Oslo")
        'Oslo'
    """
    return _Chain(_active.get())
