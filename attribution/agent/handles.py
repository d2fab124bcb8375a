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
        plain = all(len(one) <= LONGEST_ID for one in ids) and len(set(ids)) == len(ids)
        self._short = {
            **{("v", vid): vid if plain else f"v{place}" for place, vid in enumerate(graph.variables, start=1)},
            **{("o", oid): oid if plain else f"o{place}" for place, oid in enumerate(graph.operations, start=1)},
        }
        self._meant = {kind: {self._short[kind, one]: one for one in group} for kind, group in self._groups()}
        self._plain = plain

    def variable(self, vid: str) -> str:
        """Handle of a variable."""
        return self._short["v", vid]

    def operation(self, oid: str) -> str:
        """Handle of an operation."""
        return self._short["o", oid]

    def find_variable(self, said: str) -> str | None:
        """Id of the variable with this handle, id or unique name; None if there is none."""
        return self._find("v", said)

    def find_operation(self, said: str) -> str | None:
        """Id of the operation with this handle or id, or with this name if it ran once; None if there is none."""
        return self._find("o", said)

    def shown_in(self, text: str) -> list[str]:
        """The handles that stand in a text, each once, in their order."""
        words = (word.strip(",;:.[]()") for word in text.split())
        return [word for word in dict.fromkeys(words) if word in self._meant["v"] or word in self._meant["o"]]

    def unknown(self, text: str) -> list[str]:
        """Unknown handles in a text; none where ids are their own handles, which no pattern matches."""
        if self._plain:
            return []
        known = self._meant["v"].keys() | self._meant["o"].keys()
        return [found for found in dict.fromkeys(HANDLE.findall(text)) if found not in known]

    def spelled_out(self, text: str) -> str:
        """A text with ids in place of handles."""
        if self._plain:
            return text

        def whole(found: re.Match[str]) -> str:
            handle = found[0]
            return self._meant[handle[0]].get(handle, handle)

        return HANDLE.sub(whole, text)

    def _groups(self) -> tuple[tuple[str, list[str]], ...]:
        return ("v", list(self._graph.variables)), ("o", list(self._graph.operations))

    def _find(self, kind: str, said: str) -> str | None:
        held: Mapping[str, Variable] | Mapping[str, Operation]
        held = self._graph.variables if kind == "v" else self._graph.operations
        wanted = said.strip().strip("`'\"[]()")
        meant = self._meant[kind].get(wanted) or (wanted if wanted in held else None)
        if meant is not None:
            return meant
        named = [one.id for one in held.values() if one.name == said.strip()]
        return named[0] if len(named) == 1 else None
