"""JSON files of other tools: read completely and safely, or refused with one clear error; written whole or not."""

from __future__ import annotations

import codecs
import json
import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from tracing.errors import TraceError
from tracing.files.depth import DEEPEST, is_too_deep
from tracing.files.file_kinds import kind_of, likeness
from tracing.files.opening import read_file
from tracing.files.whole_files import whole_file
from tracing.graph.elements import Link
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.values import snapshot

_LISTED = 3
_AT_ONCE = 1000
_FEW_LEVELS = 8

Atom = str | int | float | bool | None
"""What JSON holds beside lists and objects."""

MOST_TEXT = 500_000_000
"""Most characters of values in a document; writing one takes about three times its size in memory."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of reading a foreign file.

    Attributes:
        graph: everything that could be read.
        warnings: what was repaired or left out, one line for each kind of fault, with places and count.
    """

    graph: ExecutionGraph
    warnings: tuple[str, ...]


class Troubles:
    """Collects repairs, so that a million equal faults are one line."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._places: dict[str, list[str]] = {}

    def add(self, what: str, place: str) -> None:
        """Record a fault, in words that are equal for equal faults, and its key path."""
        self._counts[what] += 1
        places = self._places.setdefault(what, [])
        if len(places) < _LISTED:
            places.append(place)

    def lines(self) -> tuple[str, ...]:
        """A line for each kind of fault, with its first places and how many there are."""
        return tuple(
            f"{', '.join(self._places[what])}{f' and {count - _LISTED} more' if count > _LISTED else ''}: {what}"
            for what, count in self._counts.items()
        )


class FreeIds:
    """Finds unused ids, in time that does not grow with the number of equal requests."""

    def __init__(self) -> None:
        self._next: Counter[str] = Counter()

    def free(self, used: Container[str], wish: str) -> str:
        """`wanted` if it is not taken, otherwise `wanted` with a number appended."""
        free_id = wish
        while free_id in used:
            self._next[wish] += 1
            free_id = f"{wish}#{self._next[wish] + 1}"
        return free_id


def read_bytes(path: Path) -> bytes:
    """The content of a file in UTF-8, without a byte order mark.

    Raises:
        TraceError: it cannot be read, is empty, or is in UTF-16 or UTF-32.
    """
    try:
        content = read_file(path)
    except OSError as error:
        looks = likeness(path) or "give the path of a file"
        raise TraceError(f"{path}: cannot be read: {error.strerror}; {looks}") from None
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise TraceError(f"{path}: is in UTF-16 or UTF-32; save it as UTF-8")
    content = content.removeprefix(codecs.BOM_UTF8)
    if not content or content.isspace():
        raise TraceError(f"{path}: is empty; export the trace again")
    start = content.lstrip()[:1]
    is_text = start == b"[" and (kind := kind_of(path)) is not None and kind.name == "text"
    if (is_text or start not in (b"{", b"[")) and (looks := likeness(path)):
        raise TraceError(f"{path}: is not JSON; {looks}")
    return content


def parse_json(content: bytes, where: str | Path, troubles: Troubles) -> Any:
    """The JSON document in `content`; NaN and infinities become text, with a warning.

    Raises:
        TraceError: it is not JSON, is cut off, or is nested more than `DEEPEST` levels. `where` begins the message.
    """
    from pydantic_core import from_json

    try:
        return shallow_decoder().decode(content)
    except (ValueError, RecursionError):
        pass
    try:
        return from_json(content, allow_inf_nan=False, cache_strings="keys")
    except ValueError:
        return _parse_with_care(content, where, troubles)


def shallow_type(levels: int) -> Any:
    """The type of JSON values of so many levels at most, for msgspec, which has no limit itself."""
    shallow: Any = Atom
    for _ in range(levels):
        shallow = Atom | list[shallow] | dict[str, shallow]  # the type doubles with each level
    return shallow


@cache
def shallow_decoder() -> msgspec.json.Decoder[Any]:
    """The fastest parser, for documents of few levels, as nearly all are."""
    return msgspec.json.Decoder(shallow_type(_FEW_LEVELS))


def _parse_with_care(content: bytes, where: str | Path, troubles: Troubles) -> Any:
    """As `parse_json`, for what its fast parsers refuse: lone surrogates and NaN are read, other faults raise."""
    if is_too_deep(content):
        raise TraceError(f"{where}: is nested more than {DEEPEST} levels deep; export it again without such values")

    def constant(name: str) -> str:
        troubles.add("a number that JSON does not have (NaN or an infinity) is kept as text", name)
        return name

    def finite(digits: str) -> float | str:
        number = float(digits)
        return number if math.isfinite(number) else constant("-Infinity" if number < 0 else "Infinity")

    try:
        text = content.decode()
        return json.loads(text, parse_constant=constant, parse_float=finite)
    except UnicodeDecodeError as error:
        raise TraceError(f"{where}: is not UTF-8 at byte {error.start}; save it as UTF-8") from None
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        fault = "is cut off" if cut else f"is not JSON: {error.msg}"
        raise TraceError(f"{where}: {fault} at line {error.lineno} column {error.colno}; export it again") from None
    except (ValueError, RecursionError) as error:  # a number of more digits than Python converts
        raise TraceError(f"{where}: cannot be read as JSON: {error}; export it again") from None


def documents_in(path: Path, content: bytes, troubles: Troubles) -> list[tuple[str, Any]]:
    """The documents of a file with one, a list of them, or one a line; each with the key path to it.

    Raises:
        TraceError: the file is none of these.
    """
    try:
        whole = parse_json(content, path, troubles)
    except TraceError:
        lines = [(number, line) for number, line in enumerate(content.splitlines(), start=1) if line.strip()]
        if len(lines) == 1:
            raise
        documents: list[tuple[str, Any]] = []
        for number, line in lines:
            try:
                documents.append((f"line {number}", parse_json(line, f"{path}:{number}", troubles)))
            except TraceError:
                if not documents:
                    raise  # neither a document nor the first of several
                troubles.add("is not JSON and was left out", f"line {number}")
        return documents
    if isinstance(whole, list):
        return [(f"[{number}]", document) for number, document in enumerate(whole)]
    return [("", whole)]


def write_pieces(path: Path, pieces: Iterable[str]) -> None:
    """Write a new file completely or, whatever happens, not at all; its text need never be in memory at once.

    Raises:
        TraceError: the file exists, or cannot be written.
    """
    try:
        if path.exists():
            raise TraceError(f"{path}: exists already; delete it or give another path")
        with whole_file(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(pieces)
    except OSError as error:
        raise TraceError(f"{path}: cannot be written: {error.strerror}; make room or give another path") from error


def json_pieces(document: Any) -> Iterator[str]:
    """The result of `to_json` in pieces; an iterator in an object becomes a list."""
    if isinstance(document, dict) and any(isinstance(part, dict | Iterator) for part in document.values()):
        for number, (key, value) in enumerate(document.items()):
            yield f"{', ' if number else '{'}{to_json(key)}: "
            yield from json_pieces(value)
        yield "}"
    elif isinstance(document, Iterator):
        begun = False
        while rows := list(islice(document, _AT_ONCE)):
            yield f"{', ' if begun else '['}{to_json(rows)[1:-1]}"
            begun = True
        yield "]" if begun else "[]"
    else:
        yield to_json(document)


def require_room(graph: ExecutionGraph, repeated: Iterable[Link] = ()) -> None:
    """Check that a graph's values fit into a document: a trace file stores a large one once, a document each time.

    Args:
        graph: whose variables are written, each with its value.
        shown: links at which the value is written once more.

    Raises:
        TraceError: they do not fit.
    """
    lengths: dict[int, int] = {}  # by object: a value stored once in the file is one object

    def length(vid: str) -> int:
        value = graph.variables[vid].value
        if id(value) not in lengths:
            lengths[id(value)] = len(value) if isinstance(value, str) else len(json.dumps(value))
        return lengths[id(value)]

    total = sum(map(length, graph.variables)) + sum(length(vid) for _, vid in repeated)
    if total > MOST_TEXT:
        raise TraceError(
            f"the values, written each time they occur, have {total:,} characters, and a file may have "
            f"{MOST_TEXT:,}; export a part of the trace: see `memtune trace slice --help`"
        )


def to_json(document: Any, *, indent: int | None = None) -> str:
    """`document` as JSON that can be encoded in UTF-8 and that any reader accepts."""
    try:
        text = json.dumps(document, ensure_ascii=False, indent=indent, allow_nan=False)
    except ValueError:  # a parser reads an overflowing number, such as 1e999, as an infinity
        text = json.dumps(snapshot(document), ensure_ascii=False, indent=indent, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair is valid text in Python, but not in UTF-8
        return json.dumps(json.loads(text), indent=indent)
    return text


def moment_in(time_value: Any, path: str, troubles: Troubles) -> int:
    """Epoch nanoseconds, given as number or text; 0 for None and, with a warning, for anything else."""
    if time_value is None:
        return 0
    try:
        moment = (
            time_value
            if type(time_value) is int
            else int(time_value)
            if isinstance(time_value, str) and len(time_value) < 32
            else -1
        )
    except ValueError:
        moment = -1
    if 0 <= moment < 2**63:
        return moment
    troubles.add("is not a time in nanoseconds; 0 was used", path)
    return 0


def mapping(value: Any) -> Mapping[str, Any]:
    """`value` if it is an object, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def text_or_none(value: Any) -> str | None:
    """`value` if it is non-empty text, otherwise None."""
    return value if isinstance(value, str) and value else None


def first_of(facts: Mapping[str, Any], names: Iterable[str]) -> Any:
    """The value of the first of these names that has one, None if none has."""
    return next((facts[name] for name in names if facts.get(name) is not None), None)
