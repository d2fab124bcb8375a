"""Texts that a memory system works with, each with its variable in the trace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tracing.graph.elements import Variable
from tracing.recording.recorder import current_recorder
from tracing.recording.trace_context import variable
from tracing.systems.layouts import Item


@dataclass(frozen=True, slots=True)
class Text:
    """A text to work with, and its variable in the trace.

    Credentials are removed from a variable, since people look at it. So use `text` for requests and memories, and
    `variable` only for the inputs and outputs of operations.

    Example:
        >>> with trace():
        ...     message = noted("My password=tulip7 is new.", name="D1:1", kind="message")
        >>> message.text, message.variable.value
        ('My password=tulip7 is new.', 'My password=[redacted] is new.')
    """

    text: str
    variable: Variable


def noted(text: str, *, name: str, kind: str, **attributes: Any) -> Text:
    """Record a text that no operation made, as `tracing.variable` does.

    Example:
        >>> noted("Mara: I moved to Oslo.", name="D1:1", kind="message").variable.kind
        'message'
    """
    return Text(text, variable(text, name=name, kind=kind, **attributes))


def noted_again(items: Iterable[Item]) -> list[Text]:
    """Record texts as they were recorded when an operation read them.

    Example:
        >>> [text.text for text in noted_again([Item("notes", "note1", "context", "Mara lives in Oslo.")])]
        ['Mara lives in Oslo.']
    """
    return [noted(item.text, name=item.name, kind=item.kind) for item in items]


def recalled(ids: str | Iterable[str]) -> list[Variable]:
    """The variables with these ids, or with this one, such as those of stored entries; none if nothing is traced.

    A built memory keeps the ids, so that what an answer reads is linked to what the build wrote. Where that is in
    another trace the variable is a reference, which is linked once both are in one graph. An empty id is of an entry
    that was written while nothing was traced, and is passed over.

    Example:
        >>> with trace():
        ...     entry = variable("Mara lives in Oslo.", name="note1", kind="memory_entry")
        ...     [stored.value for stored in recalled([entry.id])]
        ['Mara lives in Oslo.']
    """
    recorder = current_recorder()
    listed = (ids,) if isinstance(ids, str) else ids
    variables = map(recorder.referred, listed) if recorder is not None else ()
    return [variable for variable in variables if variable is not None]


def variables_of(texts: Sequence[Text]) -> list[Variable]:
    """The variables of texts, in order.

    Example:
        >>> [fact.name for fact in variables_of([noted("Mara lives in Oslo.", name="fact1", kind="fact")])]
        ['fact1']
    """
    return [text.variable for text in texts]
