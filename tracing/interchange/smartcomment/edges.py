"""The edges of a smartcomment document, read by operation, and written: from each input to each output."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from typing import Any

from msgspec import UNSET

from tracing.errors import TraceError
from tracing.graph.elements import Operation
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.documents import mapping
from tracing.interchange.smartcomment.document_rows import rows_in, sound_row
from tracing.interchange.smartcomment.file_format import (
    EDGE_PLACES,
    EDGES,
    HERE,
    NO_NODE,
    NO_OPERATION,
    NO_SESSION,
    NOBODY,
    SOURCE,
    TARGET,
    is_link,
    local_time,
)

Edge = tuple[int, str, str]
"""An edge: its position in the file, its source and its target."""


def grouped(edges: list[Any], trouble: Callable[[str, str], None]) -> tuple[dict[str, list[Edge]], list[list[Edge]]]:
    """The edges by operation, and each of those without one; `trouble` is told what is no edge, and where."""
    groups: dict[str, list[Edge]] = {}
    loose: list[list[Edge]] = []
    sound = sound_row("edges")
    for place, row in enumerate(rows_in("edges", edges)):
        if type(row) is not sound and not _is_edge(row):
            trouble(
                "is not an object with op_id, source_full_node_id and target_full_node_id and was left out",
                f"data.edges[{place}]",
            )
            continue
        oid, edge = row.op_id, (place, row.source_full_node_id, row.target_full_node_id)
        if oid in groups:
            groups[oid].append(edge)
        elif not oid or oid == NO_OPERATION:
            loose.append([edge])
        else:
            groups[oid] = [edge]
    return groups, loose


def _is_edge(row: Any) -> bool:
    """Whether an odd row has what an edge needs; its ends may be any values that a dict can have as keys."""
    if row is None or UNSET in (row.op_id, row.source_full_node_id, row.target_full_node_id):
        return False
    ends = (row.source_full_node_id, row.target_full_node_id)
    return isinstance(row.op_id, str | None) and not any(isinstance(end, list | dict) for end in ends)


_Raw = dict[str, Any]
MOST_EDGES = 1_000_000
"""Most edges of a file, about 500 bytes each: every input of an operation has one to each of its outputs."""


class Edges:
    """The edges of one graph; `full_ids` has the id in the document of each variable.

    `whole` completes an edge that was read, given the session of its operation and later changes.
    """

    def __init__(
        self,
        graph: ExecutionGraph,
        graph_id: str,
        full_ids: Mapping[str, str],
        whole: Callable[[_Raw, str | None, Mapping[str, Any]], _Raw],
    ) -> None:
        self._graph, self._graph_id, self._full_ids, self._whole = graph, graph_id, full_ids, whole

    def count(self) -> int:
        """How many edges there will be. Raises TraceError: more than a file may have."""
        counts = {
            operation.id: len(self._again(operation)) + self._pairs(operation)
            for operation in self._graph.operations.values()
        }
        total = sum(counts.values())
        if total > MOST_EDGES:
            widest = self._graph.operations[max(counts, key=counts.__getitem__)]
            raise TraceError(
                f"a smartcomment file has an edge from each input of an operation to each output: here {total:,}, most "
                f"of them in {widest.id} ({widest.name}) with {len(widest.inputs):,} inputs and "
                f"{len(widest.outputs):,} outputs; the limit is {MOST_EDGES:,}; export the trace to otlp or mlflow, "
                "or a part of it: see `memtune trace slice --help`"
            )
        return total

    def rows(self) -> Iterator[_Raw]:
        """All edges; if a file does not list them by operation, its edges keep their positions."""
        operations = self._graph.operations.values()
        if not any(EDGE_PLACES in operation.attributes for operation in operations):
            for operation in operations:
                yield from (self._edge_again(raw, operation) for _, raw in self._again(operation))
                yield from self._new_edges(operation)
            return
        placed: list[tuple[int, _Raw]] = []
        last = -1
        for operation in operations:
            for place, raw in self._again(operation):
                last = last if place is None else place
                placed.append((last, self._edge_again(raw, operation)))
            placed += ((last, edge) for edge in self._new_edges(operation))
        yield from (edge for _, edge in sorted(placed, key=itemgetter(0)))

    def _again(self, operation: Operation) -> list[tuple[int | None, _Raw]]:
        """The edges that were read and still have both ends, with their positions if known."""
        rows, places = operation.attributes.get(EDGES), operation.attributes.get(EDGE_PLACES)
        return [
            (places[number] if isinstance(places, list) and number < len(places) else None, raw)
            for number, raw in enumerate(rows if isinstance(rows, list) else ())
            if all(end == NO_NODE or end in self._graph.variables for end in _ends(raw))
        ]

    def _sides(self, operation: Operation) -> tuple[dict[str, bool], dict[str, bool]]:
        """Inputs and outputs, each with whether an edge that was read has it as an end."""
        if operation.id == NO_OPERATION:
            return {}, {}  # its edges would belong to no operation; its record has the links
        covered = {str(end) for _, raw in self._again(operation) for end in _ends(raw)}
        return (
            {vid: vid in covered for vid in operation.input_ids()},
            {vid: vid in covered for vid in operation.output_ids()},
        )

    def _pairs(self, operation: Operation) -> int:
        """How many edges `_new_edges` gives."""
        inputs, outputs = self._sides(operation)
        return len(inputs) * len(outputs) - sum(inputs.values()) * sum(outputs.values())

    def _edge_again(self, raw: _Raw, operation: Operation) -> _Raw:
        changes = {}
        for end in (SOURCE, TARGET):
            full = self._full_ids.get(raw[end])
            if full is not None and full != raw[end]:
                changes[end] = full
        if raw.get("op_id") != operation.id and not is_link(operation):
            changes["op_id"] = operation.id
        return self._whole(raw, operation.session, changes)

    def _new_edges(self, operation: Operation) -> Iterator[_Raw]:
        """Edges from each input to each output, unless one was read."""
        inputs, outputs = self._sides(operation)
        created_at = local_time(operation.started)
        for source, earlier in inputs.items():
            for target, known_too in outputs.items():
                if not (earlier and known_too):
                    yield {
                        "created_at": created_at,
                        **HERE,
                        "edge_id": f"edge-{operation.id}-{source}-{target}",
                        "graph_id": self._graph_id,
                        **NOBODY,
                        "session_id": operation.session or NO_SESSION,
                        "op_id": NO_OPERATION if is_link(operation) else operation.id,
                        "category": "operation",
                        SOURCE: self._full_ids[source],
                        TARGET: self._full_ids[target],
                        "comment": None,
                        "metadata": {},
                        "trigger_point": "memtune:0",
                    }


def _ends(edge: Any) -> tuple[Any, Any]:
    return mapping(edge).get(SOURCE), mapping(edge).get(TARGET)
