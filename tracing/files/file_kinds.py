"""What a file looks like, by its first bytes and keys, and which command takes it: for messages about a wrong file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from tracing.package_data import packaged_tables

TRACE, OTLP, MLFLOW, SMARTCOMMENT = "trace", "otlp", "mlflow", "smartcomment"
ATTRIBUTIONS, JSONL = "attributions", "jsonl"

_START = 1 << 16
_MOST_ROWS = 20


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file.

    Attributes:
        name: of the format or data set, for those that memtune reads; elsewhere any word.
        what: it is, in a few words, such as `an OpenTelemetry trace`.
        remedy: which command takes it, or what to do with it, with `{path}` and `{name}`.
    """

    name: str
    what: str
    remedy: str


def kind_of(path: Path) -> FileKind | None:
    """The kind of a file or folder; None for one that is not known or cannot be read."""
    if path.is_dir():
        return _kind("folder")
    if not path.is_file():
        return None  # what is read from a pipe is gone
    try:
        with path.open("rb") as file:
            start = file.read(_START)
    except OSError:
        return None
    if not start.strip():
        return _kind("empty")
    for signature, name in _tables().signatures.items():
        if re.match(signature.encode(), start, re.DOTALL | re.IGNORECASE):
            return _kind(name)
    rows = _rows(start)
    if not rows:
        return _text_kind(path, start.decode(errors="replace"))
    objects = [row for row in rows if isinstance(row, Mapping)]
    # The first may have nothing to be known by, as a chat without a message.
    known = next(filter(None, map(_kind_by_layout, objects)), None)
    return known or (_json_with(rows[0]) if isinstance(rows[0], Mapping) else None)


def likeness(path: Path, *refused_by: str) -> str:
    """`it looks like …; COMMAND takes it`, for the message of a reader that refused a file; empty if nothing is known.

    Args:
        path: of the file.
        refused_by: names of the kinds that the reader takes; it is no news that the file looks like these.
    """
    kind = kind_of(path)
    if kind is None or kind.name in refused_by:
        return ""
    return f"it looks like {kind.what}; {kind.remedy.format(path=path, name=kind.name)}"


def _rows(start: bytes) -> list[Any]:
    """The first objects of a file that begins so, as far as that tells them: of a list, of lines, or the whole.

    Of a list of lists they are the first of each. None of what is not JSON.
    """
    from pydantic_core import from_json

    text = whole_characters(start).decode("utf-8-sig", errors="ignore").lstrip()
    rows: list[Any] = []
    for each in (text, *(line for line in text.split("\n")[1:_MOST_ROWS] if line[:1] == "{")):
        try:
            row = from_json(each, allow_partial=True)
        except ValueError:
            break
        rows += row[:_MOST_ROWS] if isinstance(row, list) and row else [row]
    rows = [row[0] if isinstance(row, list) and row else row for row in rows]
    return [row for row in rows if row is not None]


_ESCAPES = re.compile(rb"(\\\\|\\u[dD][89abAB]\w{2}\\u[dD][c-fC-F]\w{2})|\\u[dD][89a-fA-F]\w{2}")


def whole_characters(json_text: bytes) -> bytes:
    """JSON in which each half of a character (a lone surrogate), which no UTF-8 can hold, is U+FFFD.

    Exports have them where an emoji was cut in two; the parsers in use refuse the whole text for one.
    """
    return _ESCAPES.sub(lambda escape: escape[1] or rb"\ufffd", json_text)


MESSAGES = ("conversations", "conversation", "messages", "items", "chat_messages", "contents")
"""Keys of a chat under which its messages are."""

HOLDERS = ("data", "chats", "threads", "values", "body")
"""Keys of an object around a chat, its messages, or several chats."""

_ROLES, _TEXTS = ("role", "from", "author", "speaker", "sender"), ("content", "value", "parts", "text", "tool_calls")
_LANGCHAIN = ("human", "ai", "system", "tool", "user", "assistant", "constructor")


