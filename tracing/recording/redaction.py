"""Secrets and excess are taken out of whatever is recorded; what a credential looks like is in `credentials`."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tracing.recording import credentials
from tracing.recording.credentials import REDACTED, SECRET_ENDINGS, plain
from tracing.recording.known_secrets import without, without_plain, without_remembered

__all__ = ["REDACTED", "Redaction", "excerpt", "redact", "without"]

LONGEST_THINKING = 4000
"""Characters that an operation keeps of what a model thought before its latest reply."""

_PSEUDONYM = "pseudonym:"
_SECRET_KEYS = frozenset({"authorization", "proxyauthorization"})


def redact(text: str) -> str:
    """`text` with keys, tokens, passwords and other credentials replaced by `[redacted]`, and what is remembered."""
    return credentials.redact(without_plain(text))


def excerpt(text: str, most: int, *secrets: str | None) -> str:
    """The first `most` characters of `text`, for a message, without credentials and without these `secrets`.

    Everything that shortens a text for people goes through here: a cut first would split a secret, and what is left of
    it would no longer be recognised.
    """
    text = redact(without_remembered(without(text, *secrets)))
    return text if len(text) <= most else f"{text[:most]}…"


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
        pseudonyms: further names, of ids, each with a key of your own: the value is recorded as its HMAC-SHA-256 by
            this key, so that what is of one user still is, and nobody without the key can tell whose.

    Example:
        >>> redaction = Redaction(keys=("ssn",), patterns=("[0-9]{3}-[0-9]{4}",))
        >>> redaction.value({"ssn": "12", "note": "call 555-1234"})
        {'ssn': '[redacted]', 'note': 'call [redacted]'}
    """

    keys: tuple[str, ...] = ()
    patterns: tuple[str | re.Pattern[str], ...] = ()
    function: Callable[[str], str] | None = None
    longest: int = 1_000_000
    most_items: int = 100_000
    pseudonyms: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    _keys: frozenset[str] = field(init=False, repr=False, compare=False)
    _pseudonyms: Mapping[str, bytes] = field(init=False, repr=False, compare=False)
    _patterns: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_pseudonyms", {plain(name): key.encode() for name, key in self.pseudonyms.items()})
        object.__setattr__(self, "_keys", _SECRET_KEYS | {*map(plain, self.keys), *self._pseudonyms})
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
        spelled = plain(name)
        # "the wifi password" is the name of a memory.
        return spelled in self._keys or (spelled.endswith(SECRET_ENDINGS) and " " not in spelled)

    def named(self, name: str, value: Any) -> Any:
        """The JSON-compatible `value` that has this name, as it may be recorded."""
        if not value or not self.hides(name):
            return self.value(value)
        key = self._pseudonyms.get(plain(name))
        if key is None or str(value).startswith(_PSEUDONYM):
            return REDACTED if key is None else value  # what another trace has recorded goes on under its pseudonym
        return f"{_PSEUDONYM}{hmac.new(key, str(value).encode(), 'sha256').hexdigest()[:20]}"

    def value(self, value: Any) -> Any:
        """The JSON-compatible `value` as it may be recorded."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            items = list(value.items())
            fields = {self.text(key): self.named(key, item) for key, item in items[: self.most_items]}
            return fields if len(items) <= self.most_items else {**fields, "…": f"{len(items) - self.most_items} more"}
        if isinstance(value, list | tuple):
            first = [self.value(item) for item in value[: self.most_items]]
            return first if len(first) == len(value) else [*first, f"… [{len(value) - len(first)} more]"]
        return value
