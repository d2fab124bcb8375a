"""Which operations and variables a query is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tracing.graph.elements import Operation, Session


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions on operations, all of which must hold; None asks nothing.

    Attributes:
        name: the operation's name.
        kind: its kind.
        session: name or id of the session it ran in.
        since, until: epoch seconds; it ran at some moment from `since` to `until`, both included. An operation
            that is still open runs on.
        where: anything else.

    Example:
        >>> Filter(kind="llm").admits(Operation("o1", "answer", kind="llm"), sessions={})
        True
    """

    name: str | None = None
    kind: str | None = None
    session: str | None = None
    since: float | None = None
    until: float | None = None
    where: Callable[[Operation], bool] | None = None

    def admits(self, operation: Operation, sessions: Mapping[str, Session]) -> bool:
        """Whether the operation meets the conditions; `sessions` are those of its graph."""
        return (
            (self.name is None or operation.name == self.name)
            and (self.kind is None or operation.kind == self.kind)
            and (self.session is None or in_session(operation.session, self.session, sessions))
            and (self.since is None or operation.ended is None or operation.ended >= self.since)
            and (self.until is None or operation.started <= self.until)
            and (self.where is None or self.where(operation))
        )


def in_session(sid: str | None, name: str, sessions: Mapping[str, Session]) -> bool:
    """Whether the session `sid` is the wanted one, by its id or its name."""
    return sid is not None and (sid == name or (sid in sessions and sessions[sid].name == name))
