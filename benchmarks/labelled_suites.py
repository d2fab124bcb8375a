"""Loading suites of labelled cases (`attribution.labels`), and running a method of attribution over one."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from attribution.attributor import Attributor
from attribution.cases import Attribution, Case
from attribution.labels import UnreadLabels, labels_in
from attribution.recordings import Recording, recording_of
from benchmarks.attribution_scores import Prediction
from benchmarks.labelled_cases import LabelledCase, Suite
from tracing.errors import MemtuneError, TraceError
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange import smartcomment

if TYPE_CHECKING:
    from tracing.llm.access import ModelAccess


def load_suite(path: Path) -> Suite:
    """The labelled cases of an annotated smartcomment file, or of all such files in and under a folder.

    Raises:
        TraceError: a file cannot be read as such a graph, or there is no annotated case at all.
    """
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    cases: list[LabelledCase] = []
    skipped: list[str] = []
    doubts: list[str] = []
    for file in files:
        try:
            part = labelled_cases(smartcomment.load(file), str(file), file.stem)
        except TraceError as error:
            if file == path:
                raise
            part = Suite(file.stem, (), (str(error),))
        cases += part.cases
        skipped += part.skipped
        doubts += part.doubts
    if not cases:
        why = f" ({skipped[0]})" if skipped else ""
        raise TraceError(f"{path}: holds no case with a label{why}; give a smartcomment file with data.annotations")
    return Suite(path.stem, tuple(cases), tuple(skipped), tuple(doubts))


def run(suite: Suite, make: Callable[[Recording], Attributor], access: ModelAccess | None = None) -> list[Prediction]:
    """Attribute every case of a suite, in its order; a case that fails is an abstention, and the rest goes on."""
    methods: dict[int, Attributor | MemtuneError] = {}
    predictions: list[Prediction] = []
    for labelled in suite.cases:
        key = id(labelled.recording)
        if key not in methods:
            methods[key] = _set_up(make, labelled.recording)
        predictions.append(_predict(methods[key], labelled.case, access))
    return predictions


def _set_up(make: Callable[[Recording], Attributor], recording: Recording) -> Attributor | MemtuneError:
    try:
        return make(recording)
    except Exception as error:
        return MemtuneError(f"{type(error).__name__}: {error}")


def _predict(method: Attributor | MemtuneError, case: Case, access: ModelAccess | None) -> Prediction:
    started, failed = time.perf_counter(), False
    with access.watch() if access is not None else nullcontext() as watch:
        try:
            if isinstance(method, MemtuneError):
                raise method
            attribution = method.attribute(case)
        except Exception as error:
            failed = True
            attribution = Attribution(case, abstained=f"attribution failed: {type(error).__name__}: {error}")
    tokens = watch.prompt_tokens + watch.completion_tokens if watch is not None else 0
    failed = failed or bool(watch is not None and watch.failures)
    return Prediction(attribution, tokens, (time.perf_counter() - started) * 1000, failed)


def labelled_cases(graph: ExecutionGraph, where: str, name: str) -> Suite:
    """The labelled cases of an annotated graph; `where` begins what is said of a label."""
    recording, unread = recording_of(graph, name), UnreadLabels([], [])
    cases = [
        LabelledCase(case, recording, label.error_type, label.operation_ids, label.acceptable_op_ids)
        for case, label in labels_in(recording, where, unread)
    ]
    return Suite(name, tuple(cases), tuple(unread.skipped), tuple(unread.doubts))
