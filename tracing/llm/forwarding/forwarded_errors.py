"""An error of one process raised in another: its class and its message."""

from __future__ import annotations

from tracing import errors
from tracing.errors import MemtuneError
from tracing.llm.threads import GivenUp


def written(error: MemtuneError | GivenUp) -> list[str]:
    """An error as JSON: the name of its class, and its message."""
    # A class of the user's own is unknown to the other process; the first of ours that it derives from is known.
    kind = next(base for base in type(error).__mro__ if base is GivenUp or base.__module__ == errors.__name__)
    return [kind.__name__, str(error)]


def read(fields: list[str]) -> MemtuneError | GivenUp:
    """The error that `written` wrote."""
    name, message = fields
    if name == GivenUp.__name__:
        return GivenUp(message)
    kind: type[MemtuneError] = getattr(errors, name)
    return kind(message)
