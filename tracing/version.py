"""The version of memtune."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def memtune_version() -> str:
    """The installed version; `source` where memtune runs from a folder that is not installed."""
    try:
        return version("memtune")
    except PackageNotFoundError:
        return "source"
