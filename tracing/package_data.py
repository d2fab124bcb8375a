"""Texts and tables that memtune keeps in files beside its code."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def packaged_text(package: str, name: str) -> str:
    """The text of a file, by the package that it lies in and its path there."""
    return (files(package) / name).read_text(encoding="utf-8")


@cache
def packaged_tables(package: str, name: str) -> Mapping[str, Any]:
    """What a TOML file holds, named as for `packaged_text`."""
    return tomllib.loads(packaged_text(package, name))
