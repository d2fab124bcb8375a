"""The lines of a trace file: how one element is encoded, quickly, since a recording waits for it in the end."""

from __future__ import annotations

import json
from hashlib import sha256
from math import isfinite
from typing import Any

import msgspec

from tracing.formats import FORMATS
from tracing.graph.elements import Element, Operation, Session, Variable
from tracing.graph.values import snapshot

Record = dict[str, Any]
FORMAT = "memtune-trace"
VERSION = FORMATS["trace"]
HEADER: Record = {"type": "header", "format": FORMAT, "version": VERSION}
GRAPH = "graph"
"""Type of a record about the whole graph."""
SHARED_FROM = 1024
"""Characters of an encoded value from which on a file holds it once."""

# Every Unicode character as itself, and one encoder for all records: `json.dumps` would build one each time.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_encode_ascii = json.JSONEncoder(separators=(",", ":")).encode
_encode_plain = msgspec.json.Encoder().encode
FIELDS = {cls.__name__.lower(): cls.__struct_fields__ for cls in (Session, Variable, Operation)}


def record_of(item: Element) -> Record:
    """The JSON record of an item of a graph; lists in place of tuples, so that it equals what a file gives back."""
    kind = type(item).__name__.lower()
    record: Record = {"type": kind}
    for name in FIELDS[kind]:
        value = getattr(item, name)
        if name in ("inputs", "outputs"):
            value = [list(link) for link in value]
        record[name] = dict(value) if name == "attributes" else value
    return record


class Lines:
    """Encodes elements as lines, a large value only the first time it comes.

    A variable whose value is in the file already has `value_of`, the id of the variable that has it, in place of
    `value`. Values are equal if the SHA-256 of their encoding is.
    """

    def __init__(self) -> None:
        self._holders: dict[bytes, str] = {}

    def line(self, item: Element | Record) -> bytes:
        """The line of an element, or of a record that is none, with its newline."""
        try:
            # Most are so plain that msgspec, which is many times faster, says no other than JSON would.
            if (
                type(item) is Operation
                and not item.attributes
                and isfinite(item.started + (item.ended or 0) + item.cost)
            ):
                return _encode_plain(item) + b"\n"
            if type(item) is Variable and not item.attributes and type(item.value) is str:
                line = _encode_plain(item) + b"\n"
                if len(line) < SHARED_FROM:
                    return line
            return f"{_encode(self._shared(item))}\n".encode()
        except UnicodeEncodeError:  # half of a surrogate pair is text in Python, but not in UTF-8
            return f"{_encode_ascii(_record(item))}\n".encode()
        except (ValueError, TypeError, RecursionError):  # a graph made by hand may hold what no recorder lets in
            return f"{_encode_ascii(snapshot(_record(item)))}\n".encode()

    def _shared(self, item: Element | Record) -> Record:
        """The record of an item; without its value, where the file has it already."""
        record = _record(item)
        if type(item) is Variable:
            text = _encode(item.value)
            if len(text) >= SHARED_FROM:
                holder = self._holders.setdefault(sha256(text.encode()).digest(), item.id)
                if holder != item.id:
                    return dict(
                        ("value_of", holder) if key == "value" else (key, value) for key, value in record.items()
                    )
        return record


def _record(item: Element | Record) -> Record:
    return item if isinstance(item, dict) else record_of(item)
