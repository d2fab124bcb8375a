"""Attribution that a Python program starts: of a run, of trace files, or of a graph with its cases."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path

from attribution.attributor import SURVIVAL, AsksModel, AttributorFactory, GuardedAttributor, bound, open_attributor
from attribution.cases import Case
from attribution.failures import failed_cases
from attribution.recordings import recording_of
from attribution.survival.matching.matcher import LLM, WORDS, MatcherFactory
from experiments.api.attributed import Attributed
from experiments.api.starting import Model, conversations_file, settings_from
from experiments.attributing.attributions import Attributions, Header, TraceLine, case_line
from experiments.attributing.batch import Batch
from experiments.attributing.case_sources import run_sources, sources_of
from experiments.attributing.run_traces import run_traces
from experiments.running.parts import open_access
from experiments.runs.earlier_names import current_side
from experiments.runs.folder import BASELINE, CHAMPION, RunFolder
from tracing.errors import DataError, TraceError
from tracing.graph.execution_graph import ExecutionGraph
from tracing.plugins import registered_object
from tracing.systems.conversations import Conversation

GRAPH = "graph"
"""Name of the conversation and the trace of a graph that was given as an object."""


def attributed(
    source: str | Path | ExecutionGraph,
    home: Path,
    *,
    cases: Iterable[Case] | None = None,
    method: str | AttributorFactory = SURVIVAL,
    matcher: str | MatcherFactory = WORDS,
    model: Model | None = None,
    traces_of: str = "champion",
    data: str | Path | Iterable[Conversation] | None = None,
) -> Attributed:
    """Attribute the wrong answers of a source (`memtune.attribute`).

    Raises:
        ConfigError, DataError, RunError, TraceError: an argument is invalid, or nothing of its traces can be used.
    """
    traces_of = current_side(traces_of, "all")
    by, matched_by = (part if isinstance(part, str) else registered_object(part) for part in (method, matcher))
    factory = open_attributor(by, matcher=matched_by)
    config = settings_from(home, models={"task": model}, settings={})
    asks = isinstance(factory, AsksModel) or matched_by == LLM
    with nullcontext() if (by, matched_by) == (SURVIVAL, WORDS) else open_access(config, home, surely=asks) as access:
        make = bound(factory, access)
        attributions = Attributions(
            Header(method=by, matcher=matched_by, model=config.models.task.model if asks else None)
        )
        if isinstance(source, ExecutionGraph):
            if data is not None:
                raise DataError("data: is for trace files; give the judged questions of a graph as cases")
            recording = recording_of(source, GRAPH)
            wrong = [case for case in (failed_cases(recording) if cases is None else cases) if not case.passed]
            attributions.add(
                TraceLine(
                    trace=GRAPH,
                    digest="",
                    conversation=recording.conversation.id,
                    cases=len(wrong),
                    failed=len(wrong),
                    operations=recording.operations,
                    prompts_known=False,
                )
            )
            attributor = GuardedAttributor(lambda: make(recording))
            for case in wrong:
                attributions.add(case_line(attributor.attribute(case), GRAPH))
            return Attributed(attributions, "a graph", by, Path.cwd(), recording)
        if cases is not None:
            raise DataError("cases: are for a graph given as an object; a run has its own, a trace file those of data=")
        file = Path(data) if isinstance(data, str | Path) else None if data is None else conversations_file(data, home)
        Batch(make, attributions, attributions.add, folder=Path.cwd(), access=access).run(
            sources_of([str(source)], home, traces_of=traces_of, data=file)
        )
    problems = [
        trace.problem for trace in attributions.traces.values() if trace.problem is not None and not trace.cases
    ]
    if problems and len(problems) == len(attributions.traces):
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise TraceError(f"{problems[0]}{more}")
    return Attributed(attributions, str(source), by, Path.cwd())


def cases_of_run(folder: RunFolder) -> list[tuple[str, str, Case]]:
    """Every case of a run's baseline and champion, with `baseline` or `champion` and the path of its trace.

    If the champion is the baseline, under the same settings, only the baseline has cases.

    Raises:
        DataError, RunError, TraceError: the run or its traces cannot be read.
    """
    sides = (BASELINE,) if run_traces(folder, BASELINE) == run_traces(folder, CHAMPION) else (BASELINE, CHAMPION)
    return [
        (side, str(source.path), case)
        for side in sides
        for source in run_sources(folder, side)
        for case in source.read().cases
    ]
