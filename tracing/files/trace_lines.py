"""The lines of a trace file: how one element is encoded, quickly, since a recording waits for it in the end."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from hashlib import sha256
from json.encoder import encode_basestring as _in_quotes
from typing import Any

from tracing.graph.elements import Element, Link, Operation, Session, Variable
from tracing.graph.values import snapshot

Record = dict[str, Any]
FORMAT = "memtune-trace"
VERSION = 2
HEADER: Record = {"type": "header", "format": FORMAT, "version": VERSION}
GRAPH = "graph"
"""Type of a record about the whole graph."""
SHARED_FROM = 1024
"""Characters of an encoded value from which on a file holds it once."""

# Every Unicode character as itself, and one encoder for all records: `json.dumps` would build one each time.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_encode_ascii = json.JSONEncoder(separators=(",", ":")).encode
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
            if type(item) is Variable:
                return self._variable(item).encode()
            if type(item) is Operation:
                return _operation(item).encode()
            return f"{_encode(_record(item))}\n".encode()
        except UnicodeEncodeError:  # half of a surrogate pair is text in Python, but not in UTF-8
            return f"{_encode_ascii(_record(item))}\n".encode()
        except (ValueError, TypeError, RecursionError):  # a graph made by hand may hold what no recorder lets in
            return f"{_encode_ascii(snapshot(_record(item)))}\n".encode()

    def _variable(self, item: Variable) -> str:
        value = _in_quotes(item.value) if type(item.value) is str else _encode(item.value)
        key = "value"
        if len(value) >= SHARED_FROM:
            holder = self._holders.setdefault(sha256(value.encode()).digest(), item.id)
            if holder != item.id:
                key, value = "value_of", _in_quotes(holder)
        return (
            f'{{"type":"variable","id":{_in_quotes(item.id)},"name":{_in_quotes(item.name)},'
            f'"kind":{_in_quotes(item.kind)},"{key}":{value},"version":{item.version},'
            f'"previous":{_text(item.previous)},"session":{_text(item.session)},'
            f'"attributes":{_facts(item.attributes)}}}\n'
        )


def _record(item: Element | Record) -> Record:
    return item if isinstance(item, dict) else record_of(item)


def _operation(item: Operation) -> str:
    ended = 0.0 if item.ended is None else item.ended
    if not math.isfinite(item.started + ended + item.cost):
        raise ValueError("JSON has no such number")
    return (
        f'{{"type":"operation","id":{_in_quotes(item.id)},"name":{_in_quotes(item.name)},'
        f'"kind":{_in_quotes(item.kind)},"inputs":{_links(item.inputs)},"outputs":{_links(item.outputs)},'
        f'"parent":{_text(item.parent)},"session":{_text(item.session)},"started":{item.started!r},'
        f'"ended":{"null" if item.ended is None else repr(ended)},"status":"{item.status}","error":{_text(item.error)},'
        f'"model":{_text(item.model)},"calls":{item.calls},"cached_calls":{item.cached_calls},'
        f'"prompt_tokens":{item.prompt_tokens},"completion_tokens":{item.completion_tokens},'
        f'"cost":{item.cost!r},"attributes":{_facts(item.attributes)}}}\n'
    )


def _links(links: Iterable[Link]) -> str:
    return f"[{','.join([f'[{_in_quotes(role)},{_in_quotes(vid)}]' for role, vid in links])}]"


def _text(text: str | None) -> str:
    return "null" if text is None else _in_quotes(text)


def _facts(attributes: Mapping[str, Any]) -> str:
    return _encode(dict(attributes)) if attributes else "{}"
