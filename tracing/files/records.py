"""From the record of a session, variable or operation to the item itself, in a graph.

Nearly every line is as a recorder writes it: msgspec decodes it into the item, and refuses whatever is not exactly so.
A record that it refuses is read again through pydantic, which accepts what can be converted without loss and says in
words what cannot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, Any

import msgspec

from tracing.errors import TraceError
from tracing.files.trace_lines import FIELDS, GRAPH, Record
from tracing.graph.elements import Element, Link, Operation, Session, Variable

if TYPE_CHECKING:
    from pydantic import BaseModel

    from tracing.graph.execution_graph import ExecutionGraph

_CLASSES: dict[Any, type[Element]] = {"session": Session, "variable": Variable, "operation": Operation}


class RecordReader:
    """Adds records to a graph."""

    def __init__(self, graph: ExecutionGraph) -> None:
        self.graph = graph
        self._roles: dict[str, str] = {}
        self._unknown: Counter[tuple[str, str]] = Counter()

    def add(self, record: Mapping[str, Any]) -> Element | None:
        """Add what the record describes and return it; None where it was about the graph itself.

        Raises:
            TraceError: the record is malformed, or refers to what is not in the graph.
        """
        kind = record.get("type")
        if kind == GRAPH:
            facts = record.get("attributes")
            if not isinstance(facts, Mapping):
                raise TraceError("a graph record is malformed: its attributes are no object")
            self.graph.attributes.update(facts)
            return None
        if not isinstance(kind, str) or kind not in FIELDS:
            raise TraceError(f"a record has the unknown type {kind!r}; known are {', '.join((GRAPH, *FIELDS))}")
        if kind == "variable" and "value_of" in record:
            record = self._with_value(record)
        try:
            element = msgspec.convert(record, _CLASSES[kind])
        except msgspec.ValidationError:
            element = self._converted(_CLASSES[kind], record)
        except UnicodeEncodeError:
            raise TraceError(f"a {kind} record is malformed: it holds half of a character (a lone surrogate)") from None
        return self.admit(element)

    def admit(self, element: Element) -> Element:
        """Add an item that was just decoded, and return it.

        Raises:
            TraceError: it refers to what is not in the graph.
        """
        if type(element) is Variable:
            previous = element.previous
            if previous is not None and previous not in self.graph.variables:
                raise TraceError(f"variable {element.id} names the unknown version {previous!r} before it")
            self.graph.add_variable(element)
        elif type(element) is Operation:
            ended = element.ended or 0.0
            if not (isfinite(element.started) and isfinite(ended) and isfinite(element.cost)):
                raise TraceError(f"operation {element.id} has a time or cost that is not a number, or too large a one")
            try:
                element.inputs, element.outputs = self._shared(element.inputs), self._shared(element.outputs)
                is_present = element.id in self.graph.operations
            except KeyError:
                is_present = True  # or not: the graph will say which variable it lacks
            if is_present:
                self.graph.add_operation(element)
            else:
                self.graph.admit_operation(element)
        elif type(element) is Session:
            self.graph.add_session(element)
        return element

    def _shared(self, links: tuple[Link, ...]) -> tuple[Link, ...]:
        """The links with the texts that are kept already: a role once, and the variables' own ids."""
        if not links:
            return ()
        variables, roles = self.graph.variables, self._roles
        return tuple([(roles.setdefault(role, role), variables[vid].id) for role, vid in links])

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

    def _converted(self, cls: type[Element], record: Mapping[str, Any]) -> Element:
        """What the record describes, by pydantic: slow, but it converts what it can and says what is wrong.

        Raises:
            TraceError: the record is malformed.
        """
        from pydantic import ValidationError

        kind = record["type"]
        fields = FIELDS[kind]
        self._unknown.update((kind, str(key)) for key in record if key != "type" and key not in fields)
        try:
            model = lenient_model(cls).model_validate({key: value for key, value in record.items() if key in fields})
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise TraceError(f"a {kind} record is malformed: {where}: {first['msg']}") from None
        return cls(**{key: getattr(model, key) for key in fields})


@cache
def lenient_model(cls: type[Element]) -> type[BaseModel]:
    """A pydantic model with the fields of such an item."""
    from pydantic import Field, create_model

    definitions: dict[str, Any] = {}
    for field in msgspec.structs.fields(cls):
        if field.default_factory is not msgspec.NODEFAULT:
            default = Field(default_factory=field.default_factory)
        else:
            default = ... if field.required else field.default
        definitions[field.name] = (field.type, default)
    return create_model(cls.__name__, **definitions)
