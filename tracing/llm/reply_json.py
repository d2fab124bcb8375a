"""The JSON that a model wrote, read as tolerantly as people would: the value counts, not how it is wrapped or quoted.

Libraries that repair JSON were tried: on hostile replies of 16 KB they take a minute, and they close what a model left
open, which hides that a reply was cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from tracing.errors import MalformedReplyError
from tracing.llm.http.strict_json import check_depth, refuse_constant, strict_json

LONGEST_MENDED = 50_000
"""Characters of the longest reply whose JSON is mended; longer ones must be JSON as they are."""

_MOST_STRAY_BRACES = 1000
"""After so many braces that begin no object, a text counts as having none: each costs a pass over the text."""

_BEGIN, _END = re.compile(r"[{\[]"), re.compile(r"[}\]](?=[^}\]]*\Z)")
_FENCED = re.compile(r"```[A-Za-z0-9_+-]*[ \t]*\r?\n(.*?)```", re.DOTALL)
_TOKEN = re.compile(
    r'(?P<double>"(?:[^"\\]|\\.)*")'
    # An apostrophe within single quotes is not the end of them: what follows would be.
    r"|(?P<single>'(?:[^'\\]|\\.|'(?![ \t\r\n]{0,50}[,:}\]]))*')"
    r"|“(?P<curly>[^“”]*)”"
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<comma>,)(?=[ \t\r\n]{0,50}[}\]])"
    r"|(?P<name>[{,][ \t\r\n]{0,50}[A-Za-z_]\w{0,99}(?=[ \t]{0,9}:))"
    r"|(?P<word>\b(?:True|False|None)\b)",
    re.DOTALL,
)
_NAME = re.compile(r"\w+")
_NEEDLESS_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|(.))', re.DOTALL)
_WORDS = {"True": "true", "False": "false", "None": "null"}


def read_json(text: str, *, fields: Collection[str] = ()) -> Any:
    """The JSON value of a reply: an object, a list, or, where the reply is nothing but JSON, any value.

    Read are also a byte order mark, a fence, chatter around the value, commas at the end of lists and objects, single
    and typographic quotes, names without quotes, needless escapes, comments, and Python's True, False and None. Of
    several objects the last counts: a model reasons first. JSON within a JSON string, and an object that is the only
    one of a list, count themselves.

    Args:
        fields: names that an object is expected to have; one that has none of them may be wrapped in another.

    Raises:
        MalformedReplyError: there is none, it is not closed, or it is as `strict_json` refuses it.

    Example:
        >>> read_json("Sure! ```json\\n{'facts': ['a', 'b',], 'more': None}\\n```")
        {'facts': ['a', 'b'], 'more': None}
    """
    value = _value(text)
    if isinstance(value, str) and value.strip()[:1] in ("{", "["):
        value = _value(value)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        (value,) = value
    if isinstance(value, dict) and len(value) == 1 and fields and not value.keys() & set(fields):
        (inner,) = value.values()
        return inner if isinstance(inner, dict) else value
    return value


def _value(text: str) -> Any:
    text = text.strip("\ufeff \t\r\n")
    try:
        return strict_json(text)
    except MalformedReplyError as error:
        if "not JSON" not in str(error):
            raise
        begin, end = _BEGIN.search(text), _END.search(text)
        if begin is None or end is None or end.end() <= begin.start() or len(text) > LONGEST_MENDED:
            raise
        value = _mended(text, begin.start(), end.end())
        if value is None:
            raise
        return value


def object_in(text: str) -> dict[str, Any] | None:
    """The JSON object in a reply, as `read_json` reads it; None if there is none."""
    try:
        value = read_json(text)
    except MalformedReplyError:
        return None
    return value if isinstance(value, dict) else None


def _mended(text: str, begin: int, end: int) -> Any:
    fenced = [match[1].strip() for match in _FENCED.finditer(text)]
    for candidate in (*reversed(fenced), text[begin:end]):
        for written in (candidate, _TOKEN.sub(_as_json, candidate)):
            try:
                return strict_json(written, line_breaks=True)
            except MalformedReplyError:
                value = _last_object(written)
            if value is not None:
                return value
    return None


def _as_json(match: re.Match[str]) -> str:
    token = match[0]
    match match.lastgroup:
        case "single":
            inner = re.sub(r"\\'", "'", token[1:-1])
            return '"' + re.sub(r'(?<!\\)"', r"\"", inner) + '"'
        case "word":
            return _WORDS[token]
        case "double":
            return _NEEDLESS_ESCAPE.sub(lambda escape: escape[2] or escape[0], token)
        case "curly":
            return json.dumps(match["curly"])
        case "name":
            return _NAME.sub(lambda name: f'"{name[0]}"', token)
    return ""


def _last_object(text: str) -> dict[str, Any] | None:
    """The last JSON object in a text that is not inside another; None if there is none."""
    decoder = json.JSONDecoder(parse_constant=refuse_constant)
    last: dict[str, Any] | None = None
    attempts_left = _MOST_STRAY_BRACES
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
            check_depth(value)
        except (RecursionError, MalformedReplyError):
            # The braces that follow are nested as deep.
            return None
        except ValueError:
            attempts_left -= 1
            if not attempts_left:
                return None
            end = at + 1
        else:
            last = value
        at = text.find("{", end)
    return last