def is_message(row: Any) -> bool:
    """Whether an object is a message of a chat in one of the layouts that memtune reads, LangChain's among them."""
    if not isinstance(row, Mapping):
        return False
    typed = row.get("type") in _LANGCHAIN and any(key in row for key in ("content", "data", "kwargs", "message"))
    return typed or (any(key in row for key in _ROLES) and any(key in row for key in _TEXTS))


def is_chat(row: Any, depth: int = 2) -> bool:
    """Whether an object is a message, a chat, or something around one."""
    if is_message(row):
        return True
    contents = [row.get(key) for key in (*MESSAGES, *HOLDERS)] if isinstance(row, Mapping) else []
    first = (content[0] if isinstance(content, list) and content else content for content in contents)
    return depth > 0 and any(is_chat(part, depth - 1) for part in first)


@dataclass(frozen=True, slots=True)
class _Layout:
    """A row of the layouts in `file_kinds.toml`, which says what each condition asks for."""

    kind: str
    keys: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    inner: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    chat: bool = False

    def fits(self, row: Mapping[str, Any]) -> bool:
        return (
            all(key in row for key in self.keys)
            and (not self.one_of or any(key in row for key in self.one_of))
            and all(row.get(key) in values for key, values in self.values.items())
            and all(_has_within(row.get(key), names) for key, names in self.inner.items())
            and (not self.chat or is_chat(row))
        )


def _has_within(value: Any, names: tuple[str, ...]) -> bool:
    value = value[0] if isinstance(value, list) and value else value
    return isinstance(value, Mapping) and any(name in value for name in names)


@dataclass(frozen=True, slots=True)
class _Tables:
    phrases: Mapping[str, str]
    kinds: Mapping[str, Mapping[str, str]]
    signatures: Mapping[str, str]
    layouts: tuple[_Layout, ...]


@cache
def _tables() -> _Tables:
    return msgspec.convert(packaged_tables("tracing.files", "file_kinds.toml"), _Tables)


def _kind(name: str) -> FileKind:
    kind = _tables().kinds[name]
    remedy = kind["remedy"]
    for phrase, words in _tables().phrases.items():
        remedy = remedy.replace(f"{{{phrase}}}", words)
    return FileKind(name, kind["what"], remedy)


def _kind_by_layout(row: Mapping[str, Any]) -> FileKind | None:
    return next((_kind(layout.kind) for layout in _tables().layouts if layout.fits(row)), None)


_KEYS_SHOWN = 5
_JSON = re.compile(r"\s*(?:\{\s*[\"}]|\[\s*[\[\]{\"])")
"""How a text of objects begins, as no log does whose lines begin with a time in brackets."""


def _json_with(row: Mapping[str, Any]) -> FileKind:
    keys = ", ".join(str(key)[:40] for key in list(row)[:_KEYS_SHOWN])
    more = ", …" if len(row) > _KEYS_SHOWN else ""
    remedy = _tables().phrases["docs"]
    return FileKind("json", f"JSON with the keys {keys}{more}" if row else "JSON without a key", remedy)


def _text_kind(path: Path, text: str) -> FileKind | None:
    """The kind of a text that is not JSON: a table by its columns, or by the ending of its name."""
    header = text.lstrip("\ufeff").partition("\n")[0].strip()
    columns = [name.strip().strip('"') for name in re.split(r"[,;\t]", header)]
    if path.suffix in (".csv", ".tsv") or (len(columns) > 2 and all(name.isidentifier() for name in columns)):
        names = ", ".join(name[:40] for name in columns[:_KEYS_SHOWN])
        return _kind_by_layout(dict.fromkeys(columns, "")) or FileKind(
            "table", f"a table with the columns {names}", "docs/data-format.md says which tables memtune reads"
        )
    if path.suffix in (".yaml", ".yml"):
        return _kind("config")
    if "\x00" in text:
        return _kind("binary")
    is_json = path.suffix in (".json", ".jsonl") or _JSON.match(text)
    return _kind("broken" if is_json else "text")
