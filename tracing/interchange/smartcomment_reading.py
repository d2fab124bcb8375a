"""Turns the rows of a smartcomment document into the elements of a graph, and repairs what is damaged."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from operator import itemgetter
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
    SOURCE,
    TARGET,
    full_node_id,
    kind_of,
)

_Raw = dict[str, Any]
_SOURCE, _TARGET = itemgetter(SOURCE), itemgetter(TARGET)
# Reading many keys at once takes half as long as one by one; missing keys have these defaults.
_NODE_DEFAULTS = {
    "value": None,
    "version": 1,
    "class_name": None,
    "category": None,
    "session_id": None,
    "metadata": None,
}
_NODE = itemgetter("name", *_NODE_DEFAULTS)
_OPERATION_DEFAULTS = dict.fromkeys(("op_id", "op_name", "category", "session_id", "created_at", "metadata"))
_OPERATION = itemgetter(*_OPERATION_DEFAULTS)


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
                self._trouble("is no object and was left out", path)
            elif not self._is_native("session", raw, path):
                sid = self._free(self._graph.sessions, self._id(raw, "session_id", f"session-{place}", path), path)
                self._graph.add_session(Session(sid, text_or_none(raw.get("session_name")) or sid, {KEY: raw}))

    def _session(self, raw: _Raw, path: str) -> str | None:
        sid = raw.get("session_id")
        if isinstance(sid, str) and sid in self._graph.sessions:
            return sid
        if sid is not None and sid != NO_SESSION:
            self._trouble("names no session of the file and was ignored", f"{path}.session_id")
        return None

    # --- variables -------------------------------------------------------------------------------------------------

    def nodes(self, rows: list[Any], edges: list[Any]) -> None:
        add, variables, sessions = self._graph.admit_variable, self._graph.variables, self._graph.sessions
        kinds: dict[tuple[Any, Any], str] = {}
        early: list[Variable] = []
        for place, raw in enumerate(rows):
            try:
                name, value, version, owner, category, sid, metadata = _NODE(raw)
            except (KeyError, TypeError):
                whole = {"name": None, **_NODE_DEFAULTS, **mapping(raw)}
                name, value, version, owner, category, sid, metadata = _NODE(whole)
            if type(name) is not str or not name:
                self._trouble("is no object with a name and was left out", f"data.nodes[{place}]")
                continue
            if (
                type(metadata) is dict
                and NATIVE in metadata
                and self._is_native("variable", raw, f"data.nodes[{place}]")
            ):
                continue
            if type(version) is not int or version < 1 or not (owner is None or type(owner) is str):
                version, owner = self._identity(version, owner, f"data.nodes[{place}]")
            try:
                kind = kinds[category, owner]
            except (KeyError, TypeError):
                kind = kind_of(category, owner)
                if category is None or type(category) is str:
                    kinds[category, owner] = kind
            if type(value) is str:
                value = decoded(value)
            elif value is None:
                self._trouble("has no value", f"data.nodes[{place}]")
            vid = f"{owner}:{name}@{version}" if owner else f"{name}@{version}"
            if vid in variables:
                vid = self._free(variables, vid, f"data.nodes[{place}]")
            if type(sid) is not str or sid not in sessions:
                sid = self._session(raw, f"data.nodes[{place}]")
            previous = None
            if kind == DELETED or DELETED in name:
                kind, previous = DELETED, self._deleted(vid, edges)
            elif version > 1:
                previous = full_node_id(owner, name, version - 1)
                if previous not in variables:
                    early.append(Variable(vid, name, kind, value, version, None, sid, {KEY: raw}))
                    continue
            add(Variable(vid, name, kind, value, version, previous, sid, {KEY: raw}))
        if early:
            self._add_early(early)
            listed = {id(one.attributes.get(KEY)): vid for vid, one in variables.items()}
            self._graph.attributes[ORDER] = [listed[id(raw)] for raw in rows if id(raw) in listed]

    def _identity(self, version: Any, owner: Any, path: str) -> tuple[int, str | None]:
        if type(version) is not int or version < 1:
            self._trouble("is no version number; 1 was used", f"{path}.version")
            version = 1
        if owner is not None and not isinstance(owner, str):
            self._trouble("is no text and was ignored", f"{path}.class_name")
            owner = None
        return version, owner

    def _deleted(self, marker: str, edges: list[Any]) -> str | None:
        """The single entry that a delete marker was made from; the marker follows it as its last version."""
        if self._sources is None:
            self._sources = {}
            for raw in edges:
                source, target = mapping(raw).get(SOURCE), mapping(raw).get(TARGET)
                if isinstance(source, str) and isinstance(target, str):
                    self._sources.setdefault(target, {})[source] = None
        known = (self._graph.variables.get(source) for source in self._sources.get(marker, ()))
        entries = [one.id for one in known if one is not None and one.kind == "memory_entry"]
        return entries[0] if len(entries) == 1 else None

    def _add_early(self, early: list[Variable]) -> None:
        """Add the variables listed before their previous version, or whose previous version is not in the file."""
        latest: dict[tuple[Any, str], Variable] = {}
        wanted = {_lineage(variable) for variable in early}
        for variable in self._graph.variables.values():
            key = _lineage(variable)
            if key in wanted and (key not in latest or latest[key].version < variable.version):
                latest[key] = variable
        for variable in sorted(early, key=lambda one: one.version):
            last = latest.get(_lineage(variable))
            previous = last.id if last is not None and last.version < variable.version else None
            vid = self._free(self._graph.variables, variable.id, f"version {variable.version} of {variable.name!r}")
            latest[_lineage(variable)] = replace(variable, id=vid, previous=previous)
            self._graph.add_variable(latest[_lineage(variable)])

    # --- operations ------------------------------------------------------------------------------------------------

    def operations(self, rows: list[Any], edges: list[Any]) -> None:
        groups, links = self._grouped(edges)
        operations, sessions = self._graph.operations, self._graph.sessions
        flat: list[_Raw] = []
        for place, raw in enumerate(rows):
            if type(raw) is not dict:
                self._trouble("is no object and was left out", f"data.operations[{place}]")
                continue
            try:
                oid, name, category, sid, created_at, metadata = _OPERATION(raw)
            except KeyError:
                oid, name, category, sid, created_at, metadata = _OPERATION({**_OPERATION_DEFAULTS, **raw})
            if type(oid) is not str or not oid:
                oid = self._id(raw, "op_id", f"operation-{place}", f"data.operations[{place}]")
            own = groups.pop(oid, [])
            if type(metadata) is dict and NATIVE in metadata and self._is_native("operation", raw, f"op_id {oid!r}"):
                self._complete(operations[metadata[NATIVE]["id"]], own)
                continue
            flat += own
            if oid in operations:
                oid = self._free(operations, oid, f"data.operations[{place}]")
            if type(sid) is not str or sid not in sessions:
                sid = self._session(raw, f"data.operations[{place}]")
            self._add_operation(
                Operation(
                    oid,
                    name if type(name) is str and name else "operation",
                    category if type(category) is str and category != "operation" else "function",
                    session=sid,
                    started=self._epoch(created_at),
                    status="ok",
                    attributes={KEY: raw},
                ),
                own,
            )
        for oid, own in groups.items():
            self._trouble("is the operation of edges but not in the file, and was added", f"op_id {oid!r}")
            self._add_operation(self._implied(oid, own[0]), own)
            flat += own
        for place, raw in links:
            self._add_operation(self._implied(f"{NO_OPERATION}#{place}", raw), [raw])
            flat.append(raw)
        if flat != edges:  # equal if the edges are in the order of their operations, as they mostly are
            self._keep_places(edges)

    def _grouped(self, edges: list[Any]) -> tuple[dict[str, list[_Raw]], list[tuple[int, _Raw]]]:
        """The edges whose ends are in the graph, by operation; and those without an operation, with their position."""
        known = {*self._graph.variables, *self._renamed, NO_NODE}
        groups: dict[str, list[_Raw]] = {}
        links = []
        for place, raw in enumerate(edges):
            try:
                oid = raw["op_id"]
                if raw[SOURCE] not in known or raw[TARGET] not in known:
                    self._trouble("names a variable that is not in the file and was left out", f"data.edges[{place}]")
                elif oid in groups:
                    groups[oid].append(raw)
                elif oid == NO_OPERATION or oid is None:
                    links.append((place, raw))
                elif type(oid) is str:
                    groups[oid] = [raw]
                else:
                    raise TypeError
            except (KeyError, TypeError, IndexError):
                self._trouble(
                    "is no object with op_id, source_full_node_id and target_full_node_id and was left out",
                    f"data.edges[{place}]",
                )
        return groups, links

    def _implied(self, oid: str, edge: _Raw) -> Operation:
        """An operation that only edges name; for edges without an operation, a link made by hand."""
        link = oid.startswith(NO_OPERATION)
        return Operation(
            id=self._free(self._graph.operations, oid, f"op_id {oid!r}"),
            name="link" if link else text_or_none(edge.get("category")) or "operation",
            kind="link" if link else "function",
            session=self._session(edge, f"the edges of {oid!r}"),
            started=self._epoch(edge.get("created_at")),
            status="ok",
        )

    def _add_operation(self, operation: Operation, edges: list[_Raw]) -> None:
        if edges:
            operation.inputs, operation.outputs = self._links(edges)
            operation.attributes[EDGES] = edges
        self._graph.add_operation(operation)

    def _links(self, edges: list[_Raw]) -> tuple[tuple[Link, ...], tuple[Link, ...]]:
        """The inputs and outputs of an operation with these edges."""
        variables = self._graph.variables
        sources = dict.fromkeys(map(_SOURCE, edges))
        targets = dict.fromkeys(map(_TARGET, edges))
        if NO_NODE in sources or NO_NODE in targets:
            sources.pop(NO_NODE, None)
            targets.pop(NO_NODE, None)
        if not sources.keys().isdisjoint(targets):
            made = {raw[TARGET] for raw in edges if raw[TARGET] != raw[SOURCE]}
            sources = {source: None for source in sources if source not in made}
        if self._renamed:
            sources = {self._renamed.get(source, source): None for source in sources}
            targets = {self._renamed.get(target, target): None for target in targets}
        return (
            tuple([(variables[vid].kind, vid) for vid in sources]),
            tuple([(variables[vid].kind, vid) for vid in targets]),
        )

    def _complete(self, operation: Operation, edges: list[_Raw]) -> None:
        """Add the links that another tool's edges add to an operation that memtune wrote."""
        inputs, outputs = self._links(edges)
        there = {*operation.input_ids(), *operation.output_ids()}
        self._graph.add_links(
            operation,
            tuple(link for link in inputs if link[1] not in there),
            tuple(link for link in outputs if link[1] not in there),
        )

    def _keep_places(self, edges: list[Any]) -> None:
        at = {id(raw): place for place, raw in enumerate(edges)}
        for operation in self._graph.operations.values():
            if EDGES in operation.attributes:
                operation.attributes[EDGE_PLACES] = [at[id(raw)] for raw in operation.attributes[EDGES]]

    # --- what all have ---------------------------------------------------------------------------------------------

    def _is_native(self, kind: str, raw: _Raw, path: str) -> bool:
        """Whether memtune wrote this element; if so, it is added to the graph from its record."""
        facts = mapping(raw.get("metadata")).get(NATIVE)
        if not isinstance(facts, dict):
            return False
        record = {**facts, "type": kind}
        if kind == "variable":
            record.setdefault("value", decoded(str(raw.get("value"))))
        try:
            made = self._add_native(record)
        except TraceError as error:
            self._trouble(f"cannot be taken as memtune wrote it: {error}", f"{path}.metadata.{NATIVE}")
            return False
        if made is not None and kind == "variable":
            self._renamed[full_node_id(raw.get("class_name"), raw["name"], raw.get("version", 1))] = made.id
        return True

    def _id(self, raw: _Raw, key: str, default: str, path: str) -> str:
        given = raw.get(key)
        if given is not None and not text_or_none(given):
            self._trouble(f"is no text, {key} was made up", f"{path}.{key}")
        return text_or_none(given) or default

    def _free(self, taken: Mapping[str, Any], wanted: str, path: str) -> str:
        """`wanted`, or with a number appended if it is taken."""
        if wanted in taken:
            self._trouble("repeats an id and was given another", path)
        return self._ids.free(taken, wanted)

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


def _lineage(variable: Variable) -> tuple[Any, str]:
    return mapping(variable.attributes.get(KEY)).get("class_name"), variable.name
