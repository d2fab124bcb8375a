"""Secrets and excess are taken out of whatever is recorded."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

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
    r"|(?<=://)[^/\s:@]+:[^/\s:@]+(?=@)"
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
_SECRET_KEYS = frozenset({"authorization", "proxyauthorization"})
_SECRET_ENDINGS = (
    *("apikey", "accesskey", "secretkey", "privatekey", "password"),
    *("accesstoken", "refreshtoken", "authtoken", "clientsecret"),
)


# A setting in a text, as an address, a shell, JSON or a repr spells it: api_key=…, "api_key": "…".
_WORDS = ("key", "Key", "KEY", "oken", "OKEN", "ecret", "ECRET", "assword", "ASSWORD")
_SIGN = re.compile("[=:]")
_LONGEST_NAME = 40
_QUOTED = re.compile(r"\s*\\?[\"']([^\"'\\]+)")
_BARE = re.compile(r"([^\s\"'\\&,;)=]+)")


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
                    return _SECRET.sub(lambda found: (found["lead"] or found["basic"] or "") + REDACTED, text)
    return text


def _without_settings(text: str) -> str:
    """`text` without what is set under the name of a secret."""
    parts: list[str] = []
    done = 0
    for sign in _SIGN.finditer(text):
        at = sign.start()
        before = text[max(done, at - _LONGEST_NAME) : at].rstrip()
        if sign[0] == ":" and not before.endswith(("'", '"')):
            continue  # speech
        if not _plain(before.rstrip(" \"'\\")).endswith(_SECRET_ENDINGS):
            continue
        value = _QUOTED.match(text, at + 1) or (_BARE.match(text, at + 1) if sign[0] == "=" else None)
        if value is not None:
            parts += text[done : value.start(1)], REDACTED
            done = value.end()
    return "".join((*parts, text[done:]))


@dataclass(frozen=True, slots=True)
class Redaction:
    """What is taken out of everything before it is recorded: secrets, and the excess of what is very large.

    API keys, bearer tokens and the values of keys such as `api_key` or `OPENAI_API_KEY` are always taken out, of
    mappings, of texts that spell them (`api_key=…`), and of variables that are so named; the rest adds to that.

    Attributes:
        keys: further names of secrets: keys of mappings, and variables; case, `-` and `_` make no difference.
        patterns: further regular expressions whose matches are secrets.
        function: text → text without what must not be recorded, called last on every text. Where it raises, the whole
            text is left out. It may run in another thread, and later.
        longest: characters kept of one text.
        most_items: elements kept of one list or mapping.
    """

    keys: tuple[str, ...] = ()
    patterns: tuple[str | re.Pattern[str], ...] = ()
    function: Callable[[str], str] | None = None
    longest: int = 1_000_000
    most_items: int = 100_000
    _keys: frozenset[str] = field(init=False, repr=False, compare=False)
    _patterns: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_keys", _SECRET_KEYS | {_plain(key) for key in self.keys})
        object.__setattr__(self, "_patterns", tuple(re.compile(pattern) for pattern in self.patterns))

    def text(self, text: str) -> str:
        """`text` as it may be recorded."""
        text = redact(text)
        for pattern in self._patterns:
            text = pattern.sub(REDACTED, text)
        if self.function is not None:
            try:
                text = str(self.function(text))
            except Exception:
                return REDACTED
        if len(text) > self.longest:
            return f"{text[: self.longest]}… [{len(text) - self.longest} more characters]"
        return text

    def hides(self, name: str) -> bool:
        """Whether what has this name, as a key, a parameter or a variable, is a secret."""
        plain = _plain(name)
        # "the wifi password" is the name of a memory.
        return plain in self._keys or (plain.endswith(_SECRET_ENDINGS) and " " not in plain)

    def value(self, value: Any) -> Any:
        """The JSON-compatible `value` as it may be recorded."""
        kind = type(value)
        if kind is str:
            return self.text(value)
        if kind is dict:
            items = list(value.items())
            kept = {
                self.text(key): REDACTED if item and self.hides(key) else self.value(item)
                for key, item in items[: self.most_items]
            }
            return kept if len(items) <= self.most_items else {**kept, "…": f"{len(items) - self.most_items} more"}
        if kind is list:
            first = [self.value(item) for item in value[: self.most_items]]
            return first if len(first) == len(value) else [*first, f"… [{len(value) - len(first)} more]"]
        return value


def _plain(key: str) -> str:
    return key.replace("-", "").replace("_", "").lower()
