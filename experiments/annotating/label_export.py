"""Labels as MemTraceBench's annotated graphs, which `memtune bench attribution` and other tools read.

Each labelled trace becomes one smartcomment file with `data.annotations`. The ids of the annotations are node ids, so a
trace of ours is written with its variables named by them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from attribution.cases import Case, ErrorType
from experiments.annotating.annotator_agreement import ConsensusLabel, consensus_of
from experiments.annotating.labels import CaseId, Label
from experiments.data.own.histories import reconnected, relinked
from tracing.errors import ConfigError, MemtuneError
from tracing.files.whole_files import write_whole
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange import smartcomment
from tracing.interchange.smartcomment.file_format import KEY, NATIVE

if TYPE_CHECKING:
    from experiments.annotating.workspace import GraphInUse, Workspace

ANNOTATORS = "annotators"
"""Key of an annotation beside MemTraceBench's: annotator → what they said."""
_NAMES: Mapping[ErrorType, str] = {"JudgeError": "LLMAsAJudgeError"}


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export wrote: a file for each labelled trace, and a line for each that could not be written.

    Cases on which as many annotators name one error type as another are `divided`, and left out.
    """

    files: tuple[Path, ...]
    cases: int
    divided: int
    elsewhere: int
    problems: tuple[str, ...]

    def line(self) -> str:
        """The same in a sentence."""
        parts = [f"{_count_text(self.cases, 'labelled case')} in {_count_text(len(self.files), 'file')}"]
        parts += [f"{self.divided} left out, since annotators are divided"] * bool(self.divided)
        parts += [f"{_count_text(self.elsewhere, 'label')} of traces that are not open"] * bool(self.elsewhere)
        return ", ".join([*parts, *self.problems])


def export(workspace: Workspace, labels: Iterable[Label], folder: Path) -> ExportReport:
    """Write a file for each labelled trace; files of the same names in the folder are replaced.

    Raises:
        ConfigError: the folder cannot be written.
    """
    all_labels = list(labels)
    open_labels = [label for label in all_labels if label.case.trace in workspace.traces]
    consensus, divided = consensus_of(open_labels)
    by_trace: dict[str, dict[CaseId, ConsensusLabel]] = {}
    for case, label in consensus.items():
        by_trace.setdefault(case.trace, {})[case] = label
    written: dict[Path, int] = {}
    problems = []
    for trace, cases in by_trace.items():
        path = folder / f"{_stem(workspace, trace)}.json"
        try:
            document = annotated(workspace, trace, cases)
        except MemtuneError as error:
            problems.append(str(error))
            continue
        _write(path, document)
        written[path] = len(cases)
    return ExportReport(
        tuple(written), sum(written.values()), len(divided), len(all_labels) - len(open_labels), tuple(problems)
    )


def annotated(workspace: Workspace, trace: str, cases: Mapping[CaseId, ConsensusLabel]) -> dict[str, Any]:
    """A trace as a smartcomment document with these annotations."""
    used = workspace.graph(trace)
    graph, ids = _by_node_ids(used.recording.graph)
    document = smartcomment.document_of(graph)
    rows = [_annotation(used, workspace.case(case), label, ids) for case, label in cases.items()]
    document["data"] = {**document["data"], "annotations": rows}
    if KEY not in graph.attributes:
        # Read as another tool's document, whose other keys, such as annotations, are kept.
        document["metadata"] = {NATIVE: {"facts": dict(graph.attributes)}}
    return document


def _annotation(used: GraphInUse, case: Case, label: ConsensusLabel, ids: Mapping[str, str]) -> dict[str, Any]:
    graph = used.recording.graph
    producers = graph.producers(case.prediction) if case.prediction in graph.variables else []
    query = next(
        (vid for producer in producers for vid in producer.input_ids() if graph.variables[vid].kind == "query"), None
    )
    messages = {message.name: message.id for message in reversed(graph.find_variables(kind="message"))}
    gold = [messages[turn] for turn in case.question.evidence if turn in messages]
    labelled_messages = [
        vid for vid in label.evidence if vid in graph.variables and graph.variables[vid].kind == "message"
    ]
    answers = [answer for answer in case.question.answers if answer.strip()]
    one_operation = len(label.operations) == 1
    return {
        "query_id": ids.get(query or ""),
        "query": case.question.question,
        "golden_answers": answers[0] if len(answers) == 1 else answers,
        "prediction": case.reply,
        "prediction_id": ids.get(case.prediction or ""),
        "source_evidence_ids": [ids[vid] for vid in (gold or labelled_messages)],
        "final_error_type": _NAMES.get(label.error_type, label.error_type),
        # Null where several share the fault, as the format has it.
        "final_op_id": label.operations[0] if one_operation else None,
        "acceptable_op_ids": [*label.operations, *(label.acceptable if one_operation else ())],
        ANNOTATORS: {annotator_label.annotator: _label_json(annotator_label, ids) for annotator_label in label.labels},
    }


def _label_json(label: Label, ids: Mapping[str, str]) -> dict[str, Any]:
    assessment = label.assessment
    return {
        "action": assessment.action,
        "error_type": assessment.error_type,
        "op_ids": list(assessment.operations),
        "evidence_ids": [ids.get(vid, vid) for vid in assessment.evidence],
        "note": assessment.note,
        "method": assessment.method,
        "revision": label.revision,
    }


def _by_node_ids(graph: ExecutionGraph) -> tuple[ExecutionGraph, dict[str, str]]:
    """The graph with the ids that its nodes have in a smartcomment file, and the id there of each variable."""
    if KEY in graph.attributes:
        return graph, {vid: vid for vid in graph.variables}
    nodes = smartcomment.document_of(graph)["data"]["nodes"]
    named = {node["metadata"][NATIVE]["id"]: node for node in nodes}
    ids = {vid: str(named[vid]["full_node_id"]) for vid in graph.variables}
    variables = [
        replace(relinked(variable, ids), id=ids[variable.id], name=str(named[variable.id]["name"]))
        for variable in graph.variables.values()
    ]
    operations = [reconnected(operation, ids) for operation in graph.operations.values()]
    return ExecutionGraph(variables, operations, graph.sessions.values(), graph.attributes), ids


def _stem(workspace: Workspace, trace: str) -> str:
    stems = [trace_file.source.path.stem for trace_file in workspace.traces.values()]
    stem = workspace.traces[trace].source.path.stem
    return stem if stems.count(stem) == 1 else f"{stem}-{trace}"


def _write(path: Path, document: Mapping[str, Any]) -> None:
    try:
        write_whole(path, json.dumps(document))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror}); give another folder") from None


def _count_text(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
