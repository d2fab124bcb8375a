"""Exploring a graph: the tools an agent may use, short names for what they show, and replies that fit its room."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from attribution.text.content import text_of
from tracing.errors import TraceError
from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.search import Expression, search
from tracing.package_data import packaged_tables

REPLY_CHARACTERS = 1500
LINE_CHARACTERS = 150
_WINDOW = 120
_MOST_LINES = 40

_LONGEST_ID = 12
"""Characters up to which ids are short enough to be their own handles."""

_HANDLE = re.compile(r"\b[vo]\d+\b")

TOOLS: Mapping[str, str] = packaged_tables("attribution", "prompts.toml")["agent"]["tools"]
"""Name of a tool → what it shows and what it needs."""


class Handles:
    """A graph's ids, or `v1`, `v2`, … and `o1`, `o2`, … in the order recorded where its ids are long."""

    def __init__(self, graph: ExecutionGraph) -> None:
        self._graph = graph
        ids = [*graph.variables, *graph.operations]
        # A variable and an operation may share an id; then it is ambiguous.
        plain = all(len(element_id) <= _LONGEST_ID for element_id in ids) and len(set(ids)) == len(ids)
        self._short = {
            **{("v", vid): vid if plain else f"v{place}" for place, vid in enumerate(graph.variables, start=1)},
            **{("o", oid): oid if plain else f"o{place}" for place, oid in enumerate(graph.operations, start=1)},
        }
        self._ids: dict[str, dict[str, str]] = {"v": {}, "o": {}}
        for (kind, element_id), handle in self._short.items():
            self._ids[kind][handle] = element_id
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
        return [handle for handle in dict.fromkeys(_HANDLE.findall(text)) if handle not in handles]

    def spelled_out(self, text: str) -> str:
        """A text with ids in place of handles."""
        if self._plain:
            return text
        return _HANDLE.sub(lambda handle: self._ids[handle[0][0]].get(handle[0], handle[0]), text)

    def _find(self, kind: str, name: str) -> str | None:
        elements: Mapping[str, Variable] | Mapping[str, Operation]
        elements = self._graph.variables if kind == "v" else self._graph.operations
        handle = name.strip().strip("`'\"[]()")
        element_id = self._ids[kind].get(handle) or (handle if handle in elements else None)
        if element_id is not None:
            return element_id
        named = [element.id for element in elements.values() if element.name == name.strip()]
        return named[0] if len(named) == 1 else None


