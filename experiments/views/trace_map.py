"""A trace as one picture: its operations by name, and how many variables go from one to another."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from html import escape

from experiments.display.terminal import visible
from experiments.views.trace_tree import shorten
from tracing.graph.execution_graph import ExecutionGraph

MOST_NAMES = 40
ROW, MIDDLE, WIDTH, TOP = 34, 500, 1000, 46
HALF, LONGEST_NAME = 175, 36
"""Half the width of a box, and characters of a name that fit into it beside its figure."""
_STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1e293b; }
text.title { font-size: 15px; font-weight: 600; } text.dim { fill: #64748b; font-size: 12px; }
text.figure { paint-order: stroke; stroke: #fff; stroke-width: 4px; stroke-linejoin: round; }
rect.paper { fill: #fff; } rect.step { fill: #eff6ff; stroke: #93c5fd; } rect.failed { fill: #fee2e2; stroke: #f87171; }
path { fill: none; stroke: #2563eb; } path.back { stroke: #d97706; }
@media (prefers-color-scheme: dark) {
  text { fill: #e2e8f0; } text.dim { fill: #94a3b8; } rect.paper { fill: #0f172a; }
  rect.step { fill: #1e293b; stroke: #3b82f6; } rect.failed { fill: #450a0a; stroke: #f87171; }
  text.figure { stroke: #0f172a; } path { stroke: #60a5fa; } path.back { stroke: #fbbf24; }
}
"""


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
    height = TOP + ROW * max(1, len(flow.steps)) + 34
    rows = {name: TOP + ROW * place + ROW // 2 for place, name in enumerate(flow.steps)}
    most = max(flow.flows.values(), default=1)
    farthest = max(1, len(flow.steps) - 1)
    drawn, labels, boxes = [], [], []
    for (maker, reader), count in sorted(flow.flows.items(), key=lambda pair: -pair[1]):
        weight = 1 + 5 * math.log1p(count) / math.log1p(most)
        tip = f"<title>{_text(maker)} → {_text(reader)}: {count:,}</title>"
        begin, end = rows[maker], rows[reader]
        onward = end > begin
        side = MIDDLE + HALF if onward or begin == end else MIDDLE - HALF
        reach = (30 + 170 * abs(end - begin) / ROW / farthest) * (1 if side > MIDDLE else -1)
        if begin == end:
            begin, end, reach = begin - 7, end + 7, 26
        kind = "" if onward else ' class="back"'
        bend = f"{side + reach * 1.3:.0f}"
        drawn.append(
            f'<path{kind} stroke-width="{weight:.1f}" stroke-opacity="0.45" '
            f'd="M{side} {begin} C{bend} {begin} {bend} {end} {side} {end}">{tip}</path>'
        )
        anchor = "start" if side > MIDDLE else "end"
        labels.append(
            f'<text class="dim figure" text-anchor="{anchor}" x="{side + reach + (3 if side > MIDDLE else -3):.0f}" '
            f'y="{(begin + end) / 2 + 4:.0f}">{count:,}</text>'
        )
    for name, y in rows.items():
        failed = flow.failed[name]
        label = shorten(name, LONGEST_NAME)
        note = f"×{flow.steps[name]:,}" + (f", {failed:,} failed" if failed else "")
        boxes.append(
            f'<g><title>{_text(name)} {note}</title><rect class="{"failed" if failed else "step"}" rx="7" '
            f'x="{MIDDLE - HALF}" y="{y - 12}" width="{2 * HALF}" height="24"/>'
            f'<text x="{MIDDLE - HALF + 10}" y="{y + 5}">{escape(label)}</text>'
            f'<text class="dim" text-anchor="end" x="{MIDDLE + HALF - 8}" y="{y + 4}">{note}</text></g>'
        )
    below = "→ read further down (right), read again further up (left, amber); the numbers count reads"
    if flow.left_out:
        below += f"; {flow.left_out} rarer operations are left out"
    head = (
        f"{_text(title)}: {len(graph.sessions):,} sessions, {len(graph.operations):,} operations, "
        f"{len(graph.variables):,} variables"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{head}">'
        f'<style>{_STYLE}</style><rect class="paper" width="{WIDTH}" height="{height}"/>'
        f'<text class="title" x="16" y="26">{head}</text>{"".join(drawn)}{"".join(boxes)}{"".join(labels)}'
        f'<text class="dim" x="16" y="{height - 12}">{below}</text></svg>\n'
    )


def _text(text: str) -> str:
    """A text within the picture, which is XML: that has no control characters."""
    return escape(visible(text))
