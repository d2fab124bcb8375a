"""Turns the rows of a smartcomment document into the elements of a graph, and repairs what is damaged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from tracing.errors import TraceError
from tracing.files.records import RecordReader
from tracing.graph.elements import Link, Operation, Session, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.documents import (
    FreeIds,
    Troubles,
    mapping,
    text_or_none,
)
from tracing.interchange.literals import decoded
from tracing.interchange.smartcomment.document_rows import AsRead, nodes_in, rows_in, sound_row
from tracing.interchange.smartcomment.edges import Edge, grouped
from tracing.interchange.smartcomment.file_format import (
    DELETED,
    KEY,
    NATIVE,
    NO_NODE,
    NO_OPERATION,
    NO_SESSION,
    ORDER,
    full_node_id,
    kind_of,
)


class RowReader:
    """Reads one document into a graph."""

    def __init__(self, graph: ExecutionGraph, troubles: Troubles) -> None:
        self._graph = graph
        self._add_native = RecordReader(graph).add
        self._trouble = troubles.add
        self._renamed: dict[str, str] = {}  # full_node_id → id, of variables with another id
        self._minutes: dict[str, float] = {}
        self._ids = FreeIds()
        self._sources: dict[str, dict[str, None]] | None = None  # of each target of an edge, once they are needed

    # --- sessions --------------------------------------------------------------------------------------------------

    def sessions(self, rows: list[Any]) -> None:
        for place, raw in enumerate(rows):
            path = f"data.sessions[{place}]"
            if not isinstance(raw, dict):
                self._trouble("is not an object and was left out", path)
            elif not self._is_native("session", raw.get("metadata"), path):
                sid = self._free(
                    self._graph.sessions, self._id(raw.get("session_id"), "session_id", f"session-{place}", path), path
                )
                self._graph.add_session(Session(sid, text_or_none(raw.get("session_name")) or sid, {KEY: raw}))

    def _session(self, sid: Any, path: str) -> str | None:
        if isinstance(sid, str) and sid in self._graph.sessions:
            return sid
        if sid is not None and sid != NO_SESSION:
            self._trouble("names no session of the file and was ignored", f"{path}.session_id")
        return None

    # --- variables -------------------------------------------------------------------------------------------------

    def nodes(self, rows: list[Any], edges: list[Any]) -> None:
        early: list[Variable] = []
        read: list[AsRead] = []
        self._graph.admit_variables(self._variables(rows, edges, early, read))
        if early:
            self._add_early(early)
            listed = {id(variable.attributes): vid for vid, variable in self._graph.variables.items()}
            self._graph.attributes[ORDER] = [listed[id(row)] for row in read]

    def _variables(
        self, rows: list[Any], edges: list[Any], early: list[Variable], read: list[AsRead]
    ) -> Iterator[Variable]:
        """The variables to add now; `early` gets those that wait for others, and `read` the rows that all came from."""
        variables, sessions = self._graph.variables, self._graph.sessions
        kinds: dict[tuple[str | None, str | None], str] = {}
        sound = sound_row("nodes")
        for place, (raw, (row, value)) in enumerate(zip(rows, nodes_in(rows), strict=True)):
            odd = type(row) is not sound
            if odd and not (row is not None and text_or_none(row.name)):
                self._trouble("is not an object with a name and was left out", f"data.nodes[{place}]")
                continue
            if row.metadata and self._is_native_node(row, place):
                continue
            if odd:
                value = self._repaired(row, f"data.nodes[{place}]")
            name, version, owner, sid = row.name, row.version, row.class_name, row.session_id
            described = row.category, owner
            if described in kinds:
                kind = kinds[described]
            else:
                kind = kinds[described] = kind_of(*described)
            vid = full_node_id(owner, name, version)
            if vid in variables:
                vid = self._free(variables, vid, f"data.nodes[{place}]")
            if sid is not None and sid not in sessions:
                sid = self._session(sid, f"data.nodes[{place}]")
            previous = None
            attributes = AsRead(raw)
            read.append(attributes)
            if kind == DELETED or DELETED in name:
                kind, previous = DELETED, self._deleted(vid, edges)
            elif version > 1:
                previous = full_node_id(owner, name, version - 1)
                if previous not in variables:
                    early.append(Variable(vid, name, kind, value, version, None, sid, attributes))
                    continue
            yield Variable(vid, name, kind, value, version, previous, sid, attributes)

    def _repaired(self, row: Any, path: str) -> Any:
        """Make what a variable needs of an odd row what it must be; the variable's value."""
        if type(row.version) is not int or row.version < 1:
            self._trouble("is not a version number; 1 was used", f"{path}.version")
            row.version = 1
        if row.class_name is not None and not isinstance(row.class_name, str):
            self._trouble("is not text and was ignored", f"{path}.class_name")
            row.class_name = None
        if not isinstance(row.category, str):
            row.category = None
        if row.value is None:
            self._trouble("has no value", path)
        if not isinstance(row.session_id, str):
            row.session_id = self._session(row.session_id, path)
        return decoded(row.value) if isinstance(row.value, str) else row.value

    def _deleted(self, marker: str, edges: list[Any]) -> str | None:
        """The single entry that a delete marker was made from; the marker follows it as its last version."""
        if self._sources is None:
            self._sources = {}
            for row in filter(None, rows_in("edges", edges)):
                source, target = row.source_full_node_id, row.target_full_node_id
                if isinstance(source, str) and isinstance(target, str):
                    self._sources.setdefault(target, {})[source] = None
        sources = (self._graph.variables.get(source) for source in self._sources.get(marker, ()))
        entries = [variable.id for variable in sources if variable is not None and variable.kind == "memory_entry"]
        return entries[0] if len(entries) == 1 else None

    def _add_early(self, early: list[Variable]) -> None:
        """Add the variables listed before their previous version, or whose previous version is not in the file."""
        latest: dict[tuple[str | None, str], Variable] = {}
        lineages = {_lineage(variable) for variable in early}
        for variable in self._graph.variables.values():
            key = _lineage(variable)
            if key in lineages and (key not in latest or latest[key].version < variable.version):
                latest[key] = variable
        for variable in sorted(early, key=lambda candidate: candidate.version):
            last = latest.get(_lineage(variable))
            previous = last.id if last is not None and last.version < variable.version else None
            vid = self._free(self._graph.variables, variable.id, f"version {variable.version} of {variable.name!r}")
            latest[_lineage(variable)] = replace(variable, id=vid, previous=previous)
            self._graph.add_variable(latest[_lineage(variable)])

    # --- operations ------------------------------------------------------------------------------------------------

    def operations(self, rows: list[Any], edges: list[Any]) -> None:
        groups, loose = grouped(edges, self._trouble)
        operations, sessions = self._graph.operations, self._graph.sessions
        added: list[tuple[Operation, Any, list[Edge]]] = []
        for place, (raw, row) in enumerate(zip(rows, rows_in("operations", rows), strict=True)):
            if row is None:
                self._trouble("is not an object and was left out", f"data.operations[{place}]")
                continue
            oid, name, category, sid, metadata = row.op_id, row.op_name, row.category, row.session_id, row.metadata
            if type(oid) is not str or not oid:
                oid = self._id(oid, "op_id", f"operation-{place}", f"data.operations[{place}]")
            own = groups.pop(oid, [])
            if metadata and self._is_native("operation", metadata, f"op_id {oid!r}"):
                self._complete(operations[metadata[NATIVE]["id"]], own)
                continue
            if oid in operations:
                oid = self._free(operations, oid, f"data.operations[{place}]")
            if type(sid) is not str or sid not in sessions:
                sid = self._session(sid, f"data.operations[{place}]")
            inputs, outputs = self._links(own)
            operation = Operation(
                oid,
                name if type(name) is str and name else "operation",
                category if type(category) is str and category != "operation" else "function",
                inputs,
                outputs,
                session=sid,
                started=self._epoch(row.created_at),
                status="ok",
            )
            self._graph.admit_operation(operation)
            added.append((operation, raw, own))
        for oid, own in (*groups.items(), *((f"{NO_OPERATION}#{group[0][0]}", group) for group in loose)):
            implied = self._implied(oid, own, edges)
            if implied is not None:
                added.append((implied, None, own))
        # As they mostly are in the order of their operations, few files need the positions of edges.
        listed = [place for _, _, own in added for place, _, _ in own] == [*range(len(edges))]
        for operation, raw, own in added:
            places = [place for place, _, _ in own]
            operation.attributes = AsRead(raw, [edges[place] for place in places], () if listed else places)

    def _implied(self, oid: str, own: list[Edge], edges: list[Any]) -> Operation | None:
        """An operation that only edges name; for edges without an operation, a link made by hand."""
        inputs, outputs = self._links(own)
        if not own:
            return None
        link = oid.startswith(NO_OPERATION)
        if not link:
            self._trouble("is the operation of edges but not in the file, and was added", f"op_id {oid!r}")
        (edge,) = rows_in("edges", [edges[own[0][0]]])
        operation = Operation(
            id=self._free(self._graph.operations, oid, f"op_id {oid!r}"),
            name="link" if link else text_or_none(edge.category) or "operation",
            kind="link" if link else "function",
            inputs=inputs,
            outputs=outputs,
            session=self._session(edge.session_id, f"the edges of {oid!r}"),
            started=self._epoch(edge.created_at),
            status="ok",
        )
        self._graph.admit_operation(operation)
        return operation

    def _links(self, own: list[Edge]) -> tuple[tuple[Link, ...], tuple[Link, ...]]:
        """The inputs and outputs of an operation with these edges; edges that lead to nothing known are taken out."""
        sources = dict.fromkeys([source for _, source, _ in own])
        targets = dict.fromkeys([target for _, _, target in own])
        if NO_NODE in sources or NO_NODE in targets:
            sources.pop(NO_NODE, None)
            targets.pop(NO_NODE, None)
        if not sources.keys().isdisjoint(targets):
            outputs = {target for _, source, target in own if target != source}
            sources = {source: None for source in sources if source not in outputs}
        if self._renamed:
            sources = {self._renamed.get(source, source): None for source in sources}
            targets = {self._renamed.get(target, target): None for target in targets}
        find = self._graph.variables.__getitem__
        try:
            return (
                tuple([(variable.kind, variable.id) for variable in map(find, sources)]),
                tuple([(variable.kind, variable.id) for variable in map(find, targets)]),
            )
        except KeyError:
            own[:] = [edge for edge in own if self._leads(edge)]
            return self._links(own)

    def _leads(self, edge: Edge) -> bool:
        """Whether both ends of an edge are in the graph."""
        place, *ends = edge
        if all(end in self._graph.variables or end in self._renamed or end == NO_NODE for end in ends):
            return True
        self._trouble("names a variable that is not in the file and was left out", f"data.edges[{place}]")
        return False

    def _complete(self, operation: Operation, own: list[Edge]) -> None:
        """Add the links that another tool's edges add to an operation that memtune wrote."""
        inputs, outputs = self._links(own)
        there = {*operation.input_ids(), *operation.output_ids()}
        self._graph.add_links(
            operation,
            tuple(link for link in inputs if link[1] not in there),
            tuple(link for link in outputs if link[1] not in there),
        )

    # --- what all have ---------------------------------------------------------------------------------------------

    def _is_native(self, kind: str, metadata: Any, path: str, more: Mapping[str, Any] | None = None) -> bool:
        """Whether memtune wrote this element; if so, it is added to the graph from its record, completed by `more`."""
        facts = mapping(metadata).get(NATIVE)
        if not isinstance(facts, dict):
            return False
        try:
            self._add_native({**(more or {}), **facts, "type": kind})
        except TraceError as error:
            self._trouble(f"cannot be taken as memtune wrote it: {error}", f"{path}.metadata.{NATIVE}")
            return False
        return True

    def _is_native_node(self, row: Any, place: int) -> bool:
        value = {"value": decoded(str(row.value))}
        if not self._is_native("variable", row.metadata, f"data.nodes[{place}]", value):
            return False
        self._renamed[full_node_id(row.class_name, row.name, row.version)] = row.metadata[NATIVE]["id"]
        return True

    def _id(self, raw_id: Any, key: str, default: str, path: str) -> str:
        if raw_id is not None and not text_or_none(raw_id):
            self._trouble(f"is not text, {key} was made up", f"{path}.{key}")
        return text_or_none(raw_id) or default

    def _free(self, used: Mapping[str, Any], wish: str, path: str) -> str:
        """`wanted`, or with a number appended if it is taken."""
        if wish in used:
            self._trouble("repeats an id and was given another", path)
        return self._ids.free(used, wish)

    def _epoch(self, created_at: Any) -> float:
        """Seconds since the epoch of a local time with milliseconds; 0 if it is invalid."""
        if type(created_at) is not str:
            return 0.0
        minute, seconds = created_at[:16], created_at[17:]
        try:
            if minute not in self._minutes:
                self._minutes[minute] = datetime.fromisoformat(minute).timestamp()
            into = float(seconds or 0)
            return self._minutes[minute] + (into if 0 <= into < 61 else 0.0)
        except (ValueError, OverflowError, OSError):
            return 0.0


def _lineage(variable: Variable) -> tuple[str | None, str]:
    return text_or_none(mapping(variable.attributes.get(KEY)).get("class_name")), variable.name
