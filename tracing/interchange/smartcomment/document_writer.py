"""An execution graph as smartcomment's JSON: imported elements as they were read, others by its rules.

smartcomment requires certain keys of every node, edge, operation and session, and edges between existing nodes. It has
no place for most of what memtune knows, so an element of ours carries its record in `metadata["memtune"]`, and is read
back from that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tracing.files.trace_lines import record_of
from tracing.graph.elements import Operation, Session, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.documents import mapping, require_room, text_or_none
from tracing.interchange.literals import decoded
from tracing.interchange.smartcomment.edges import Edges
from tracing.interchange.smartcomment.file_format import (
    DELETED,
    EDGES,
    HERE,
    KEY,
    NATIVE,
    NO_SESSION,
    NOBODY,
    ORDER,
    SECTIONS,
    category_of,
    class_of,
    full_node_id,
    is_link,
    kind_of,
    local_time,
)

_Raw = dict[str, Any]


def document_of(graph: ExecutionGraph) -> dict[str, Any]:
    """The graph as a smartcomment document; a graph read from such a document gives the same document.

    Raises:
        TraceError: it would have more than `MOST_EDGES` edges, or its values are too long for one document.
    """
    document = outline_of(graph)
    data = {key: list(rows) if key in SECTIONS else rows for key, rows in document["data"].items()}
    return {key: data if key == "data" else value for key, value in document.items()}


def outline_of(graph: ExecutionGraph) -> dict[str, Any]:
    """As `document_of`, with iterators instead of the lists, so that it need not be in memory at once."""
    require_room(graph)
    return _Writing(graph).document()


class _Writing:
    """Writes one graph as a document."""

    def __init__(self, graph: ExecutionGraph) -> None:
        self._graph = graph
        self._header = mapping(graph.attributes.get(KEY))
        self._graph_id = text_or_none(self._header.get("graph_id")) or "graph-memtune"
        self._names = _names(graph)
        self._full_ids = {
            vid: full_node_id(owner, name, graph.variables[vid].version) for vid, (owner, name) in self._names.items()
        }
        self._begun = min((operation.started for operation in graph.operations.values()), default=0.0)

    def document(self) -> dict[str, Any]:
        graph = self._graph
        edges = Edges(graph, self._graph_id, self._full_ids, self._whole)
        own = [operation for operation in graph.operations.values() if not is_link(operation)]
        rows: dict[str, tuple[object, Iterable[_Raw]]] = {
            "nodes": (graph.variables, map(self._node, self._ordered())),
            "edges": (edges.count(), edges.rows()),
            "operations": (own, map(self._operation, own)),
            "sessions": (graph.sessions, map(self._session, graph.sessions.values())),
        }
        sections = {key: iter(row_iterable) for key, (_, row_iterable) in rows.items()}
        if not self._header:
            head: _Raw = {"graph_id": self._graph_id, **NOBODY, "storage_path": None, "strict": False}
            head |= {"driver_type": "in_memory", "created_at": local_time(self._begun)}
            return {**head, "metadata": {NATIVE: {"graph": graph.attributes}}, "data": sections}
        read_data = mapping(self._header.get("data"))
        data = {key: sections[key] if key in SECTIONS else value for key, value in read_data.items()}
        data |= {key: section for key, section in sections.items() if rows[key][0] or key in read_data}
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
        return sorted(self._graph.variables.values(), key=lambda variable: places.get(variable.id, len(places)))

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
            "created_at": local_time(self._time_of(variable)),
            **HERE,
            "name": name,
            "version": variable.version,
            "value": value,
            "comment": None,
            "category": category_of(variable.kind),
            "graph_id": self._graph_id,
            "class_name": owner,
            **NOBODY,
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

    # --- operations and sessions -----------------------------------------------------------------------------------

    def _operation(self, operation: Operation) -> _Raw:
        raw = operation.attributes.get(KEY)
        if isinstance(raw, dict):
            return self._whole(raw, operation.session, _renamed(raw, "op_id", operation.id))
        return {
            "created_at": local_time(operation.started),
            **HERE,
            "op_id": operation.id,
            "op_name": operation.name,
            "comment": None,
            "category": "operation" if operation.kind == "function" else operation.kind,
            "graph_id": self._graph_id,
            **NOBODY,
            "session_id": operation.session or NO_SESSION,
            "metadata": {} if EDGES in operation.attributes else {NATIVE: _facts(operation)},
            "trigger_point": "memtune:0",
        }

    def _session(self, session: Session) -> _Raw:
        raw = session.attributes.get(KEY)
        if isinstance(raw, dict):
            return self._whole(raw, None, _renamed(raw, "session_id", session.id))
        return {
            "created_at": local_time(self._begun),
            **HERE,
            "session_id": session.id,
            "session_name": session.name,
            "graph_id": self._graph_id,
            **NOBODY,
            "comment": None,
            "category": "session",
            "metadata": {NATIVE: _facts(session)},
            "trigger_point": "memtune:0",
        }

    def _whole(self, raw: _Raw, session: str | None, changes: Mapping[str, Any]) -> _Raw:
        """An object as it was read, with later changes and the required keys that it lacked."""
        if not changes and raw.keys() >= _REQUIRED:
            return raw
        return {**raw, **changes, **{key: value for key, value in self._required(session).items() if key not in raw}}

    def _required(self, session: str | None) -> _Raw:
        return {"graph_id": self._graph_id, "session_id": session or NO_SESSION, **HERE}


_REQUIRED = frozenset(("graph_id", "session_id", "filename", "lineno"))


def _renamed(raw: _Raw, key: str, element_id: str) -> _Raw:
    """The id of an element, where another stands under the key."""
    return {key: element_id} if text_or_none(raw.get(key)) not in (None, element_id) else {}


def _changes(variable: Variable, raw: _Raw, owner: str | None, name: str) -> _Raw:
    """The keys of a node that differ from its variable, with new values."""
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
    """Class and name for each variable, unique for each version; the versions of a variable share them."""
    named: dict[str, tuple[str | None, str]] = {}
    owners: dict[tuple[str | None, str], str] = {}  # which lineage a class and name belong to
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
        if owners.get((owner, name), lineage) != lineage or (owner, name, variable.version) in used:
            name, lineage = f"{name}#{vid}", vid
        while (owner, name, variable.version) in used:
            name += "#"
        owners[owner, name] = lineage
        used.add((owner, name, variable.version))
        named[vid], lineages[vid] = (owner, name), lineage
    return named


def _facts(item: Operation | Session) -> _Raw:
    record = record_of(item)
    del record["type"]
    return record
