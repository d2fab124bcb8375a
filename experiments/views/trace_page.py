"""A trace as an interactive page: one file, works offline, sessions and operations collapsed at first."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from experiments.display.pages import template
from experiments.views.trace_map import render_map
from experiments.views.trace_tree import Nesting
from tracing.graph.elements import Operation
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.search import shown_text

LONGEST_VALUE = 20_000
"""Characters of a value that the page holds; the rest is counted."""


def render_page(graph: ExecutionGraph, title: str) -> str:
    """The page as HTML. Its size is about that of the trace file."""
    from markupsafe import Markup

    data = json.dumps(_data(graph), ensure_ascii=False, separators=(",", ":"))
    # Only `<` could end a script element; JSON can escape it.
    safe = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    picture = render_map(graph, title)
    return template("trace.html").render(title=title, data=Markup(safe), picture=Markup(picture))  # noqa: S704


def _data(graph: ExecutionGraph) -> dict[str, Any]:
    """What the page's script reads; operations and variables refer to each other by id."""
    nesting = Nesting(graph)
    values = {id(one.value): one.value for one in graph.variables.values()}  # one that a file holds once is one object
    places = {key: place for place, key in enumerate(values)}
    counts = Counter(one.session for one in graph.operations.values())
    failed = Counter(one.session for one in graph.operations.values() if one.status == "error")
    return {
        "sessions": [
            {
                "id": sid,
                "name": graph.sessions[sid].name if sid is not None else "outside of any session",
                "tops": [one.id for one in tops],
                "count": counts[sid],
                "failed": failed[sid],
            }
            for sid, tops in nesting.tops.items()
            if tops or sid is not None
        ],
        "values": [_cut(shown_text(value)) for value in values.values()],
        "variables": {
            vid: [one.name, one.kind, places[id(one.value)], one.version, one.previous, dict(one.attributes)]
            for vid, one in graph.variables.items()
        },
        "operations": {oid: _operation(one, nesting) for oid, one in graph.operations.items()},
    }


def _operation(operation: Operation, nesting: Nesting) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "kind": operation.kind,
        "status": operation.status,
        "seconds": float(f"{operation.ended - operation.started:.3g}") if operation.ended is not None else None,
        "model": operation.model,
        "calls": operation.calls,
        "cached calls": operation.cached_calls,
        "prompt tokens": operation.prompt_tokens,
        "completion tokens": operation.completion_tokens,
        "cost": operation.cost,
        "error": operation.error,
        **operation.attributes,
    }
    return {
        "name": operation.name,
        "in": operation.inputs,
        "out": operation.outputs,
        "inside": [one.id for one in nesting.children.get(operation.id, ())],
        "parent": operation.parent,
        "session": operation.session,
        "facts": {key: value for key, value in facts.items() if value not in (None, 0, "")},
    }


def _cut(text: str) -> str:
    if len(text) <= LONGEST_VALUE:
        return text
    return f"{text[:LONGEST_VALUE]}… ({len(text) - LONGEST_VALUE:,} more characters)"
