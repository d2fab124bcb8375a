"""Credentials in texts: what looks like one, and what is set under the name of one; known ones: `known_secrets`."""

from __future__ import annotations

import re
from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit

REDACTED = "[redacted]"

# A conversation may say "bearer responsibilities": a bearer token needs a digit, or more letters than a word has.
_SECRET = re.compile(
    r"(?P<lead>\b(?:Bearer|bearer|BEARER)\s+)(?:(?=[\w.~+/=-]*\d)[\w.~+/=-]{8,}|[\w.~+/=-]{24,})"
    r"|(?P<basic>\b[Aa]uthorization[\"']?\s*[:=]\s*[\"']?[Bb]asic\s+)[\w+/=]{4,}"
    r"|(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{8,}"
    r"|\bhf_[A-Za-z0-9]{20,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}"
    r"|\bgithub_pat_[A-Za-z0-9_]{30,}"
    r"|\bgsk_[A-Za-z0-9]{30,}"
    r"|\bAIza[A-Za-z0-9_-]{30,}"
    r"|\bAKIA[A-Z0-9]{16}\b"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?:@[^/\s@]+)*(?=@)"
)
# Scanning for a plain piece is some twenty times faster than the expression, and nearly every text holds none. Those
# that come after a character that few texts hold are looked for only where it is.
_PIECES = (
    ("-", ("sk-", "xox")),
    ("_", ("hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "gsk_")),
    ("earer", ("earer",)),
    ("EARER", ("EARER",)),
    ("uthorization", ("uthorization",)),
    ("AIza", ("AIza",)),
    ("AKIA", ("AKIA",)),
    ("://", ("://",)),
)
SECRET_ENDINGS = (
    *("apikey", "accesskey", "secretkey", "privatekey", "password"),
    *("accesstoken", "refreshtoken", "authtoken", "clientsecret", "sessiontoken", "securitytoken", "bearertoken"),
    *("azureadtoken", "identitytoken", "hftoken", "bearertokenbedrock", "vertexcredentials"),
)
"""How names of secrets end, in their plain form."""

# A setting in a text, as an address, a shell, JSON or a repr spells it: api_key=…, "api_key": "…".
_WORDS = ("key", "Key", "KEY", "oken", "OKEN", "ecret", "ECRET", "assword", "ASSWORD")
_SIGN = re.compile("[=:]")
_LONGEST_NAME = 40
_OPENING = re.compile(r"\s*[bBfFrRuU]{0,2}(\\{0,15})([\"'])")
_BARE = re.compile(r"[^\s\"'\\&,;)=][^\s\"'\\&,;)]*")
_BARE_JSON = re.compile(r"\s*(?!(?:null|true|false|None|True|False)\b)([^\s\"'\\,;:(){}\[\]]+)")
_BRACKET = re.compile(r"\s*([\w.]{0,80}([\[{(]))")
_CLOSING = {"[": "]", "{": "}", "(": ")"}


def redact(text: str) -> str:
    """`text` with provider keys, tokens, passwords and other credentials replaced by `[redacted]`."""
    if "=" in text or (":" in text and ('"' in text or "'" in text)):
        for word in _WORDS:
            if word in text:
                text = _without_settings(text)
                break
    for first, pieces in _PIECES:
        if first in text:
            for piece in pieces:
                if piece in text:
                    return _SECRET.sub(lambda match: (match["lead"] or match["basic"] or "") + REDACTED, text)
    return text


def plain(name: str) -> str:
    """A name without what makes no difference in it: case, `-` and `_`."""
    return name.replace("-", "").replace("_", "").lower()


def _without_settings(text: str) -> str:
    """`text` without what is set under the name of a secret."""
    parts: list[str] = []
    copied = 0
    unclosed: set[tuple[str, int]] = set()
    for sign in _SIGN.finditer(text):
        at = sign.start()
        before = text[max(copied, at - _LONGEST_NAME) : at].rstrip()
        named = before.endswith(("'", '"'))
        if sign[0] == ":" and not named:
            continue  # speech
        if not plain(before.rstrip(" \"'\\")).endswith(SECRET_ENDINGS):
            continue
        start, end = _value_at(text, at + 1, sign[0], unclosed)
        if start < end:
            parts += text[copied:start], REDACTED
            copied = end
    return "".join((*parts, text[copied:]))


def _value_at(text: str, at: int, sign: str, unclosed: set[tuple[str, int]]) -> tuple[int, int]:
    """Where the value that begins at or after `at` starts and ends, without quotes; nothing where there is none.

    What is not closed ends with its line. `unclosed` remembers which quotes and brackets are known not to be closed,
    so that the rest of the text is looked through once for each.
    """
    opening = _OPENING.match(text, at)
    if opening is not None:
        return opening.end(), _end_of_string(text, opening.end(), opening[2], len(opening[1]), unclosed)
    bracket = _BRACKET.match(text, at)
    if sign == "=":
        bare = _BARE.match(text, at)
        if bare is None:
            return at, at
        return at, max(bare.end(), _end_of_bracket(text, bracket, unclosed) if bracket is not None else at)
    if bracket is not None:
        return bracket.start(1), _end_of_bracket(text, bracket, unclosed)
    bare = _BARE_JSON.match(text, at)
    return bare.span(1) if bare is not None else (at, at)


def _end_of_bracket(text: str, bracket: re.Match[str], unclosed: set[tuple[str, int]]) -> int:
    closing = _CLOSING[bracket[2]]
    end = -1 if (closing, 0) in unclosed else text.find(closing, bracket.end())
    if end < 0:
        unclosed.add((closing, 0))
    return end + 1 or _end_of_line(text, bracket.end())


def _end_of_string(text: str, start: int, mark: str, slashes: int, unclosed: set[tuple[str, int]]) -> int:
    """Where the string ends that was opened by `mark` behind so many backslashes.

    There are none in a text of its own, and one, three or seven where it stands in a string in a string. Those of a
    quote that belongs to the value come on top.
    """
    if (mark, slashes) not in unclosed:
        at = text.find(mark, start)
        while at >= 0:
            first = at
            while first > start and text[first - 1] == "\\":
                first -= 1
            if (at - first - slashes) % (2 * (slashes + 1)) == 0 and at - first >= slashes:
                return at - slashes
            at = text.find(mark, at + 1)
        unclosed.add((mark, slashes))
    return _end_of_line(text, start)


def _end_of_line(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def without_credentials(uri: str) -> str:
    """`uri` without the user and password it may carry."""
    with suppress(ValueError):
        parts = urlsplit(uri)
        if parts.username or parts.password:
            return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return uri


_PASSWORD = re.compile(r"^([\w.+-]+://[^:/@]*):[^@]*@")


def without_password(url: str) -> str:
    """`url` without the password before its host; the user's name stays."""
    return _PASSWORD.sub(r"\1@", url)
