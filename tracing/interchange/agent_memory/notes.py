"""What the arguments and results of a memory's tools say: the entries in them, with ids where they have some."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracing.files.depth import structured
from tracing.graph.identities import user_in
from tracing.interchange.literals import decoded
from tracing.interchange.speech import speech_of

_WRAPPED = ("structuredContent", "structured_content", "output", "kwargs", "data", "response", "result", "update")
"""Keys under which a result lies in what frameworks put around it."""
_AROUND = frozenset(("output", "kwargs", "tags", "metadata"))
_ROWS = ("results", "memories", "items", "entries", "notes", "facts", "matches", "hits", "records", "entities", "nodes")
_IDS = ("id", "memory_id", "memoryId", "note_id", "fact_id", "entry_id", "uuid", "key", "uid", "entityName", "path")
_TEXTS = ("memory", "text", "content", "fact", "note", "page_content", "document", "observation", "statement", "line")
_LISTED = ("observations", "contents", "addedObservations")
_ASIDE = re.compile(
    r"(?:.*_)?(?:user|agent|run|session|thread|app|org|project|tenant|customer|tool_call|call)(?:_?id)?|namespace|limit|"
    r"top_?k|k|n|score|distance|similarity|status|success|ok|type|kind|category|tags?|metadata|timestamp|created_at|"
    r"updated_at|time|date|event|action|operation|command|method|mode|error|infer|importance|version|hash|entityType|"
    r"reason|source|max_results|threshold|config|runtime|self|ctx",
    re.IGNORECASE,
)
"""Names of arguments and fields that are not what is kept."""
_MARK = re.compile(
    r"\s*(?:[-*•·]\s+|\d{1,3}[.)]\s+)?(?:[\[(](?:id\s*[:=]\s*)?(?P<id>[^\s\])]{1,64})[\])]\s*:?|"
    r"(?:memory\s+)?(?:id|key)\s*[:=]\s*(?P<named>[^\s,;|]{1,64})[\s,;|:-]+|(?P<leading>[a-z]{1,8}[-_]?\d{1,9}):\s)?"
    r"\s*(?P<text>.*)",
    re.IGNORECASE,
)
_LAST = re.compile(r"\s*[\[(](?:memory[ _])?id\s*[:=]\s*(?P<id>[^\s\])]{1,64})[\])]\s*$", re.IGNORECASE)
_MENTIONED = re.compile(
    r"\b(?:id|note|memory|fact|entry|key|record|item|line)\b[\s:#=]*[\"'`\[(]?(?P<id>[\w-]*\d[\w-]*)|"
    r"(?P<uuid>[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})|\b(?P<leading>[a-z]{1,8}[-_]?\d{1,9})(?=:\s)",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_DEEPEST = 12


@dataclass(frozen=True, slots=True)
class EntryText:
    """An entry as a tool names it; what is not told is empty.

    Attributes:
        id, text: of the entry.
        event: what a result says was done with it.
        user: whose it says that it is.
        parts: the pieces of the entry that it is about, where an entry is a list of them.
    """

    id: str
    text: str
    event: str = ""
    user: str = ""
    parts: tuple[str, ...] = ()

    def after(self, entry: str, role: str) -> str | None:
        """What an entry says once these pieces of it are stored or deleted; None if the whole entry is meant."""
        if not self.parts or role not in ("store", "delete"):
            return None
        if role == "store":
            return "; ".join(filter(None, (entry, *(part for part in self.parts if part not in entry))))
        for part in self.parts:
            entry = entry.replace(part, "")
        pieces = [piece for piece in entry.split(";") if piece.replace(f"{self.id}:", "").strip()]
        return ";".join(pieces).strip()


def says_nothing(result: Any) -> bool:
    """Whether a result says, in a list without an entry, that nothing was stored."""
    value = unwrapped(result)
    rows = value.values() if isinstance(value, Mapping) else [value]
    return any(isinstance(row, list) and not row for row in rows)


def plain(text: str) -> str:
    """The words of a text in lower case, by which texts are compared."""
    return " ".join(_WORD.findall(text.casefold()))


def likeness(first: str, second: str) -> float:
    """The share of the words of the text with fewer that the other has too."""
    words, other_words = set(plain(first).split()), set(plain(second).split())
    return len(words & other_words) / min(len(words), len(other_words)) if words and other_words else 0.0


def arguments_of(value: Any) -> Any:
    """The arguments of a call, without what frameworks put around them."""
    for _ in range(_DEEPEST):
        value = structured(value)
        if isinstance(value, str) and value[:1] == "{":
            parsed = decoded(value)
            value = parsed if isinstance(parsed, Mapping) else value
        if not isinstance(value, Mapping):
            return value
        inner = value.get("input_str", value.get("kwargs"))
        if inner is None and len(value) == 1:
            inner = next(
                (value[key] for key in ("inputs", "arguments", "args", "input", "params") if key in value), None
            )
        if inner is None or not isinstance(structured(inner), Mapping | str):
            return value
        value = inner
    return value


def unwrapped(value: Any) -> Any:
    """The result of a call, without the message, the call or the parts that frameworks put around it."""
    for _ in range(_DEEPEST):
        value = structured(value)
        if isinstance(value, str) and value[:2] in ("{'", "[{", "['"):
            value = decoded(value)  # Python's way to write it
        if isinstance(value, list) and value and all(isinstance(part, Mapping) and "type" in part for part in value):
            texts = [part["text"] for part in value if isinstance(part.get("text"), str)]
            if len(texts) != len(value):
                return value
            value = [structured(text) for text in texts] if len(texts) > 1 else texts[0]
            continue
        if not isinstance(value, Mapping):
            return value
        if "tool_call_id" in value or "isError" in value or "lc" in value or _is_of_parts(value):
            inner = next((value[key] for key in ("structuredContent", "kwargs", "content") if value.get(key)), None)
        elif _is_around(value):
            inner = next((value[key] for key in _WRAPPED if value.get(key) is not None), None)
        else:
            return value
        if inner is None:
            return value
        value = inner
    return value


def _is_of_parts(value: Mapping[str, Any]) -> bool:
    """Whether an object is a result of MCP, which has its parts as `content`."""
    parts = value.get("content")
    parts = parts if isinstance(parts, list) else []
    return bool(parts) and all(isinstance(part, Mapping) and "type" in part for part in parts)


def _is_around(value: Mapping[str, Any]) -> bool:
    """Whether an object is what a framework puts around a result."""
    typed = value.get("type") in ("tool", "constructor") or {"name", "response"} <= value.keys() or len(value) == 1
    return typed or isinstance(value.get("output"), Mapping)


def notes_in(value: Any, depth: int = 0) -> list[EntryText]:
    """The entries that a result shows, in order; a text has one in each line."""
    value = unwrapped(value)
    if isinstance(value, str):
        return list(_lines(value))
    if depth > _DEEPEST or value is None or isinstance(value, bool | int | float):
        return []
    if isinstance(value, Sequence):
        return [note for part in value for note in notes_in(part, depth + 1)]
    ids, documents = value.get("ids"), value.get("documents")
    if isinstance(ids, list) and isinstance(documents, list):  # Chroma's, a list for each query
        pairs = zip(_flat(ids), _flat(documents), strict=False)
        return [EntryText(str(name), text) for name, text in pairs if isinstance(text, str)]
    for key in _ROWS:
        if isinstance(value.get(key), list | Mapping):
            return notes_in(value[key], depth + 1)
    if not id_in(value) and (rows := next(filter(_are_rows, value.values()), None)):
        return notes_in(rows, depth + 1)
    inner = next(
        (part for key in ("value", "data", "document", "payload") if isinstance(part := value.get(key), Mapping)), None
    )
    text = text_in(value) if inner is None else text_in(inner)
    return [EntryText(id_in(value), text, str(value.get("event") or ""), _owner_in(value))] if text else []


def _are_rows(value: Any) -> bool:
    """Whether a value is a list of objects, as the entries of a result are."""
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _owner_in(entry: Mapping[str, Any]) -> str:
    """Whose an entry is, by a field of it or of its metadata."""
    holders = [entry, *(about for key in ("metadata", "value") if isinstance(about := entry.get(key), Mapping))]
    return next(filter(None, map(user_in, holders)), "")


def text_in(fields: Any) -> str:
    """What is kept or told in the arguments of a call or in an entry, without ids and what is beside it."""
    fields = structured(fields)
    if isinstance(fields, str):
        return fields.strip()
    if isinstance(fields, bool | int | float):
        return str(fields)
    if isinstance(fields, Sequence):
        return "\n".join(filter(None, map(text_in, fields)))
    if not isinstance(fields, Mapping):
        return ""
    if isinstance(fields.get("role"), str) and "content" in fields:
        return speech_of(fields).text
    named = next((str(fields[key]) for key in ("name", "entityName") if isinstance(fields.get(key), str)), "")
    for key in _LISTED:
        if isinstance(fields.get(key), list):
            listed = "; ".join(map(text_in, fields[key]))
            return f"{named}: {listed}" if named else listed
    whole = next((fields[key] for key in _TEXTS if isinstance(fields.get(key), str) and fields[key].strip()), None)
    if whole is not None:
        return str(whole).strip()
    content = {key: fields[key] for key in fields if key not in _IDS and not is_id(key) and not _ASIDE.fullmatch(key)}
    texts = list(filter(None, map(text_in, content.values())))
    label = id_in(fields)
    return f"{label}: {texts[0]}" if len(texts) == 1 and label.replace("_", "").isalpha() else "\n".join(texts)


def id_in(fields: Any) -> str:
    """The id of an entry in the arguments of a call or in the entry itself; empty if there is none."""
    if not isinstance(fields, Mapping):
        return ""
    names = (*_IDS, *(key for key in fields if is_id(key)), "name")
    return next((str(fields[key]) for key in names if isinstance(fields.get(key), str | int) and fields[key] != ""), "")


def is_id(name: str) -> bool:
    """Whether a field's name is that of an entry's id."""
    return name.lower().endswith(("_id", "_key", "Id")) and not _ASIDE.fullmatch(name)


def asked_in(arguments: Any, *, flat: bool = True) -> list[EntryText]:
    """The entries that the arguments of a call name: a list of them under any name, or one, with its id if `flat`.

    Example:
        >>> [note.id for note in asked_in({"deletions": [{"entityName": "Ilse", "observations": ["Studies law."]}]})]
        ['Ilse']
    """
    fields = arguments.values() if isinstance(arguments, Mapping) else [arguments]
    rows = next((value for value in map(structured, fields) if _is_of_rows(value)), None)
    if rows is None:
        return [EntryText(id_in(arguments) if flat else "", text_in(arguments))]
    return [EntryText(id_in(row), text_in(row), parts=_pieces(row)) for row in rows]


def _pieces(row: Mapping[str, Any]) -> tuple[str, ...]:
    return next((tuple(map(str, row[key])) for key in _LISTED if isinstance(row.get(key), list)), ())


def _is_of_rows(value: Any) -> bool:
    """Whether a value is a list of entries, and not of messages."""
    rows = value if isinstance(value, list) else []
    return bool(rows) and all(isinstance(row, Mapping) and "role" not in row and text_in(row) for row in rows)


def told_of(result: Any, text: str) -> list[EntryText]:
    """What a result says was stored for a text; an empty text where it only says which entry, none where nothing."""
    value = unwrapped(result)
    if isinstance(value, str):
        marked = [note for note in _lines(value) if note.id]
        if marked:
            return [note if likeness(note.text, text) > 0 else EntryText(note.id, "") for note in marked]
        mentioned = _MENTIONED.search(value)
        name = next(filter(None, mentioned.groups()), "") if mentioned else ""
        after = value[mentioned.end() :].lstrip(" :\"'`])") if mentioned else value
        stored = after if likeness(after, text) >= 0.5 and len(plain(after).split()) > 1 else ""
        return [EntryText(name, stored)] if name or stored else []
    notes = notes_in(value)
    if isinstance(value, Mapping) and not any(isinstance(value.get(key), list) for key in _ROWS):
        notes = [note if likeness(note.text, text) > 0 else EntryText(note.id, "") for note in notes]
        notes = notes or ([EntryText(id_in(value), "")] if id_in(value) else [])
    return [note for note in notes if note.id or note.text]


def _lines(text: str) -> Iterator[EntryText]:
    for line in text.splitlines():
        last = _LAST.search(line)
        mark = _MARK.fullmatch(line[: last.start()] if last else line)
        if mark is not None and mark["text"].strip():
            marked = last["id"] if last else mark["id"] or mark["named"] or mark["leading"]
            yield EntryText(marked or "", mark["text"].strip())


def _flat(values: Sequence[Any]) -> list[Any]:
    return [part for value in values for part in (value if isinstance(value, list) else [value])]
