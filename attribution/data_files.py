"""Texts and numbers that attribution keeps in files beside its code."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def data_of(name: str) -> Mapping[str, Any]:
    """What a TOML file holds, by its path within `attribution`."""
    return tomllib.loads((files("attribution") / name).read_text(encoding="utf-8"))
