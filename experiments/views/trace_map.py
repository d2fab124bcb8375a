"""A trace as one picture: its operations by name, and how many variables go from one to another."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.display.pages import template
from experiments.views.trace_tree import shorten
from tracing.graph.execution_graph import ExecutionGraph

MOST_NAMES = 40
ROW, MIDDLE, WIDTH, TOP = 34, 500, 1000, 46
HALF, LONGEST_NAME = 175, 36
"""Half the width of a box, and characters of a name that fit into it beside its figure."""


@dataclass(frozen=True, slots=True)
class FlowMap:
    """Operations by name, ordered by when they run on average, and the variables between them.

    Attributes:
        steps: name → executions.
        failed: name → executions that ended with an exception.
        flows: names of maker and reader → how often the reader read what the maker made.
        left_out: names beyond the most frequent ones.
    """

    steps: dict[str, int]
    failed: Counter[str]
    flows: Counter[tuple[str, str]]
    left_out: int


def flow_of(graph: ExecutionGraph) -> FlowMap:
    """Collapse a graph to the names of its operations."""
    counts = Counter(operation.name for operation in graph.operations.values())
    frequent = {name for name, _ in counts.most_common(MOST_NAMES)}
    places: dict[str, float] = dict.fromkeys(frequent, 0.0)
    failed: Counter[str] = Counter()
    flows: Counter[tuple[str, str]] = Counter()
    makers: dict[str, Counter[str]] = {}  # of a variable, by name: it may have thousands, and as many readers
    order = sorted(graph.operations.values(), key=lambda operation: operation.started)
    for place, operation in enumerate(order):
        if operation.name not in frequent:
            continue
        places[operation.name] += place / counts[operation.name]
        failed[operation.name] += operation.status == "error"
        for _, vid in operation.inputs:
            if vid not in makers:
                makers[vid] = Counter(maker.name for maker in graph.producers(vid) if maker.name in frequent)
            for maker, count in makers[vid].items():
                flows[maker, operation.name] += count
    steps = {name: counts[name] for name in sorted(frequent, key=lambda name: (places[name], name))}
    return FlowMap(steps, failed, flows, len(counts) - len(frequent))


def render_map(graph: ExecutionGraph, title: str) -> str:
    """The picture as SVG: an arc to the right where what a step made is read further down, to the left further up."""
    flow = flow_of(graph)
    rows = {name: TOP + ROW * place + ROW // 2 for place, name in enumerate(flow.steps)}
    head = (
        f"{title}: {len(graph.sessions):,} sessions, {len(graph.operations):,} operations, "
        f"{len(graph.variables):,} variables"
    )
    return template("trace_map.svg").render(
        head=head,
        flow=flow,
        rows=rows,
        labels={name: shorten(name, LONGEST_NAME) for name in rows},
        arcs=list(_arcs(flow, rows)),
        width=WIDTH,
        height=TOP + ROW * max(1, len(rows)) + 34,
        middle=MIDDLE,
        half=HALF,
    )


def _arcs(flow: FlowMap, rows: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """What the picture has of each flow, the most frequent first; a curve from one row to another or back to itself."""
    most = max(flow.flows.values(), default=1)
    farthest = max(1, len(rows) - 1)
    for (maker, reader), count in sorted(flow.flows.items(), key=lambda pair: -pair[1]):
        begin, end = rows[maker], rows[reader]
        right = end >= begin
        sign = 1 if right else -1
        side = MIDDLE + sign * HALF
        reach = sign * (30 + 170 * abs(end - begin) / ROW / farthest)
        if begin == end:
            begin, end, reach = begin - 7, end + 7, 26
        bend = f"{side + reach * 1.3:.0f}"
        yield {
            "maker": maker,
            "reader": reader,
            "count": count,
            "back": maker == reader or not right,
            "weight": f"{1 + 5 * math.log1p(count) / math.log1p(most):.1f}",
            "line": f"M{side} {begin} C{bend} {begin} {bend} {end} {side} {end}",
            "anchor": "start" if right else "end",
            "x": f"{side + reach + 3 * sign:.0f}",
            "y": f"{(begin + end) / 2 + 4:.0f}",
        }
