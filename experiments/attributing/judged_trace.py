"""The judged questions of one trace, as its page shows them; no model is asked."""

from __future__ import annotations

from pathlib import Path

from attribution.attributor import survival_in
from attribution.cases import Attribution, Case
from experiments.attributing.case_sources import trace_source
from tracing.errors import TraceError
from tracing.graph.execution_graph import ExecutionGraph


def judged_in(graph: ExecutionGraph, path: Path) -> list[tuple[Case, Attribution | None]]:
    """The judged questions of a trace, each wrong one attributed by `survival`; none if nothing judged it.

    Questions and gold answers are those of the run in whose folder the trace is, of its annotations, or of its judge.
    """
    try:
        content = trace_source(path).read_in(graph, None)
    except TraceError:
        return []
    method = survival_in(content.recording)
    return [(case, None if case.passed else method.attribute(case)) for case in content.judged().values()]
