"""What a file looks like, by its first bytes and keys, and which command takes it: for messages about a wrong file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracing.files.trace_lines import FORMAT

TRACE, OTLP, MLFLOW, SMARTCOMMENT = "trace", "otlp", "mlflow", "smartcomment"
ATTRIBUTIONS, JSONL = "attributions", "jsonl"

_START = 1 << 16


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
        return _FOLDER
    try:
        with path.open("rb") as file:
            start = file.read(_START)
    except OSError:
        return None
    if not start.strip():
        return _EMPTY
    for signature, kind in _SIGNATURES:
        if re.match(signature, start, re.DOTALL | re.IGNORECASE):
            return kind
    row = first_row(start)
    if isinstance(row, Mapping):
        return next((kind for kind, fits in _LAYOUTS if fits(row)), _json_with(row))
    return _text_kind(path, start.decode(errors="replace")) if row is None else None


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


def first_row(start: bytes) -> Any:
    """The first object of a file that begins with these bytes, as far as they tell it: of a list, a line, or the whole.

    Of a list of lists it is the first list's. None if they are not JSON.
    """
    from pydantic_core import from_json

    try:
        row = from_json(start.decode("utf-8-sig", errors="ignore").lstrip(), allow_partial=True)
    except ValueError:
        return None
    for _ in range(2):
        row = row[0] if isinstance(row, list) and row else row
    return row


_EMPTY = FileKind("empty", "an empty file", "make or export it again")
_FOLDER = FileKind("folder", "a folder", "give a file in it")

_MAKE = "save it as CSV or JSON lines first, see docs/data-format.md"
_SIGNATURES: tuple[tuple[bytes, FileKind], ...] = (
    (
        rb"PK\x03\x04.{0,65536}\bxl/",
        FileKind("xlsx", "an Excel workbook", "save its sheet as CSV, see docs/data-format.md"),
    ),
    (rb"PK\x03\x04|PK\x05\x06", FileKind("zip", "a zip archive", "unpack it, and give a file in it")),
    (rb"\x1f\x8b", FileKind("gzip", "a file compressed by gzip", "unpack it first: gunzip {path}")),
    (rb"BZh|\xfd7zXZ|\x28\xb5\x2f\xfd|7z\xbc\xaf", FileKind("archive", "a compressed file", "unpack it first")),
    (rb"PAR1", FileKind("parquet", "a Parquet file", _MAKE)),
    (rb"ARROW1|FEA1", FileKind("arrow", "an Arrow file", _MAKE)),
    (rb"SQLite format 3\x00", FileKind("sqlite", "an SQLite database", "export what is in it as CSV or JSON lines")),
    (rb"%PDF-", FileKind("pdf", "a PDF", _MAKE)),
    (rb"\x89PNG|\xff\xd8\xff|GIF8", FileKind("image", "an image", "give a file of text")),
    (rb"\x80[\x02-\x05]", FileKind("pickle", "a Python pickle, which memtune never opens", _MAKE)),
    (rb"\xff\xfe|\xfe\xff", FileKind("utf-16", "a text in UTF-16", "save it as UTF-8")),
    (
        rb"version https://git-lfs",
        FileKind("lfs", "a pointer of Git LFS in place of the file", "fetch it: git lfs pull"),
    ),
    (
        rb"(?:\xef\xbb\xbf)?\s*(?:<!--.{0,2000}?-->\s*)?<(?:!doctype html|html|head|body)\b",
        FileKind("html", "a web page", "download the file itself, not the page about it"),
    ),
    (rb"(?:\xef\xbb\xbf)?\s*<(?:\?xml|[a-z])", FileKind("xml", "XML", _MAKE)),
)


def _has(*keys: str, **values: Any) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a row has these keys, and these values."""
    return lambda row: (
        all(key in row for key in keys) and all(row.get(key) == expected for key, expected in values.items())
    )


def _inner(key: str, *keys: str) -> Callable[[Mapping[str, Any]], bool]:
    """Whether what is under a key of a row, or the first that is in it, has one of these keys."""

    def fits(row: Mapping[str, Any]) -> bool:
        value = row.get(key)
        value = value[0] if isinstance(value, list) and value else value
        return isinstance(value, Mapping) and any(name in value for name in keys)

    return fits


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


_CHECK = "`memtune data validate {path}` checks it, and `memtune run --dataset {name} --data {path}` takes it"
_NOT_READ = "memtune does not read it"
_RECORD = "record the memory that answered, see docs/tracing.md"
_OTHER_SPANS = FileKind(
    "spans", "spans in a form that memtune does not read", "export them as OTLP in JSON, see docs/interchange.md"
)
_SPANS = FileKind(
    OTLP,
    "an OpenTelemetry trace",
    "`memtune trace import {path} --from otlp --out TRACE` takes it, and `memtune data validate` a folder of it",
)
_GRAPH = FileKind(
    SMARTCOMMENT,
    "a graph of smartcomment or MemTraceBench",
    "`memtune attribute {path}` and `memtune trace import {path} --from smartcomment --out TRACE` take it",
)
_LOCOMO = FileKind("locomo", "LoCoMo", f"{_CHECK}")

