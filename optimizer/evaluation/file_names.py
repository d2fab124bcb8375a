"""File names for things that users have named."""

from __future__ import annotations

import hashlib
import re

from tracing.recording.redaction import excerpt

_READABLE = 40
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def file_name(name: str) -> str:
    """A file name, without ending, unique to `name`: its safe characters, and 16 digits of its SHA-256.

    The digits distinguish names that are equal without unsafe characters, when cut, or on a disk that ignores case.
    """
    readable = _UNSAFE.sub("_", excerpt(name, _READABLE)).strip("._-")
    digits = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{readable}-{digits}" if readable else digits
