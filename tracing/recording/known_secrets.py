"""Secrets that are known, taken out of texts however they are spelled: encoded, twice, in part, or over several lines.

A text is searched as it is and with its escapes decoded, as often as there are any. What cannot be decoded in place,
base64 and hexadecimal digits, is searched for as the secret looks there.
"""

from __future__ import annotations

import base64
import functools
import html
import json
import re
from bisect import bisect_right
from contextlib import suppress
from urllib.parse import quote, quote_plus, unquote, urlsplit

from tracing.recording.credentials import REDACTED

_SHORTEST_SECRET = 6
"""Characters of a known secret below which it is taken for a word: local servers want any key, such as "none"."""

_SHORTEST_PART = 8
"""Characters of the beginning of a known secret by which it is recognised where the rest is missing."""

_MOST_TIMES_ENCODED = 4

_remembered: dict[str, None] = {}
"""Secrets that this process was given, so that a text which quotes one is redacted whoever wrote it."""


def remember(*secrets: str | None) -> None:
    """Take these secrets out of all messages and records from now on, unless a text may hold one by chance."""
    for secret in secrets:
        if secret is not None and (len(secret) >= 16 or (len(secret) >= 8 and re.search("[0-9]", secret))):
            _remembered[secret] = None


def remember_address(url: str) -> None:
    """Remember the password in an address, or the token that stands in place of a user and a password."""
    with suppress(ValueError):
        parts = urlsplit(url)
        secret = parts.password or parts.username
        remember(secret, unquote(secret or ""))


def without_remembered(text: str) -> str:
    """`text` without the secrets that are remembered, however they are spelled."""
    return without(text, *_remembered)


def without_plain(text: str) -> str:
    """`text` without the remembered secrets that it holds plain or encoded once: quick, for all that is recorded."""
    for secret in _remembered:
        plain, coded, _ = _spellings(secret)
        if any(spelling in text for spelling in (*plain, *coded[-3:])):
            text = without(text, secret)
    return text


# Each alternative begins with a character of its own, so that the expression is tried nowhere else, and what borders on
# another repetition is possessive, so that no part of a text is gone through from many places.
_LINE = r"\s*+(?:[>|\#+]++[ \t]*+)?[\"']?"
_ESCAPE = re.compile(
    r"%u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}|=3D"
    r"|&\#[0-9]{1,7};|&\#[xX][0-9A-Fa-f]{1,6};|&[A-Za-z]{2,24};"
    r"|\\++(?:u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]{1,6}\}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|[0-7]{3}|[rn][ \t]*+|[^\w\s])"
    r"|\\\\++"
    "|\x1b\\[[0-9;]*+m|\u00ad|\u200b|\u200c|\u200d|\u2060|\ufeff"
    rf"|\n{_LINE}|\r\n{_LINE}"
    r"|\"[ \t]*+\+?[ \t]*+[\"']|'[ \t]*+\+?[ \t]*+[\"']"
)
_BEFORE_LINE = " \t\"'+=\\|"
_MOST_BEFORE_LINE = 200
_CODE = re.compile(r"(?:%u?|\\+[uxU]\{?)([0-9A-Fa-f]{2,8})\}?")
_CAPITALS = {ord(letter): letter.lower() for letter in "ABCDEFX"}
_URL_SAFE = str.maketrans("-_", "+/")


def without(text: str, *secrets: str | None) -> str:
    """`text` without these secrets, however they are spelled, also where they are cut off."""
    for secret in secrets:
        if secret is not None and len(secret) >= _SHORTEST_SECRET:
            text = _without_secret(text, secret)
    return text


def _without_secret(text: str, secret: str) -> str:
    spans = _places(text, secret)
    decodings: list[_Decoding] = []
    view = text
    for _ in range(_MOST_TIMES_ENCODED):
        decoding = _Decoding(view)
        if decoding.text == view:
            break
        decodings.append(decoding)
        view = decoding.text
        for start, end in _places(view, secret):
            for earlier in reversed(decodings):
                start, end = earlier.start_of(start), earlier.end_of(end)
            spans.append((start, end))
    parts: list[str] = []
    copied = 0
    for start, end in sorted(spans):
        if start >= copied:
            parts += text[copied:start], REDACTED
        copied = max(copied, end)
    return "".join((*parts, text[copied:]))


