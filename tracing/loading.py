"""Reading traces: a file or a list of records becomes an execution graph, as far as it is sound.

Nearly every record is as a recorder writes it: it is checked field by field, by hand, and made without detours. Any
other goes the slow way through pydantic, which accepts what can be converted without loss and says in words what
cannot. A record of an unknown type ends the reading, since what follows may refer to it; unknown keys are left out
and reported. A trace is loaded at once and most of it lives on, so the garbage collector rests meanwhile.
"""

from __future__ import annotations

import gc
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tracing.elements import Link, Noted, Operation, Session, Status, Variable
from tracing.errors import TraceError
from tracing.graph import ExecutionGraph
from tracing.lines import FIELDS, FORMAT, GRAPH, HEADER, VERSION, Lines, Record

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class LoadedTrace:
    """What could be read of a trace file.

    Attributes:
        graph: everything up to the last complete record.
        problem: None, or what comes after it and why it was left out.
        notes: what was left out of records that did load, a line each: keys that this memtune does not know.
    """

    graph: ExecutionGraph
    problem: str | None
    notes: tuple[str, ...] = ()


def load_trace(path: Path) -> LoadedTrace:
    """Read a trace file up to its last complete record.

    Whatever byte the writer was stopped at, all complete records load and `problem` names the rest; so it does for a
    damaged record in the middle and what follows it.

    Raises:
        TraceError: there is no such file, or it is not a trace of a version this memtune knows.
    """
    from pydantic_core import from_json

    reader = _Reader(ExecutionGraph())
    problem = None
    try:
        with path.open("rb") as lines, _collector_resting():
            first = lines.readline()
            if first in _HEADER_BEGINNINGS:
                return LoadedTrace(reader.graph, f"{path}: the trace was cut off before its first record")
            _check_header(path, first)
            number = 1
            try:
                for line in lines:
                    number += 1
                    try:
                        record = from_json(line, allow_inf_nan=False, cache_strings="keys")
                    except ValueError:  # it knows no half of a surrogate pair, among others
                        record = _parsed(line)
                    if type(record) is not dict:
                        raise TraceError("the line is not a JSON object")
                    reader.add(record)
            except TraceError as error:
                rest = len(line) + sum(len(other) for other in lines)
                problem = f"{path}:{number}: {error}; it and all that follows ({rest} bytes) was left out"
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}; give the path of a recorded trace") from None
    return LoadedTrace(reader.graph, problem, reader.notes())


def graph_of(records: Iterable[Mapping[str, Any]]) -> ExecutionGraph:
    """The graph that records describe; headers among them are passed over.

    Raises:
        TraceError: a record is malformed, or refers to what does not come before it.
    """
    reader = _Reader(ExecutionGraph())
    with _collector_resting():
        for record in records:
            if record.get("type") != "header":
                reader.add(record)
    return reader.graph


def extend_graph(graph: ExecutionGraph, record: Mapping[str, Any]) -> Session | Variable | Operation | None:
    """Add what a record describes to the graph and return it; None where it was about the graph itself.

    Raises:
        TraceError: the record is malformed, or refers to what is not in the graph.
    """
    return _Reader(graph).add(record)


