"""Loading suites of labelled cases, and running a method of attribution over one.

Annotated graphs are smartcomment files with MemTraceBench's `annotations`: for each failure its error type, the
operation at fault (null where several share the fault), and the operations that are acceptable too. Required are
`prediction_id`, `final_error_type`, and `query` or `query_id`; `golden_answers` or `golden_answers_id` where the right
answer is known; `source_evidence_ids`, a list of message ids, where the evidence is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from attribution.attributor import Attributor
from attribution.benchmark.attribution_scores import Prediction
from attribution.cases import Attribution, Case, ErrorType
from attribution.failures import case_of
from attribution.labelled_cases import LabelledCase, Suite
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
    recording = recording_of(graph, name)
    cases: list[LabelledCase] = []
    skipped: list[str] = []
    doubts: list[str] = []
    for place, raw in enumerate(smartcomment.annotations_of(graph)):
        label = f"{where}: data.annotations[{place}]"

        def tell(problem: str, label: str = label) -> None:
            doubts.append(f"{label}.{problem}")

        error_type = _TYPES.get(str(raw.get("final_error_type")))
        if error_type is None:
            skipped.append(f"{label}.final_error_type: {raw.get('final_error_type')!r} is not an error type")
            continue
        case = case_of(raw, recording, tell)
        if case is None:
            skipped.append(f"{label}: names no question and reply of the graph; correct query_id or prediction_id")
            continue
        final = raw.get("final_op_id")
        acceptable = _operations(raw.get("acceptable_op_ids"), "acceptable_op_ids", graph, tell)
        gold = _operations([final], "final_op_id", graph, tell) if final else acceptable
        cases.append(LabelledCase(case, recording, error_type, gold, tuple(dict.fromkeys((*gold, *acceptable)))))
    return Suite(name, tuple(cases), tuple(skipped), tuple(doubts))


def _operations(raw: Any, key: str, graph: ExecutionGraph, tell: Callable[[str], None]) -> tuple[str, ...]:
    """Those of the listed operations that the graph has; others are told."""
    if raw is None:
        return ()
    if not isinstance(raw, list):
        tell(f"{key}: is {raw!r}, not a list; give a list of operation ids")
        raw = [raw]
    present = [oid for oid in raw if isinstance(oid, str) and oid in graph.operations]
    for oid in raw:
        if oid not in present:
            tell(f"{key}: {oid!r} names no operation of the graph; correct it, or leave it out")
    return tuple(dict.fromkeys(present))
