"""Short names for the variables and operations of a graph, for a reader with little room."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph

LONGEST_ID = 12
"""Characters up to which ids are short enough to be their own handles."""

HANDLE = re.compile(r"\b[vo]\d+\b")


class Handles:
    """A graph's ids, or `v1`, `v2`, … and `o1`, `o2`, … in the order recorded where its ids are long."""

    def __init__(self, graph: ExecutionGraph) -> None:
        self._graph = graph
        ids = [*graph.variables, *graph.operations]
        # A variable and an operation may share an id; then it is ambiguous.
        plain = all(len(element_id) <= LONGEST_ID for element_id in ids) and len(set(ids)) == len(ids)
        self._short = {
            **{("v", vid): vid if plain else f"v{place}" for place, vid in enumerate(graph.variables, start=1)},
            **{("o", oid): oid if plain else f"o{place}" for place, oid in enumerate(graph.operations, start=1)},
        }
        self._ids = {
            kind: {self._short[kind, element_id]: element_id for element_id in group} for kind, group in self._groups()
        }
        self._plain = plain

    def variable(self, vid: str) -> str:
        """Handle of a variable."""
        return self._short["v", vid]

    def operation(self, oid: str) -> str:
        """Handle of an operation."""
        return self._short["o", oid]

    def find_variable(self, name: str) -> str | None:
        """Id of the variable with this handle, id or unique name; None if there is none."""
        return self._find("v", name)

    def find_operation(self, name: str) -> str | None:
        """Id of the operation with this handle or id, or with this name if it ran once; None if there is none."""
        return self._find("o", name)

    def shown_in(self, text: str) -> list[str]:
        """The handles that stand in a text, each once, in their order."""
        words = (word.strip(",;:.[]()") for word in text.split())
        return [word for word in dict.fromkeys(words) if word in self._ids["v"] or word in self._ids["o"]]

    def unknown(self, text: str) -> list[str]:
        """Unknown handles in a text; none where ids are their own handles, which no pattern matches."""
        if self._plain:
            return []
        handles = self._ids["v"].keys() | self._ids["o"].keys()
        return [handle for handle in dict.fromkeys(HANDLE.findall(text)) if handle not in handles]

    def spelled_out(self, text: str) -> str:
        """A text with ids in place of handles."""
        if self._plain:
            return text

        def whole(match: re.Match[str]) -> str:
            handle = match[0]
            return self._ids[handle[0]].get(handle, handle)

        return HANDLE.sub(whole, text)

    def _groups(self) -> tuple[tuple[str, list[str]], ...]:
        return ("v", list(self._graph.variables)), ("o", list(self._graph.operations))

    def _find(self, kind: str, name: str) -> str | None:
        elements: Mapping[str, Variable] | Mapping[str, Operation]
        elements = self._graph.variables if kind == "v" else self._graph.operations
        handle = name.strip().strip("`'\"[]()")
        element_id = self._ids[kind].get(handle) or (handle if handle in elements else None)
        if element_id is not None:
            return element_id
        named = [element.id for element in elements.values() if element.name == name.strip()]
        return named[0] if len(named) == 1 else None