class _Reader:
    """Adds records to a graph. Texts that come again and again, such as kinds, names and sessions, are kept once."""

    def __init__(self, graph: ExecutionGraph) -> None:
        self.graph = graph
        self._texts: dict[str, str] = {}
        self._unknown: Counter[tuple[str, str]] = Counter()

    def add(self, record: Mapping[str, Any]) -> Session | Variable | Operation | None:
        kind = record.get("type")
        if kind == "variable":
            if "value_of" in record:
                record = self._with_value(record)
            variable = self._variable(record) or self._converted(Variable, record)
            if variable.previous is not None and variable.previous not in self.graph.variables:
                raise TraceError(f"variable {variable.id} names the unknown version {variable.previous!r} before it")
            self.graph.add_variable(variable)
            return variable
        if kind == "operation":
            operation = self._operation(record) or self._converted(Operation, record)
            self.graph.add_operation(operation)
            return operation
        if kind == "session":
            session: Session = self._converted(Session, record)
            self.graph.add_session(session)
            return session
        if kind == GRAPH:
            facts = record.get("attributes")
            if not isinstance(facts, Mapping):
                raise TraceError("a graph record is malformed: its attributes are no object")
            self.graph.attributes.update(facts)
            return None
        raise TraceError(f"a record has the unknown type {kind!r}; known are {', '.join((GRAPH, *FIELDS))}")

    def _with_value(self, record: Mapping[str, Any]) -> Record:
        """The record with the large value that it shares with a variable before it."""
        holder = self.graph.variables.get(record["value_of"])
        if holder is None:
            raise TraceError(f"variable {record.get('id')} has the value of the unknown {record['value_of']!r}")
        return {**{key: value for key, value in record.items() if key != "value_of"}, "value": holder.value}

    def notes(self) -> tuple[str, ...]:
        """What was left out, in words."""
        return tuple(
            f"{count} {kind} record{'s' if count > 1 else ''} held the unknown key {key!r}, which was left out"
            for (kind, key), count in sorted(self._unknown.items())
        )

    def _variable(self, record: Mapping[str, Any]) -> Variable | None:
        """The variable of a record that is as it should be in every respect; None otherwise."""
        values = _VARIABLE.values(record)
        if values is None:
            return None
        vid, name, kind, value, version, previous, session, attributes = values
        share = self._texts.setdefault
        draft = _Draft()
        draft.id = vid
        draft.name = share(name, name)
        draft.kind = share(kind, kind)
        draft.value = value
        draft.version = version
        draft.previous = previous
        draft.session = session and share(session, session)
        draft.attributes = dict(attributes) if attributes else {}
        draft.__class__ = Variable  # type: ignore[assignment]
        return cast(Variable, draft)

    def _operation(self, record: Mapping[str, Any]) -> Operation | None:
        """The operation of a record that is as it should be in every respect; None otherwise."""
        values = _OPERATION.values(record)
        if values is None:
            return None
        # fmt: off
        (oid, name, kind, inputs, outputs, parent, session, started, ended, status, error, model,
         calls, cached_calls, prompt_tokens, completion_tokens, cost, attributes) = values
        try:
            inputs, outputs = self._links(inputs), self._links(outputs)
        except (KeyError, TypeError, ValueError):
            return None
        if status not in _STATUSES:
            return None
        share = self._texts.setdefault
        return Operation(
            oid, share(name, name), share(kind, kind), inputs, outputs, parent, session and share(session, session),
            started, ended, _STATUSES[status], error, model and share(model, model),
            calls, cached_calls, prompt_tokens, completion_tokens, cost, dict(attributes) if attributes else {},
        )
        # fmt: on

    def _links(self, links: list[Any]) -> tuple[Link, ...]:
        """Links with the texts that are kept already: the variables' own ids."""
        variables, share = self.graph.variables, self._texts.setdefault
        made = []
        for link in links:
            role, vid = link
            if type(link) is not list or type(role) is not str:
                raise TypeError
            made.append((share(role, role), variables[vid].id))
        return tuple(made)

    def _converted(self, cls: Any, record: Mapping[str, Any]) -> Any:
        """What the record describes, by pydantic: slow, but it converts what it can and says what is wrong.

        Raises:
            TraceError: the record is malformed.
        """
        from pydantic import ValidationError

        kind = record["type"]
        known = {field.name for field in fields(cls)}
        self._unknown.update((kind, str(key)) for key in record if key != "type" and key not in known)
        try:
            return _adapter(cls).validate_python({key: value for key, value in record.items() if key in known})
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise TraceError(f"a {kind} record is malformed: {where}: {first['msg']}") from None