_LAYOUTS: tuple[tuple[FileKind, Callable[[Mapping[str, Any]], bool]], ...] = (
    (
        FileKind(TRACE, "a trace of memtune", "`memtune trace show {path}` and `memtune attribute {path}` take it"),
        _has(type="header", format=FORMAT),
    ),
    (
        FileKind(ATTRIBUTIONS, "what `memtune attribute` wrote", "`memtune diagnose {path}` takes it"),
        _has("method", type="attributions"),
    ),
    (_SPANS, lambda row: "resourceSpans" in row or "resource_spans" in row),
    (
        FileKind(MLFLOW, "an MLflow trace", "`memtune trace import {path} --from mlflow --out TRACE` takes it"),
        lambda row: "info" in row and _inner("data", "spans")(row),
    ),
    (_GRAPH, lambda row: _inner("data", "nodes", "edges")(row) or ("graph_id" in row and "nodes" in row)),
    (FileKind("longmemeval", "LongMemEval", _CHECK), _has("haystack_sessions", "haystack_session_ids")),
    (_LOCOMO, lambda row: _inner("qa", "category")(row)),
    (_LOCOMO, _has("sample_id", "conversation")),
    (FileKind("openai-chats", "a ChatGPT export", _CHECK), _has("mapping")),
    (FileKind("realmem", "RealMem", _CHECK), _inner("dialogues", "session_identifier")),
    (FileKind("agent-traces", "projects of agents", _CHECK), _has("entity", "project", "sessions")),
    (FileKind(JSONL, "conversations in memtune's own layout", _CHECK), _has("sessions", "speakers")),
    (
        FileKind("beam", "a chat of BEAM", "`memtune run --dataset beam --data FOLDER` takes the folder of its chats"),
        _has("batch_number", "turns"),
    ),
    (
        FileKind("who-when", "Who&When: what agents said, and whose mistake it was", f"{_NOT_READ}: {_RECORD}"),
        lambda row: "mistake_agent" in row or ("history" in row and "mistake_step" in row),
    ),
    (
        FileKind("agents", "what agents did in some benchmark", f"{_NOT_READ}: {_RECORD}"),
        lambda row: "ground_truth" in row and ("history" in row or "trajectory" in row),
    ),
    (_OTHER_SPANS, lambda row: "run_type" in row and "inputs" in row),
    (_OTHER_SPANS, lambda row: _inner("data", "traceID")(row) or _inner("observations", "traceId", "type")(row)),
    (_OTHER_SPANS, lambda row: _inner("context", "span_id", "trace_id")(row) or "span_id" in row or "spanId" in row),
    (
        FileKind("questions", "a table of questions", "put it beside the conversations, see docs/data-format.md"),
        _has("conversation", "question", "answers"),
    ),
    (
        FileKind("csv", "a table of turns", "`memtune data validate FOLDER` takes the folder with turns.csv"),
        _has("conversation", "speaker", "text"),
    ),
    (
        FileKind("feedback", "feedback on traces", "`memtune attribute FOLDER` takes the folder of both"),
        _has("trace", "right"),
    ),
    (
        FileKind("complaints", "a log of complaints", "`memtune attribute TRACE --complaints {path}` takes it"),
        lambda row: "question" in row and ("reply" in row or "trace" in row),
    ),
    (
        FileKind(
            "sharegpt", "a chat log", f"{_CHECK}; `memtune attribute` needs a trace of the memory, see docs/tracing.md"
        ),
        is_chat,
    ),
    (_OTHER_SPANS, lambda row: any(key in row for key in ("traceId", "traceID", "trace_id", "traceEvents"))),
    (_OTHER_SPANS, _has("observations", "projectId")),
    (
        FileKind("part", "a part of a trace of memtune, without its first line", "record it again"),
        lambda row: row.get("type") in ("session", "variable", "operation") and "id" in row,
    ),
    (
        FileKind("part", "a part of what `memtune attribute` wrote, without its first line", "attribute again"),
        lambda row: row.get("type") in ("trace", "case") and "trace" in row,
    ),
)
"""Kinds of JSON, and of tables with these columns; the first that fits counts."""

_KEYS_SHOWN = 5
_JSON = re.compile(r"\s*(?:\{\s*[\"}]|\[\s*[\[\]{\"])")
"""How a text of objects begins, as no log does whose lines begin with a time in brackets."""


def _json_with(row: Mapping[str, Any]) -> FileKind:
    keys = ", ".join(str(key)[:40] for key in list(row)[:_KEYS_SHOWN])
    more = ", …" if len(row) > _KEYS_SHOWN else ""
    remedy = "docs/data-format.md and docs/interchange.md say what memtune reads"
    return FileKind("json", f"JSON with the keys {keys}{more}" if row else "JSON without a key", remedy)


def _text_kind(path: Path, text: str) -> FileKind | None:
    """The kind of a text that is not JSON: a table by its columns, or by the ending of its name."""
    header = text.lstrip("\ufeff").partition("\n")[0].strip()
    columns = [name.strip().strip('"') for name in re.split(r"[,;\t]", header)]
    if path.suffix in (".csv", ".tsv") or (len(columns) > 2 and all(name.isidentifier() for name in columns)):
        layout = next((kind for kind, fits in _LAYOUTS if fits(dict.fromkeys(columns, ""))), None)
        names = ", ".join(name[:40] for name in columns[:_KEYS_SHOWN])
        return layout or FileKind(
            "table", f"a table with the columns {names}", "docs/data-format.md says which tables memtune reads"
        )
    if path.suffix in (".yaml", ".yml"):
        return FileKind("config", "a configuration", "`memtune run {path}` takes it")
    if "\x00" in text:
        return FileKind("binary", "a binary file", _MAKE)
    if path.suffix in (".json", ".jsonl") or _JSON.match(text):
        return FileKind("broken", "JSON that is cut off or damaged", "make or export it again")
    return FileKind("text", "plain text", "docs/data-format.md and docs/interchange.md say what memtune reads")
