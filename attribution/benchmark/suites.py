"""Loading suites of labelled cases, and running a method of attribution over one.

Annotated graphs are smartcomment files with MemTraceBench's `annotations`: for each failure its error type, the
operation at fault (null where several share the fault), and the operations that are acceptable too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from attribution.attributor import Attributor
from attribution.benchmark.metrics import Prediction
from attribution.cases import Attribution, Case, ErrorType
from attribution.failures import case_of
from attribution.labelled import LabelledCase, Suite
from attribution.recordings import Recording, recording_of
from tracing.errors import MemtuneError, TraceError
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange import smartcomment

if TYPE_CHECKING:
    from tracing.llm.access import ModelAccess

_TYPES: Mapping[str, ErrorType] = {name: name for name in get_args(ErrorType)} | {"LLMAsAJudgeError": "JudgeError"}


def load_suite(path: Path) -> Suite:
    """The labelled cases of an annotated smartcomment file, or of all such files in and under a folder.

    Raises:
        TraceError: a file cannot be read as such a graph, or there is no annotated case at all.
    """
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    cases: list[LabelledCase] = []
    skipped: list[str] = []
    for file in files:
        try:
            found, troubles = _annotated(smartcomment.load(file), file)
        except TraceError as error:
            if file == path:
                raise
            found, troubles = [], [str(error)]
        cases += found
        skipped += troubles
    if not cases:
        why = f" ({skipped[0]})" if skipped else ""
        raise TraceError(f"{path}: holds no case with a label{why}; give a smartcomment file with data.annotations")
    return Suite(path.stem, tuple(cases), tuple(skipped))


def run(suite: Suite, make: Callable[[Recording], Attributor], access: ModelAccess | None = None) -> list[Prediction]:
    """Attribute every case of a suite, in its order; a case that fails is an abstention, and the rest goes on.

    Args:
        suite: the cases.
        make: sets the method up, once per recording.
        access: the models whose tokens are counted.
    """
    made: dict[int, Attributor | MemtuneError] = {}
    predictions: list[Prediction] = []
    for labelled in suite.cases:
        key = id(labelled.recording)
        if key not in made:
            made[key] = _set_up(make, labelled.recording)
        predictions.append(_predict(made[key], labelled.case, access))
    return predictions


def _set_up(make: Callable[[Recording], Attributor], recording: Recording) -> Attributor | MemtuneError:
    try:
        return make(recording)
    except Exception as error:
        return MemtuneError(f"{type(error).__name__}: {error}")


def _predict(method: Attributor | MemtuneError, case: Case, access: ModelAccess | None) -> Prediction:
    started = time.perf_counter()
    with access.watch() if access is not None else nullcontext() as watch:
        try:
            if isinstance(method, MemtuneError):
                raise method
            attribution = method.attribute(case)
        except Exception as error:
            attribution = Attribution(case, abstained=f"attribution failed: {type(error).__name__}: {error}")
    tokens = watch.prompt_tokens + watch.completion_tokens if watch is not None else 0
    return Prediction(attribution, tokens, (time.perf_counter() - started) * 1000)


def _annotated(graph: ExecutionGraph, file: Path) -> tuple[list[LabelledCase], list[str]]:
    recording = recording_of(graph, file.stem)
    cases: list[LabelledCase] = []
    skipped: list[str] = []
    for place, raw in enumerate(smartcomment.annotations_of(graph)):
        where = f"{file}: data.annotations[{place}]"
        error_type = _TYPES.get(str(raw.get("final_error_type")))
        if error_type is None:
            skipped.append(f"{where}.final_error_type: {raw.get('final_error_type')!r} is not an error type")
            continue
        case = case_of(raw, recording)
        if case is None:
            skipped.append(f"{where}: names no question and reply of the graph")
            continue
        final = raw.get("final_op_id")
        acceptable = _ids(raw.get("acceptable_op_ids"), graph)
        gold = _ids([final], graph) if final else acceptable
        cases.append(LabelledCase(case, recording, error_type, gold, tuple(dict.fromkeys((*gold, *acceptable)))))
    return cases, skipped


def _ids(raw: Any, graph: ExecutionGraph) -> tuple[str, ...]:
    listed: Sequence[Any] = raw if isinstance(raw, list) else ()
    return tuple(dict.fromkeys(oid for oid in listed if isinstance(oid, str) and oid in graph.operations))
