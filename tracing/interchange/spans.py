"""Spans, as the tools that speak of traces as trees of spans have them (OpenTelemetry, MLflow).

`span_writing` makes the spans of an execution graph, `span_reading` the graph of spans. A span or event of ours carries
its own record, so that the way back loses nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

RECORD = "memtune.record"
"""Attribute of a span or event: the JSON of what it came from."""
PLACE = "memtune.place"
"""Attribute beside RECORD: where that stood among its kind in the graph."""
VARIABLE = "memtune.variable"
"""Name of the event that a variable is."""

_LAST_NANOSECOND = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at one moment of a span."""

    name: str
    time: int
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Span:
    """A span, apart from how a tool writes it down.

    Attributes:
        id: unique in its trace; 16 hexadecimal digits in spans of ours.
        parent: id of the span around it, None for a root.
        start: nanoseconds since the epoch.
        end: likewise; None where it never ended.
        kind: kind of the operation; "graph" and "session" for the spans around operations.
        ok: True if it went well, False if not, None where nobody said.
        error: what went wrong.
        attributes: JSON-compatible.
        origin: what an importer keeps of the tool's own, such as the trace's id and the resource.
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
    """A hexadecimal id that depends on nothing but what it is for."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:digits]


def trace_id_of(spans: Iterable[Span]) -> str:
    """32 hexadecimal digits that depend on nothing but what the spans of a graph record."""
    return digest(*(span.attributes[RECORD] for span in spans), digits=32)


def nanoseconds(seconds: float) -> int:
    """A moment in epoch nanoseconds, as far as 63 bits hold it; exact to the microsecond."""
    # Clipped first: what is multiplied may be the largest of numbers.
    return min(int(min(max(seconds, 0.0), _LAST_NANOSECOND / 1e9) * 1e6) * 1000, _LAST_NANOSECOND)
