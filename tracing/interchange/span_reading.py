"""The execution graph of spans.

A span of ours is restored from its record; any other becomes an operation (`tracing.interchange.foreign_spans`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

from tracing.errors import TraceError
from tracing.files.depth import DEEPEST_LINE, loads
from tracing.files.lines import GRAPH, Record
from tracing.files.records import RecordReader
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.documents import FreeIds, Troubles
from tracing.interchange.foreign_spans import operation_of
from tracing.interchange.spans import PLACE, RECORD, VARIABLE, Span, digest


def graph_of_spans(spans: Iterable[Span], troubles: Troubles) -> ExecutionGraph:
    """The graph that spans describe; those that memtune did not write become operations.

    Args:
        spans: of one or more traces, in any order.
        troubles: collects what was repaired or left out.
    """
    records: dict[str, list[tuple[int, int, Record, Span]]] = {}
    foreign: list[Span] = []
    number = count()
    for span in spans:
        own = _record(span.attributes, troubles, span)
        if own is None:
            foreign.append(span)
        for facts in (
            own,
            *(_record(event.attributes, troubles, span) for event in span.events if event.name == VARIABLE),
        ):
            if facts is not None:
                place = facts.pop(PLACE)
                records.setdefault(str(facts.get("type")), []).append((place, next(number), facts, span))
    graph = ExecutionGraph()
    add = RecordReader(graph).add
    for kind in (GRAPH, "session", "variable", "operation"):
        for _, _, record, span in sorted(records.pop(kind, ()), key=lambda entry: entry[:2]):
            try:
                add(record)
            except TraceError as error:
                troubles.add(f"has a record that cannot be taken as memtune wrote it: {error}", f"span {span.id!r}")
    for kind, others in records.items():
        troubles.add(f"has a record of the unknown type {kind!r}", f"span {others[0][3].id!r}")
    operation_ids: dict[str, str] = {}
    ids = FreeIds()
    for span in sorted(foreign, key=lambda candidate: candidate.start):
        operation_of(span, graph, operation_ids, ids, troubles)
    _name_parents(graph, foreign, operation_ids)
    return graph


def _record(attributes: Mapping[str, Any], troubles: Troubles, span: Span) -> Record | None:
    text = attributes.get(RECORD)
    if text is None:
        return None
    try:
        record = text if isinstance(text, dict) else loads(text, DEEPEST_LINE)  # a store of MLflow parses it
    except (TypeError, ValueError, AttributeError):
        record = None
    if not isinstance(record, dict):
        troubles.add(f"has an attribute {RECORD} that is not a JSON object", f"span {span.id!r}")
        return None
    place = attributes.get(PLACE)
    return {**record, PLACE: place if isinstance(place, int) else 0}


def _name_parents(graph: ExecutionGraph, foreign: Iterable[Span], operation_ids: Mapping[str, str]) -> None:
    """Set the parents of operations, now that all operations have ids."""
    own = {digest("operation", oid): oid for oid in graph.operations}
    for span in foreign:
        operation = graph.operations[operation_ids[f"{span.origin.get('trace_id')}/{span.id}"]]
        around = operation_ids.get(f"{span.origin.get('trace_id')}/{span.parent}") or own.get(span.parent or "")
        operation.parent = around if around != operation.id else None