class Exploration:
    """Answers an agent's questions about one graph, with `most` characters in a reply."""

    def __init__(self, graph: ExecutionGraph, *, most: int = REPLY_CHARACTERS) -> None:
        self.graph, self.handles = graph, Handles(graph)
        self._most = most
        self._tools: Mapping[str, Callable[[str, str], Iterable[str]]] = {
            "operations": self._operations,
            "operation": self._operation,
            "search": self._search,
            "view": self._view,
            "producers": lambda target, _: self._executions(self.graph.producers(self._variable(target).id)),
            "consumers": lambda target, _: self._executions(self.graph.consumers(self._variable(target).id)),
            "backward": lambda target, text: self._slice(self.graph.backward_slice(self._variable(target).id), text),
            "forward": lambda target, text: self._slice(self.graph.forward_slice(self._variable(target).id), text),
            "versions": lambda target, _: map(self.line, self.graph.versions(self._variable(target).id)),
            "diff": self._diff,
        }

    def use(self, tool: str, target: str, text: str) -> str:
        """A tool's reply, cut to fit; it also reports a mistake in using the tool."""
        if tool not in self._tools:
            return f"There is no tool {tool!r}; there are {', '.join(self._tools)}."
        try:
            return self._cut(self._tools[tool](target.strip(), text.strip()))
        except TraceError as error:
            return str(error)

    def line(self, element: Variable | Operation) -> str:
        """One variable or operation on one line."""
        if isinstance(element, Operation):
            return self._execution(element)
        version = f" version {element.version}" if element.version > 1 else ""
        return short(
            f"{self.handles.variable(element.id)} {element.kind} {element.name}{version}: {_one_line(element)}"
        )

    def _operations(self, target: str, _: str) -> Iterable[str]:
        if target:
            executions = self.graph.find_operations(name=target)
            if not executions:
                raise TraceError(f"no operation is named {target!r}; use operations with an empty target")
            return self._executions(executions)
        counts = Counter(operation.name for operation in self.graph.operations.values())
        return [f"{name}: ran {count} times" for name, count in counts.items()]

    def _operation(self, target: str, _: str) -> Iterable[str]:
        oid = self.handles.find_operation(target)
        if oid is None:
            raise TraceError(f"there is no operation {target!r}; use operations to list them")
        operation = self.graph.operations[oid]
        yield self._execution(operation)
        for title, links in (("read", operation.inputs), ("made", operation.outputs)):
            yield f"{title} {len(links)}:"
            for role, vid in links:
                yield f"  {role}: {self.line(self.graph.variables[vid])}"

    def _search(self, target: str, text: str) -> Iterable[str]:
        if not text:
            raise TraceError("search needs words in text")
        kind = target or None
        matches = list(islice(search(self.graph, text, kind=kind), _MOST_LINES))
        if not matches:
            try:
                matches = list(islice(search(self.graph, f"(?i){text}", regex=True, kind=kind), _MOST_LINES))
            except TraceError:
                matches = []  # neither a phrase that occurs nor a valid expression
        if not matches:
            # A search for several words means: all of them, in any order.
            words = [word.casefold() for word in re.findall(r"\w+", text)]
            holders = (
                variable
                for variable in self.graph.variables.values()
                if words
                and (kind is None or variable.kind == kind)
                and all(word in text_of(variable.value).casefold() for word in words)
            )
            return [self.line(variable) for variable in islice(holders, _MOST_LINES)]
        return [
            self.line(match.item)
            if isinstance(match.item, Operation)
            else short(f"{self.handles.variable(match.item.id)} {match.item.kind} {match.item.name}: {match.excerpt}")
            for match in matches
        ]

    def _view(self, target: str, text: str) -> Iterable[str]:
        variable = self._variable(target)
        value = text_of(variable.value) or repr(variable.value)
        yield f"{self.handles.variable(variable.id)} {variable.kind} {variable.name}, {len(value)} characters"
        if text.isdecimal() or not text:
            yield value[int(text or 0) :]
            return
        spans = Expression(text).spans(value, _MOST_LINES)
        if not spans:
            yield f"nothing matches {text!r}"
        for first, last in spans:
            around = value[max(0, first - _WINDOW) : last + _WINDOW]
            yield f"at {first}: …{' '.join(around.split())}…"

    def _slice(self, part: ExecutionGraph, text: str) -> Iterable[str]:
        if text:
            chosen = part.find_operations(name=text)
            return [self._execution(operation) for operation in chosen] or [
                f"no {text!r} among {len(part.operations)} operations"
            ]
        lines = [self._execution(operation) for operation in part.operations.values()]
        contents = [variable for variable in part.variables.values() if variable.kind not in ("prompt", "query")]
        return [f"{len(lines)} operations:", *lines, f"{len(contents)} variables:", *map(self.line, contents)]

    def _diff(self, target: str, text: str) -> Iterable[str]:
        later = self._variable(target)
        if text:
            earlier = self._variable(text)
        elif later.previous in self.graph.variables:
            earlier = self.graph.variables[later.previous]
        else:
            raise TraceError(f"{target} has no version before it; name another variable in text")
        before, after = (text_of(version.value).splitlines() or [""] for version in (earlier, later))
        changed = islice(difflib.unified_diff(before, after, lineterm="", n=0), 2, None)
        return [line for line in changed if not line.startswith("@@")] or ["they say the same"]

    def _variable(self, handle: str) -> Variable:
        vid = self.handles.find_variable(handle)
        if vid is None:
            raise TraceError(f"there is no variable {handle!r}; use search to find its id")
        return self.graph.variables[vid]

    def _executions(self, operations: Iterable[Operation]) -> Iterable[str]:
        lines = [self._execution(operation) for operation in operations]
        return lines or ["none: it came from outside, or nothing used it"]

    def _execution(self, operation: Operation) -> str:
        session = self.graph.sessions.get(operation.session or "")
        where = f" in {session.name}" if session is not None else ""
        trouble = f", failed: {operation.error}" if operation.error else ""
        outputs = ", ".join(self.handles.variable(vid) for vid in operation.output_ids()[:6])
        more = ", …" if len(operation.outputs) > 6 else ""
        handle = self.handles.operation(operation.id)
        return short(f"{handle} {operation.name}{where}: read {len(operation.inputs)}, made [{outputs}{more}]{trouble}")

    def _cut(self, lines: Iterable[str]) -> str:
        shown_lines: list[str] = []
        room = self._most
        for line in lines:
            if len(line) + 1 > room:
                shown_lines += [line[: max(0, room)], "… (cut; ask for less)"]
                break
            shown_lines.append(line)
            room -= len(line) + 1
        return "\n".join(shown_lines) or "nothing found"


def _one_line(variable: Variable) -> str:
    return " ".join((text_of(variable.value) or repr(variable.value)).split())


def short(line: str, longest: int = LINE_CHARACTERS) -> str:
    """A line of at most so many characters, the last of which shows that it was cut."""
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
