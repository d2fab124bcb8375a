"""Benchmarks of memtune itself, which are run from a clone of its repository."""

from __future__ import annotations

from tracing.errors import ConfigError

MOVED = (
    "calibration",
    "evidence",
    "exploring",
    "gold-answers",
    "loop",
    "matcher",
    "throughput",
    "trace-memory",
    "tracing",
    "triage",
)
"""Names that were commands of `memtune bench`."""


def moved(place: str, arguments: str) -> ConfigError:
    """The error that says what to run instead."""
    return ConfigError(
        f"{place}: measures memtune itself; from a clone of its repository, run: python -m benchmarks {arguments}"
    )