class _Decoding:
    """A text with its escapes decoded, and from where each of its characters comes."""

    def __init__(self, text: str) -> None:
        self._places: list[int] = []
        self._from: list[tuple[int, int, int]] = []
        parts: list[str] = []
        length = copied = 0
        for match in _ESCAPE.finditer(text):
            start, character = match.start(), _decoded(match[0])
            if text[start] in "\r\n":
                least = max(copied, start - _MOST_BEFORE_LINE)
                while start > least and text[start - 1] in _BEFORE_LINE:
                    start -= 1
            length += start - copied
            self._places.append(length)
            self._from.append((start, match.end(), len(character)))
            parts += text[copied:start], character
            length, copied = length + len(character), match.end()
        self.text = "".join((*parts, text[copied:]))

    def start_of(self, place: int) -> int:
        """Where the character at a place begins in the text."""
        return self._origin(place)[0]

    def end_of(self, place: int) -> int:
        """Where the character before a place ends in the text."""
        return self._origin(place - 1)[1]

    def _origin(self, place: int) -> tuple[int, int]:
        number = bisect_right(self._places, place) - 1
        if number < 0:
            return place, place + 1
        start, end, length = self._from[number]
        beyond = place - self._places[number] - length
        return (start, end) if beyond < 0 else (end + beyond, end + beyond + 1)


def _decoded(escape: str) -> str:
    """The character that an escape stands for; nothing for what only separates two parts of a text."""
    code = _CODE.fullmatch(escape)
    if code is not None:
        number = int(code[1], 16)
        return chr(number) if number <= 0x10FFFF else escape
    if escape == "=3D":
        return "="
    if escape[0] == "&":
        return html.unescape(escape)
    if escape[0] != "\\" or "\n" in escape:
        return ""
    rest = escape.lstrip("\\").rstrip(" \t")
    if rest.isdigit():
        return chr(int(rest, 8))
    return "\\" if not rest else "" if rest in "rn" else rest


def _places(text: str, secret: str) -> list[tuple[int, int]]:
    """Where the secret, or its beginning, is in a text, with what it looks like in base64 and in hexadecimal."""
    plain, coded, digits = _spellings(secret)
    spans = [span for spelling in plain for span in _beginnings(text, spelling)]
    in_base64 = text.translate(_URL_SAFE) if "-" in text or "_" in text else text
    spans += (span for spelling in coded for span in _beginnings(in_base64, spelling))
    small = text.lower()
    if len(small) != len(text):  # one capital letter has two small ones
        small = text.translate(_CAPITALS)
    for pairs in digits:
        half = max(_SHORTEST_PART // 2, len(pairs) // 2)
        for match in _head_of(pairs[:half]).finditer(small):
            end = match.end()
            for pair in pairs[half:]:
                following = _head_of((pair,), after=True).match(small, end)
                if following is None:
                    break
                end = following.end()
            spans.append((match.start(), end))
    return spans


def _beginnings(text: str, spelling: str) -> list[tuple[int, int]]:
    """Where `spelling` is in a text, also where only its beginning is there."""
    head = spelling[: max(_SHORTEST_PART, len(spelling) // 2)]
    spans = []
    at = text.find(head)
    while at >= 0:
        end = at + len(head)
        while end < len(text) and end - at < len(spelling) and text[end] == spelling[end - at]:
            end += 1
        spans.append((at, end))
        at = text.find(head, end)
    return spans


@functools.lru_cache(maxsize=1024)
def _head_of(pairs: tuple[str, ...], *, after: bool = False) -> re.Pattern[str]:
    between = r"[\s:,-]{0,3}(?:0x)?"
    return re.compile((between if after else "") + between.join(pairs))


@functools.lru_cache(maxsize=32)
def _spellings(secret: str) -> tuple[list[str], list[str], list[tuple[str, ...]]]:
    """The secret as it is spelled in a text; in base64; and as pairs of hexadecimal digits."""
    raw = secret.encode("utf-8", "replace")
    in_json = json.dumps(secret)[1:-1]
    plain = {secret, raw.decode("latin-1"), quote(secret), quote(secret, safe=""), quote_plus(secret), in_json}
    plain |= {in_json.replace("/", "\\/"), repr(secret)[1:-1], repr(raw)[2:-1]}
    once = _in_base64(raw)
    # What is encoded twice is encoded whole the first time, or else as a part of something longer.
    before = [raw.hex().encode(), *(spelling.encode("utf-8", "replace") for spelling in {*plain, *once} - {secret})]
    twice = {spelling for spelled in before for spelling in _in_base64(spelled)}
    digits = {tuple(re.findall("..", spelled.hex())) for spelled in (raw, *(spelling.encode() for spelling in once))}
    return (
        sorted(plain, key=len, reverse=True),
        [*sorted(twice - once, key=len, reverse=True), *sorted(once)],
        sorted(digits, key=len, reverse=True),
    )


def _in_base64(raw: bytes) -> set[str]:
    """What is the same of it in base64, whatever stands before and after it: both shift it, and share bits with it."""
    spellings = set()
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + raw).decode()
        spellings.add(coded[-(-before * 8 // 6) : (before + len(raw)) * 8 // 6])
    return spellings
