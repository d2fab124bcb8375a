"""Keys and tokens are taken out of text before it is recorded."""

from __future__ import annotations

import re

REDACTED = "[redacted]"

# A conversation may say "bearer responsibilities": a bearer token needs a digit, or more letters than a word has.
_SECRET = re.compile(
    r"(?P<lead>\b(?:Bearer|bearer|BEARER)\s+)(?:(?=[\w.~+/=-]*\d)[\w.~+/=-]{8,}|[\w.~+/=-]{24,})"
    r"|(?P<basic>\b[Aa]uthorization[\"']?\s*[:=]\s*[\"']?[Bb]asic\s+)[\w+/=]{4,}"
    r"|(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{8,}"
    r"|\bhf_[A-Za-z0-9]{20,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}"
    r"|\bAIza[A-Za-z0-9_-]{30,}"
    r"|(?<=://)[^/\s:@]+:[^/\s:@]+(?=@)"
)
# Scanning for a plain piece is some twenty times faster than the expression, and nearly every text holds none.
_PIECES = ("sk-", "earer", "EARER", "uthorization", "hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "AIza", "://")
_SECRET_KEYS = frozenset(
    {"api_key", "apikey", "x_api_key", "authorization", "access_token", "client_secret", "password"}
)


def redact(text: str) -> str:
    """`text` with provider keys, bearer tokens and basic credentials replaced by `[redacted]`."""
    for piece in _PIECES:
        if piece in text:
            return _SECRET.sub(lambda found: (found["lead"] or found["basic"] or "") + REDACTED, text)
    return text


def names_secret(key: str) -> bool:
    """True where a mapping's key says that its value is a secret, such as `api_key` or `X-Api-Key`."""
    return key.replace("-", "_").lower() in _SECRET_KEYS
