"""Spans, for the tools whose traces are trees of spans (OpenTelemetry, MLflow).

`span_graphs` makes the spans of an execution graph, and the graph of spans. A span or event of ours carries
its own record, so that reading it back loses nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

RECORD = "memtune.record"
"""Attribute of a span or event: the record it was made from, as JSON."""
PLACE = "memtune.place"
"""Attribute beside RECORD: the record's position among its kind in the graph."""
VARIABLE = "memtune.variable"
"""Name of the events that represent variables."""

_LAST_NANOSECOND = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at one moment of a span."""

    name: str
    time: int
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Span:
    """A span, independent of a tool's format.

    Attributes:
        id: unique in its trace; 16 hexadecimal digits in spans of ours.
        parent: id of the span around it, None for a root.
        start: nanoseconds since the epoch.
        end: the same; None if it never ended.
        kind: kind of the operation; "graph" and "session" for the spans around operations.
        ok: True if it succeeded, False if not, None if unknown.
        error: what went wrong.
        attributes: JSON-compatible.
        origin: the tool's own data that an importer keeps, such as the trace's id and the resource.
    """

    id: str
    parent: str | None
    name: str
    start: int
    end: int | None
    kind: str = "function"
    ok: bool | None = None
    error: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    origin: dict[str, Any] = field(default_factory=dict)


def digest(*parts: str, digits: int = 16) -> str:
    """A hexadecimal id that depends only on `parts`."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def trace_id_of(spans: Iterable[Span]) -> str:
    """32 hexadecimal digits that depend only on what the spans of a graph record."""
    return digest(*(span.attributes[RECORD] for span in spans), digits=32)


def nanoseconds(seconds: float) -> int:
    """A time in epoch nanoseconds, clipped to 63 bits; exact to the microsecond."""
    # Clipped first: multiplying a very large number could overflow.
    return min(int(min(max(seconds, 0.0), _LAST_NANOSECOND / 1e9) * 1e6) * 1000, _LAST_NANOSECOND)
