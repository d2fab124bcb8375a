"""The rows of a smartcomment document: checked at once, and kept as they were for whoever wants to see them.

A row has some 15 keys, of which a graph needs half a dozen. Objects of all the others would take longer to make than
everything else about loading a file, so a row of a file stays the bytes that it is until somebody looks at it.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterator, MutableMapping, Sequence
from functools import cache
from itertools import islice
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, StructMeta

from tracing.interchange.documents import Atom, shallow_decoder, shallow_type
from tracing.interchange.literals import all_decoded
from tracing.interchange.smartcomment.file_format import EDGE_PLACES, EDGES, KEY, SOURCE, TARGET

# Every key that smartcomment writes, in its order: a row with no others is checked completely while it is decoded.
_WHERE = ("created_at", "filename", "lineno")
_WHOSE = ("graph_id", "user_id", "project_id", "session_id")
_ABOUT = ("metadata", "trigger_point")
_NAMES = ("full_name", "node_id", "full_node_id")
_NODE = ("name", "version", "value", "comment", "category", "graph_id", "user_id", "class_name", "project_id")
_KEYS = {
    "nodes": (*_WHERE, *_NODE, "session_id", *_ABOUT, *_NAMES),
    "edges": (*_WHERE, "edge_id", *_WHOSE, "op_id", "category", SOURCE, TARGET, "comment", *_ABOUT),
    "operations": (*_WHERE, "op_id", "op_name", "comment", "category", *_WHOSE, *_ABOUT),
}
_ENDS = ("op_id", SOURCE, TARGET)
_Name = Annotated[str, Meta(min_length=1)]
# What a graph needs of a row, as it must be.
_NEEDED: dict[str, dict[str, Any]] = {
    "nodes": {
        "name": _Name,
        "version": Annotated[int, Meta(ge=1)],
        "value": str,
        "category": str | None,
        "class_name": str | None,
        "session_id": str | None,
    },
    "edges": dict.fromkeys(_ENDS, str),
    "operations": {"op_id": _Name},
}
_AT_ONCE = 50
_REQUIRED = ("name", "value", *_ENDS)


def document_in(content: bytes) -> Any:
    """The JSON document in `content`, whose nodes, edges and operations are still bytes.

    Raises:
        ValueError, RecursionError: it is none, or not one of few levels; `parse_json` reads it, or says what is wrong.
    """
    document = _document_decoder().decode(content)
    for key, value in document.items():
        if type(value) is dict:
            for name, rows in value.items():
                if type(rows) is list and not (key == "data" and name in _KEYS):
                    value[name] = [shallow_decoder().decode(row) for row in rows]
    return document


def rows_in(section: str, rows: Sequence[Any]) -> Iterator[Any]:
    """Each row with its keys as attributes, or None for what is no object.

    Missing keys are None, but `version` is 1, and what an edge needs is UNSET.

    Args:
        section: nodes, edges or operations.
        rows: objects, or the bytes of some.

    Raises:
        ValueError, RecursionError: as `document_in`.
    """
    strict, lenient = _decoder(section).decode, _row(section, strict=False)
    # The decoder would read a text as JSON; in a parsed document it is no object.
    rows = [None if type(row) is str else row for row in rows]
    waiting, place = iter(rows), 0
    while place < len(rows):
        try:
            for row in map(strict, waiting):
                yield row
                place += 1
        except (msgspec.ValidationError, TypeError):
            row = rows[place]
            whole = shallow_decoder().decode(row) if type(row) is Raw else row
            yield msgspec.convert(whole, lenient) if isinstance(whole, dict) else None
            place += 1


def nodes_in(rows: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """As `rows_in`, each node with its value, which is decoded where the row is sound.

    Raises:
        ValueError, RecursionError: as `document_in`.
    """
    sound = sound_row("nodes")
    nodes = rows_in("nodes", rows)
    while some := list(islice(nodes, _AT_ONCE)):
        yield from zip(some, all_decoded([row.value if type(row) is sound else "" for row in some]), strict=True)


def sound_row(section: str) -> Any:
    """The class of the rows whose keys and values are those that smartcomment writes."""
    return _row(section, strict=True)


class _LazyMeta(StructMeta, ABCMeta):
    """Of a struct, which is made several times as fast as another object, that is a mapping too."""


class AsRead(MutableMapping[str, Any], Struct, metaclass=_LazyMeta, eq=False):
    """The attributes of an element that was read: its own row and, of an operation, its edges, decoded when needed."""

    row: Any
    edges: Sequence[Any] = ()
    places: Sequence[int] = ()
    attributes: dict[str, Any] | None = None

    def _all(self) -> dict[str, Any]:
        facts = self.attributes
        if facts is None:
            facts = {} if self.row is None else {KEY: _whole(self.row)}
            if self.edges:
                facts[EDGES] = [_whole(edge) for edge in self.edges]
            if self.places:
                facts[EDGE_PLACES] = list(self.places)
            self.attributes = facts
        return facts

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __getitem__(self, key: str) -> Any:
        return self._all()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._all()[key] = value

    def __delitem__(self, key: str) -> None:
        del self._all()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return repr(self._all())


def _whole(row: Any) -> Any:
    return shallow_decoder().decode(row) if type(row) is Raw else row


@cache
def _row(section: str, *, strict: bool) -> Any:
    """The struct of a row: the keys of smartcomment with the values that it writes, or any keys with any."""
    deep: Any = shallow_type(4)
    kinds: dict[str, Any] = {"metadata": Atom | dict[str, deep], **_NEEDED[section]}
    fields: list[tuple[str, Any, Any]] = []
    for key in _KEYS[section]:
        default: Any = UNSET if section == "edges" and key in _ENDS else 1 if key == "version" else None
        if strict and key in _REQUIRED:
            default = msgspec.NODEFAULT
        fields.append((key, kinds.get(key, Atom) if strict else Any, default))
    return msgspec.defstruct(section, fields, forbid_unknown_fields=strict, gc=False, kw_only=True)


@cache
def _decoder(section: str) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_row(section, strict=True))


@cache
def _document_decoder() -> msgspec.json.Decoder[Any]:
    deep: Any = shallow_type(4)
    return msgspec.json.Decoder(dict[str, Atom | list[deep] | dict[str, Atom | dict[str, deep] | list[Raw]]])
