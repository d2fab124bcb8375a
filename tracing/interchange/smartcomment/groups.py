"""The edges of a smartcomment document by the operation that they belong to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from tracing.interchange.smartcomment.file_format import NO_OPERATION
from tracing.interchange.smartcomment.rows import rows_in, sound_row

Edge = tuple[int, str, str]
"""An edge: its position in the file, its source and its target."""


def grouped(edges: list[Any], trouble: Callable[[str, str], None]) -> tuple[dict[str, list[Edge]], list[list[Edge]]]:
    """The edges by operation, and each of those without one; `trouble` is told what is no edge, and where."""
    groups: dict[str, list[Edge]] = {}
    loose: list[list[Edge]] = []
    sound = sound_row("edges")
    for place, row in enumerate(rows_in("edges", edges)):
        if type(row) is not sound and not _is_edge(row):
            trouble(
                "is not an object with op_id, source_full_node_id and target_full_node_id and was left out",
                f"data.edges[{place}]",
            )
            continue
        oid, edge = row.op_id, (place, row.source_full_node_id, row.target_full_node_id)
        if oid in groups:
            groups[oid].append(edge)
        elif not oid or oid == NO_OPERATION:
            loose.append([edge])
        else:
            groups[oid] = [edge]
    return groups, loose


def _is_edge(row: Any) -> bool:
    """Whether an odd row has what an edge needs; its ends may be any values that a dict can have as keys."""
    if row is None or UNSET in (row.op_id, row.source_full_node_id, row.target_full_node_id):
        return False
    ends = (row.source_full_node_id, row.target_full_node_id)
    return isinstance(row.op_id, str | None) and not any(isinstance(end, list | dict) for end in ends)
