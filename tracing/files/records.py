"""From the record of a session, variable or operation to the item itself, in a graph.

Nearly every record is as a recorder writes it: it is checked field by field, by hand, and made without detours. Any
other goes the slow way through pydantic, which accepts what can be converted without loss and says in words what
cannot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from math import isfinite
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tracing.errors import TraceError
from tracing.files.lines import FIELDS, GRAPH, Record
from tracing.graph.elements import Element, Link, Operation, Session, Status, Variable, made_variable
from tracing.graph.execution_graph import ExecutionGraph

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class RecordReader:
    """Adds records to a graph. Texts that come again and again, such as kinds, names and sessions, are kept once."""

    def __init__(self, graph: ExecutionGraph) -> None:
        self.graph = graph
        self._texts: dict[str, str] = {}
        self._unknown: Counter[tuple[str, str]] = Counter()

    def add(self, record: Mapping[str, Any]) -> Element | None:
        """Add what the record describes and return it; None where it was about the graph itself.

        Raises:
            TraceError: the record is malformed, or refers to what is not in the graph.
        """
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
            quick = self._operation(record)
            operation = quick or self._converted(Operation, record)
            ended = operation.ended or 0.0
            if not (isfinite(operation.started) and isfinite(ended) and isfinite(operation.cost)):
                raise TraceError(f"operation {operation.id} has a time or cost that is no number, or too large a one")
            if quick is not None and operation.id not in self.graph.operations:
                self.graph.admit_operation(operation)
            else:
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
        named = record["value_of"]
        holder = self.graph.variables.get(named) if isinstance(named, str) else None
        if holder is None:
            raise TraceError(f"variable {record.get('id')} has the value of the unknown {named!r}")
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
        return made_variable(
            vid,
            share(name, name),
            share(kind, kind),
            value,
            version,
            previous,
            session and share(session, session),
            dict(attributes) if attributes else {},
        )

    def _operation(self, record: Mapping[str, Any]) -> Operation | None:
        """The operation of a record that is as it should be in every respect, its links included; None otherwise."""
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
        if not links:
            return ()
        if {*map(type, links)} != {list}:
            raise TypeError
        variables, texts = self.graph.variables, self._texts
        try:
            return tuple([(texts[role], variables[vid].id) for role, vid in links])
        except KeyError:
            for role, _ in links:
                if type(role) is not str:
                    raise TypeError from None
                texts.setdefault(role, role)
            return tuple([(texts[role], variables[vid].id) for role, vid in links])

    def _converted(self, cls: Any, record: Mapping[str, Any]) -> Any:
        """What the record describes, by pydantic: slow, but it converts what it can and says what is wrong.

        Raises:
            TraceError: the record is malformed.
        """
        from pydantic import ValidationError

        kind = record["type"]
        known = FIELDS[kind]
        self._unknown.update((kind, str(key)) for key in record if key != "type" and key not in known)
        try:
            return _adapter(cls).validate_python({key: value for key, value in record.items() if key in known})
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise TraceError(f"a {kind} record is malformed: {where}: {first['msg']}") from None


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
