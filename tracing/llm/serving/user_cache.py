"""The folder for what memtune keeps once per user, whatever home a run uses."""

from __future__ import annotations

import os
from pathlib import Path

from tracing.errors import ConfigError


def user_cache() -> Path:
    """`memtune` in `$XDG_CACHE_HOME`, or else in `.cache` in the user's home directory. It may not exist yet."""
    if named := os.environ.get("XDG_CACHE_HOME"):
        return Path(named).expanduser().absolute() / "memtune"
    try:
        return Path.home() / ".cache" / "memtune"
    except RuntimeError:
        raise ConfigError("no home directory: set XDG_CACHE_HOME to a folder that memtune may write to") from None
