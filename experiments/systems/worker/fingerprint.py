"""The code of memtune that a worker needs, and what identifies it, so that both processes have the same."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[3]
PARTS = ("tracing", "experiments/__init__.py", "experiments/systems", "memtune/systems.py")
"""Of memtune, relative to the folder of its packages: what a system needs, built-in or a user's; not the loop."""


def sources() -> Iterator[tuple[str, Path]]:
    """The files of these parts: the name relative to the folder of packages, and the place."""
    for part in PARTS:
        place = _ROOT / part
        paths = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
        for path in paths:
            if "__pycache__" not in path.parts:
                yield path.relative_to(_ROOT).as_posix(), path


@functools.cache
def fingerprint() -> str:
    """SHA-256 of the Python source of these parts in this process."""
    digest = hashlib.sha256()
    for name, path in sources():
        if path.suffix == ".py":
            digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()