class _Draft(Noted):
    """A variable in the making. `Variable` is frozen, and its own constructor takes five times as long."""

    __slots__ = tuple(field.name for field in fields(Variable))
    id: str
    name: str
    kind: str
    value: Any
    version: int
    previous: str | None
    session: str | None
    attributes: Mapping[str, Any]


class _Layout:
    """The fields of a class in order, and which types each may have in a record that needs no conversion."""

    def __init__(self, cls: type[Variable] | type[Operation], types: Mapping[str, tuple[type, ...]]) -> None:
        self._types = [types[field.name] for field in fields(cls)]
        self._pick = itemgetter(*types)
        self._size = len(types) + 1
        self._defaults = {
            field.name: [] if field.default == () else field.default
            for field in fields(cls)
            if field.default is not MISSING
        }
        self._sound: set[tuple[type, ...]] = set()

    def values(self, record: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """The fields of a record with those it leaves out; None where a field or a key is not as it should be."""
        if len(record) != self._size:
            record = {**self._defaults, "attributes": {}, **record}
            if len(record) != self._size:
                return None
        try:
            values: tuple[Any, ...] = self._pick(record)
        except KeyError:
            return None
        # There are few combinations of types, so each is looked at once.
        shape = tuple(map(type, values))
        if shape not in self._sound:
            if not all(not allowed or found in allowed for found, allowed in zip(shape, self._types, strict=True)):
                return None
            self._sound.add(shape)
        return values


_STATUSES: Mapping[str, Status] = {"open": "open", "ok": "ok", "error": "error"}
_TEXT, _MAYBE_TEXT = (str,), (str, type(None))
_VARIABLE = _Layout(
    Variable,
    {
        "id": _TEXT,
        "name": _TEXT,
        "kind": _TEXT,
        "value": (),
        "version": (int,),
        "previous": _MAYBE_TEXT,
        "session": _MAYBE_TEXT,
        "attributes": (dict,),
    },
)
_OPERATION = _Layout(
    Operation,
    {
        "id": _TEXT,
        "name": _TEXT,
        "kind": _TEXT,
        "inputs": (list,),
        "outputs": (list,),
        "parent": _MAYBE_TEXT,
        "session": _MAYBE_TEXT,
        "started": (float,),
        "ended": (float, type(None)),
        "status": _TEXT,
        "error": _MAYBE_TEXT,
        "model": _MAYBE_TEXT,
        "calls": (int,),
        "cached_calls": (int,),
        "prompt_tokens": (int,),
        "completion_tokens": (int,),
        "cost": (float,),
        "attributes": (dict,),
    },
)


@cache
def _adapter(cls: type) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(cls)


@contextmanager
def _collector_resting() -> Iterator[None]:
    """Keep the garbage collector from walking through all that was loaded, again and again, while it grows."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():
                # All that came is old now, without a walk through it as through what is young.
                gc.freeze()
                gc.unfreeze()
            gc.enable()


_HEADERS = [Lines().line({**HEADER, "version": version}) for version in range(1, VERSION + 1)]
_HEADER_BEGINNINGS = frozenset(line[:length] for line in _HEADERS for length in range(len(line) - 1))
"""What a writer killed within its first line leaves behind."""


def _parsed(line: bytes) -> Record:
    try:
        record = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        unfinished = not line.endswith(b"\n")
        raise TraceError("the last line is unfinished" if unfinished else "the line is not JSON") from None
    if not isinstance(record, dict):
        raise TraceError("the line is not a JSON object")
    return record


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _check_header(path: Path, line: bytes) -> None:
    try:
        header = _parsed(line)
    except TraceError:
        header = {}
    if header.get("type") != "header" or header.get("format") != FORMAT:
        raise TraceError(
            f"{path}: is not a trace: its first line is no {FORMAT} header; give the path of a recorded trace"
        )
    if header.get("version") not in range(1, VERSION + 1):
        raise TraceError(
            f"{path}: has format version {header.get('version')!r}, this memtune reads 1 to {VERSION}; "
            "install the memtune that wrote it"
        )
