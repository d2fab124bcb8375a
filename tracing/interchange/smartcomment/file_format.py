"""The vocabulary of smartcomment's JSON, for its reader and its writer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tracing.graph.elements import Operation

KEY = "smartcomment"
"""Attribute of an element: the object it was read from; of the graph, the document around them."""
EDGES = "smartcomment_edges"
"""Attribute of an operation: its edges, as they were read."""
EDGE_PLACES = "smartcomment_edge_places"
"""Attribute of an operation: the position of each of its edges, if the file does not list them by operation."""
ORDER = "smartcomment_order"
"""Attribute of a graph: ids of the variables in the file's order, if a version there comes before an earlier one."""
NATIVE = "memtune"
"""Key in the metadata of what memtune wrote: the fields of its own record."""

DELETED = "delete_marker"
"""Category, class or part of the name of what represents a deletion."""

SECTIONS = ("nodes", "edges", "operations", "sessions")
SOURCE, TARGET = "source_full_node_id", "target_full_node_id"
NO_SESSION, NO_OPERATION, NO_NODE = "__none__", "__none_op__", "COMMENT:NONE@1"

HERE = {"filename": "memtune", "lineno": 0}
"""The source location that our rows give."""
NOBODY = {"user_id": None, "project_id": None}
"""The owner that our rows give."""

_KINDS: Mapping[str, str] = {
    "facts": "fact",
    "memory_context": "context",
    "message & query": "query",
    "variable": "value",
}
_CATEGORIES: Mapping[str, str] = {kind: category for category, kind in _KINDS.items()}
_CLASSES = frozenset(("query", "prediction"))


def full_node_id(owner: str | None, name: str, version: int) -> str:
    """`class:name@version`, or `name@version` without a class."""
    return f"{owner}:{name}@{version}" if owner else f"{name}@{version}"


def kind_of(category: Any, owner: Any) -> str:
    """The kind of a variable with this category and class."""
    if DELETED in (category, owner):
        return DELETED
    if owner == "query":
        return "query"
    return _KINDS.get(category, category) if isinstance(category, str) and category else "value"


def category_of(kind: str) -> str:
    """The category of a variable of this kind."""
    return _CATEGORIES.get(kind, kind)


def class_of(kind: str) -> str | None:
    """The class of a variable of this kind, None for most."""
    return kind if kind in _CLASSES else None


def is_link(operation: Operation) -> bool:
    """Whether it was read from edges without an operation; another tool's operation may have any id."""
    return EDGES in operation.attributes and operation.id.startswith(NO_OPERATION)


def local_time(seconds: float) -> str:
    """A local time with milliseconds, as smartcomment writes it."""
    try:
        return datetime.fromtimestamp(seconds).isoformat(sep=" ", timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0).isoformat(sep=" ", timespec="milliseconds")
