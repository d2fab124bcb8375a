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
_SECRET_KEYS = frozenset(
    {"api_key", "apikey", "x_api_key", "authorization", "access_token", "client_secret", "password"}
)


def redact(text: str) -> str:
    """`text` with provider keys, bearer tokens and basic credentials replaced by `[redacted]`."""
    for first, pieces in _PIECES:
        if first in text:
            for piece in pieces:
                if piece in text:
                    return _SECRET.sub(lambda found: (found["lead"] or found["basic"] or "") + REDACTED, text)
    return text


@dataclass(frozen=True, slots=True)
class Redaction:
    """What is taken out of everything before it is recorded: secrets, and the excess of what is very large.

    API keys, bearer tokens and the values of keys such as `api_key` are always taken out; the rest adds to that.

    Attributes:
        keys: further keys of mappings whose values are secrets; case, `-` and `_` make no difference.
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

    def value(self, value: Any) -> Any:
        """The JSON-compatible `value` as it may be recorded."""
        kind = type(value)
        if kind is str:
            return self.text(value)
        if kind is dict:
            items = list(value.items())
            kept = {
                self.text(key): REDACTED if _plain(key) in self._keys and item else self.value(item)
                for key, item in items[: self.most_items]
            }
            return kept if len(items) <= self.most_items else {**kept, "…": f"{len(items) - self.most_items} more"}
        if kind is list:
            first = [self.value(item) for item in value[: self.most_items]]
            return first if len(first) == len(value) else [*first, f"… [{len(value) - len(first)} more]"]
        return value


def _plain(key: str) -> str:
    return key.replace("-", "_").lower()
