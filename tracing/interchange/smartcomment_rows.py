"""The rows of a smartcomment document: checked at once, and kept as they were for whoever wants to see them.

A row has some 15 keys, of which a graph needs half a dozen. Objects of all the others would take longer to make than
everything else about loading a file, so a row of a file stays the bytes that it is until somebody looks at it.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from functools import cache
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from tracing.interchange.documents import Atom, shallow_decoder, shallow_type
from tracing.interchange.smartcomment_format import EDGE_PLACES, EDGES, KEY, SOURCE, TARGET

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
    decode, convert, lenient = _decoder(section).decode, msgspec.convert, _row(section, strict=False)
    for row in rows:
        try:
            known = decode(row)
        except (msgspec.ValidationError, TypeError):
            whole = shallow_decoder().decode(row) if type(row) is Raw else row
            known = convert(whole, lenient) if isinstance(whole, dict) else None
        yield known


class AsRead(MutableMapping[str, Any]):
    """The attributes of an element that was read: its own row and, of an operation, its edges, decoded when needed."""

    __slots__ = ("_edges", "_made", "_places", "_row")

    def __init__(self, row: Any, edges: Sequence[Any] = (), places: Sequence[int] = ()) -> None:
        self._row, self._edges, self._places = row, edges, places
        self._made: dict[str, Any] | None = None

    def _all(self) -> dict[str, Any]:
        made = self._made
        if made is None:
            made = {} if self._row is None else {KEY: _whole(self._row)}
            if self._edges:
                made[EDGES] = [_whole(edge) for edge in self._edges]
            if self._places:
                made[EDGE_PLACES] = list(self._places)
            self._made = made
        return made

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
    """The struct of a row: the keys of smartcomment with simple values, or any keys with any."""
    deep: Any = shallow_type(4)
    metadata: Any = Atom | dict[str, deep]
    fields: list[tuple[str, Any, Any]] = []
    for key in _KEYS[section]:
        kind: Any = metadata if key == "metadata" else Atom
        default = UNSET if section == "edges" and key in _ENDS else 1 if key == "version" else None
        fields.append((key, kind | UnsetType if strict else Any, default))
    return msgspec.defstruct(section, fields, forbid_unknown_fields=strict, gc=False)


@cache
def _decoder(section: str) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_row(section, strict=True))


@cache
def _document_decoder() -> msgspec.json.Decoder[Any]:
    deep: Any = shallow_type(4)
    return msgspec.json.Decoder(dict[str, Atom | list[deep] | dict[str, Atom | dict[str, deep] | list[Raw]]])
