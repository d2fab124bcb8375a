"""An execution graph as smartcomment's JSON: what was read from there as it stood, the rest under its rules.

smartcomment wants every node, edge, operation and session to have certain keys, and edges between nodes that are
there. It has no place for most of what memtune knows, so an element of ours carries its record in
`metadata["memtune"]`, and is read back from that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from operator import itemgetter
from typing import Any

from tracing.elements import Operation, Session, Variable
from tracing.errors import TraceError
from tracing.graph import ExecutionGraph
from tracing.interchange.documents import mapping, require_room, text_or_none
from tracing.interchange.literals import decoded
from tracing.interchange.smartcomment_format import (
    DELETED,
    EDGE_PLACES,
    EDGES,
    KEY,
    NATIVE,
    NO_NODE,
    NO_OPERATION,
    NO_SESSION,
    ORDER,
    SECTIONS,
    SOURCE,
    TARGET,
    category_of,
    class_of,
    full_node_id,
    kind_of,
)
from tracing.lines import record_of

_Raw = dict[str, Any]
_HERE = {"filename": "memtune", "lineno": 0}
_NOBODY = {"user_id": None, "project_id": None}


MOST_EDGES = 1_000_000
"""Edges a file may have, about 500 bytes each: every input of an operation has one to each of its outputs."""


def document_of(graph: ExecutionGraph) -> dict[str, Any]:
    """The graph as a smartcomment document; one that was read from such a document gives that again.

    Raises:
        TraceError: it would have more than `MOST_EDGES` edges, or its values are too long for one document.
    """
    document = outline_of(graph)
    data = {key: list(rows) if key in SECTIONS else rows for key, rows in document["data"].items()}
    return {key: data if key == "data" else value for key, value in document.items()}


def outline_of(graph: ExecutionGraph) -> dict[str, Any]:
    """As `document_of`, with iterators in place of the lists, so that it need not be held at once."""
    require_room(graph)
    return _Writing(graph).document()


class _Writing:
    """One graph on its way into a document."""

    def __init__(self, graph: ExecutionGraph) -> None:
        self._graph = graph
        self._header = mapping(graph.attributes.get(KEY))
        self._graph_id = text_or_none(self._header.get("graph_id")) or "graph-memtune"
        self._names = _names(graph)
        self._full_ids = {
            vid: full_node_id(owner, name, graph.variables[vid].version) for vid, (owner, name) in self._names.items()
        }
        self._begun = min((one.started for one in graph.operations.values()), default=0.0)

    def document(self) -> dict[str, Any]:
        graph = self._graph
        own = [one for one in graph.operations.values() if not _is_link(one)]
        rows: dict[str, tuple[object, Iterable[_Raw]]] = {
            "nodes": (graph.variables, map(self._node, self._ordered())),
            "edges": (self._count_edges(), self._edges()),
            "operations": (own, map(self._operation, own)),
            "sessions": (graph.sessions, map(self._session, graph.sessions.values())),
        }
        sections = {key: iter(made) for key, (_, made) in rows.items()}
        if not self._header:
            head: _Raw = {"graph_id": self._graph_id, **_NOBODY, "storage_path": None, "strict": False}
            head |= {"driver_type": "in_memory", "created_at": _local(self._begun)}
            return {**head, "metadata": {NATIVE: {"graph": graph.attributes}}, "data": sections}
        known = mapping(self._header.get("data"))
        data = {key: sections[key] if key in SECTIONS else value for key, value in known.items()}
        data |= {key: made for key, made in sections.items() if rows[key][0] or key in known}
        document = {key: data if key == "data" else value for key, value in self._header.items()}
        facts = {key: value for key, value in graph.attributes.items() if key not in (KEY, ORDER)}
        if facts:
            document["metadata"] = {**mapping(document.get("metadata")), NATIVE: {"facts": facts}}
        return document

    def _ordered(self) -> Iterable[Variable]:
        order = self._graph.attributes.get(ORDER)
        if not isinstance(order, list):
            return self._graph.variables.values()
        places = {vid: place for place, vid in enumerate(order)}
        return sorted(self._graph.variables.values(), key=lambda one: places.get(one.id, len(places)))

    # --- nodes -----------------------------------------------------------------------------------------------------

    def _node(self, variable: Variable) -> _Raw:
        owner, name = self._names[variable.id]
        full = self._full_ids[variable.id]
        raw = variable.attributes.get(KEY)
        if isinstance(raw, dict):
            return self._whole(raw, variable.session, _changes(variable, raw, owner, name))
        value = repr(variable.value)
        facts = record_of(variable)
        del facts["type"]
        if repr(decoded(value)) == value:
            del facts["value"]
        name_only = f"{owner}:{name}" if owner else name
        return {
            "created_at": _local(self._time_of(variable)),
            **_HERE,
            "name": name,
            "version": variable.version,
            "value": value,
            "comment": None,
            "category": category_of(variable.kind),
            "graph_id": self._graph_id,
            "class_name": owner,
            **_NOBODY,
            "session_id": variable.session or NO_SESSION,
            "metadata": {**variable.attributes, NATIVE: facts},
            "trigger_point": "memtune:0",
            "full_name": name_only,
            "node_id": f"{name}@{variable.version}",
            "full_node_id": full,
        }

    def _time_of(self, variable: Variable) -> float:
        for operation in (*self._graph.producers(variable.id), *self._graph.consumers(variable.id)):
            return operation.started
        return self._begun

    # --- edges -----------------------------------------------------------------------------------------------------

    def _count_edges(self) -> int:
        """How many edges there will be.

        Raises:
            TraceError: more than a file may have.
        """
        counts = {one.id: len(self._again(one)) + self._pairs(one) for one in self._graph.operations.values()}
        total = sum(counts.values())
        if total > MOST_EDGES:
            widest = self._graph.operations[max(counts, key=counts.__getitem__)]
            raise TraceError(
                f"a smartcomment file has an edge from each input of an operation to each output: here {total:,}, most "
                f"of them of {widest.id} ({widest.name}) with {len(widest.inputs):,} inputs and "
                f"{len(widest.outputs):,} outputs, and it may have {MOST_EDGES:,}; export the trace to otlp or mlflow, "
                "or a part of it: see `memtune trace slice --help`"
            )
        return total

    def _edges(self) -> Iterator[_Raw]:
        """All edges; those from a file that does not list them by operation are where they were there."""
        operations = self._graph.operations.values()
        if not any(EDGE_PLACES in one.attributes for one in operations):
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
        """The edges that were read and still have both ends, with their places where these are known."""
        rows, places = operation.attributes.get(EDGES), operation.attributes.get(EDGE_PLACES)
        return [
            (places[number] if isinstance(places, list) and number < len(places) else None, raw)
            for number, raw in enumerate(rows if isinstance(rows, list) else ())
            if all(end == NO_NODE or end in self._graph.variables for end in _ends(raw))
        ]

    def _sides(self, operation: Operation) -> tuple[dict[str, bool], dict[str, bool]]:
        """Inputs and outputs, each with whether an edge that was read has it as an end."""
        if operation.id == NO_OPERATION:
            return {}, {}  # its edges would be nobody's; its record tells what they would
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
        if raw.get("op_id") != operation.id and not _is_link(operation):
            changes["op_id"] = operation.id
        return self._whole(raw, operation.session, changes)

    def _new_edges(self, operation: Operation) -> Iterator[_Raw]:
        """From each input to each output, where no edge that was read says as much."""
        inputs, outputs = self._sides(operation)
        created_at = _local(operation.started)
        for source, known in inputs.items():
            for target, known_too in outputs.items():
                if not (known and known_too):
                    yield {
                        "created_at": created_at,
                        **_HERE,
                        "edge_id": f"edge-{operation.id}-{source}-{target}",
                        "graph_id": self._graph_id,
                        **_NOBODY,
                        "session_id": operation.session or NO_SESSION,
                        "op_id": NO_OPERATION if _is_link(operation) else operation.id,
                        "category": "operation",
                        SOURCE: self._full_ids[source],
                        TARGET: self._full_ids[target],
                        "comment": None,
                        "metadata": {},
                        "trigger_point": "memtune:0",
                    }

    # --- operations and sessions -----------------------------------------------------------------------------------

    def _operation(self, operation: Operation) -> _Raw:
        raw = operation.attributes.get(KEY)
        if isinstance(raw, dict):
            given = text_or_none(raw.get("op_id"))
            return self._whole(
                raw, operation.session, {"op_id": operation.id} if given not in (None, operation.id) else {}
            )
        return {
            "created_at": _local(operation.started),
            **_HERE,
            "op_id": operation.id,
            "op_name": operation.name,
            "comment": None,
            "category": "operation" if operation.kind == "function" else operation.kind,
            "graph_id": self._graph_id,
            **_NOBODY,
            "session_id": operation.session or NO_SESSION,
            "metadata": {} if EDGES in operation.attributes else {NATIVE: _facts(operation)},
            "trigger_point": "memtune:0",
        }

    def _session(self, session: Session) -> _Raw:
        raw = session.attributes.get(KEY)
        if isinstance(raw, dict):
            given = text_or_none(raw.get("session_id"))
            return self._whole(raw, None, {"session_id": session.id} if given not in (None, session.id) else {})
        return {
            "created_at": _local(self._begun),
            **_HERE,
            "session_id": session.id,
            "session_name": session.name,
            "graph_id": self._graph_id,
            **_NOBODY,
            "comment": None,
            "category": "session",
            "metadata": {NATIVE: _facts(session)},
            "trigger_point": "memtune:0",
        }

    def _whole(self, raw: _Raw, session: str | None, changes: Mapping[str, Any]) -> _Raw:
        """An object as it was read, with what has changed since and what it lacked to be loadable."""
        if not changes and raw.keys() >= _REQUIRED:
            return raw
        return {**raw, **changes, **{key: value for key, value in self._required(session).items() if key not in raw}}

    def _required(self, session: str | None) -> _Raw:
        return {"graph_id": self._graph_id, "session_id": session or NO_SESSION, **_HERE}


def _ends(edge: Any) -> tuple[Any, Any]:
    return mapping(edge).get(SOURCE), mapping(edge).get(TARGET)


_REQUIRED = frozenset(("graph_id", "session_id", "filename", "lineno"))


def _changes(variable: Variable, raw: _Raw, owner: str | None, name: str) -> _Raw:
    """The keys of a node that no longer say what its variable says."""
    changes: _Raw = {}
    if raw.get("class_name") != owner or raw.get("name") != name or raw.get("version", 1) != variable.version:
        full = full_node_id(owner, name, variable.version)
        changes = {"class_name": owner, "name": name, "version": variable.version}
        derived = {"full_name": full.rpartition("@")[0], "node_id": f"{name}@{variable.version}", "full_node_id": full}
        changes |= {key: value for key, value in derived.items() if key in raw}
    read = raw.get("value")
    if (decoded(read) if isinstance(read, str) else read) != variable.value:
        changes["value"] = repr(variable.value)
    kind = kind_of(raw.get("category"), owner)
    if variable.kind not in (kind, DELETED):
        changes["category"] = category_of(variable.kind)
    return changes


def _names(graph: ExecutionGraph) -> dict[str, tuple[str | None, str]]:
    """Class and name for each variable, so that no two of a version have the same; versions share them."""
    named: dict[str, tuple[str | None, str]] = {}
    taken: dict[tuple[str | None, str], str] = {}  # which lineage a class and name belong to
    lineages: dict[str, str] = {}
    used: set[tuple[str | None, str, int]] = set()
    for vid, variable in graph.variables.items():
        raw = variable.attributes.get(KEY)
        before = variable.previous if variable.previous in named else None
        if isinstance(raw, dict):
            owner, name = text_or_none(raw.get("class_name")), variable.name
            lineage = f"{owner}:{name}"
        elif before is not None and before in lineages:
            (owner, name), lineage = named[before], lineages[before]
        else:
            owner, lineage = class_of(variable.kind), vid
            name = variable.name if any(sign.isalnum() for sign in variable.name) else f"{variable.name}{vid}"
        if taken.get((owner, name), lineage) != lineage or (owner, name, variable.version) in used:
            name, lineage = f"{name}#{vid}", vid
        while (owner, name, variable.version) in used:
            name += "#"
        taken[owner, name] = lineage
        used.add((owner, name, variable.version))
        named[vid], lineages[vid] = (owner, name), lineage
    return named


def _facts(item: Operation | Session) -> _Raw:
    record = record_of(item)
    del record["type"]
    return record


def _is_link(operation: Operation) -> bool:
    """Whether it was read from edges that belong to no operation; one of another tool may have any id."""
    return EDGES in operation.attributes and operation.id.startswith(NO_OPERATION)


def _local(seconds: float) -> str:
    """A local time with milliseconds, as smartcomment writes it."""
    try:
        return datetime.fromtimestamp(seconds).isoformat(sep=" ", timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0).isoformat(sep=" ", timespec="milliseconds")
