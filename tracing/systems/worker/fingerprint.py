"""What identifies the code of `tracing`, so that a worker and the process with the run have the same."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

PACKAGE = Path(__file__).parents[2]
"""The folder of `tracing`."""


@functools.cache
def fingerprint() -> str:
    """SHA-256 of the source of `tracing` in this process."""
    found = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        found.update(f"{path.relative_to(PACKAGE).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()
