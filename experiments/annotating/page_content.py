"""What the page shows of a trace, as JSON: questions, timeline, cases, labels, verdicts, variables and operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from attribution.cases import Blame
from attribution.explanations import Explained
from attribution.recordings import Recording
from attribution.survival.survival_method import pictures_of
from experiments.annotating.case_graph import CaseGraphs
from experiments.annotating.labels import CaseId, Label
from experiments.display.pages import picture_html
from experiments.display.terminal import visible
from experiments.reports.text_difference import difference
from tracing.errors import TraceError
from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.search import shown_text
from tracing.recording.redaction import redact

if TYPE_CHECKING:
    from experiments.annotating.workspace import ListedCase, Workspace

LONGEST_VALUE, MOST_LISTED, BRIEF = 20_000, 100, 160
_LONGEST_COMPARED = 4_000
MOST_EVIDENCE = 60
_BRIEF_REPLY = 300


def element(graph: ExecutionGraph, element_id: str) -> dict[str, Any]:
    """A variable or operation by its id, with its neighbours, as JSON."""
    if element_id in graph.operations:
        return _operation(graph, graph.operations[element_id])
    if element_id in graph.variables:
        return _variable(graph, graph.variables[element_id])
    raise TraceError(f"{element_id!r}: is not a variable or operation of this graph")


def brief(graph: ExecutionGraph, element_id: str) -> dict[str, Any]:
    """An element in a line."""
    operation = graph.operations.get(element_id)
    if operation is not None:
        return {"id": element_id, "what": "operation", "name": operation.name, "text": _where(graph, operation.session)}
    variable = graph.variables[element_id]
    text = " ".join(safe(shown_text(variable.value), BRIEF).split())
    name = variable.name if variable.version == 1 else f"{variable.name} (version {variable.version})"
    return {"id": element_id, "what": "variable", "kind": variable.kind, "name": safe(name, BRIEF), "text": text}


def safe(text: str, longest: int = LONGEST_VALUE) -> str:
    """A text as a page shows it: without credentials or characters that hide or reorder others."""
    text = redact(text)
    cut = text if len(text) <= longest else f"{text[:longest]}… ({len(text) - longest:,} more characters)"
    return visible(cut)


def _variable(graph: ExecutionGraph, variable: Variable) -> dict[str, Any]:
    versions = graph.versions(variable.id)
    messages = [
        source.id for source in graph.backward_slice(variable.id).variables.values() if source.kind == "message"
    ]
    onward = graph.forward_slice(variable.id)
    return {
        **brief(graph, variable.id),
        "value": safe(shown_text(variable.value)),
        "session": _where(graph, variable.session),
        "made_by": [brief(graph, neighbour.id) for neighbour in graph.producers(variable.id)[:MOST_LISTED]],
        "read_by": [brief(graph, neighbour.id) for neighbour in graph.consumers(variable.id)[:MOST_LISTED]],
        "versions": [_version(before, version) for before, version in zip([None, *versions], versions, strict=False)],
        "messages": [brief(graph, message_id) for message_id in messages[:MOST_LISTED]],
        "messages_count": len(messages),
        "onward": {"operations": len(onward.operations), "variables": len(onward.variables) - 1},
    }


def _version(before: Variable | None, variable: Variable) -> dict[str, Any]:
    """A version, with what changed since the one before: lines of (kind, [[text, changed], …])."""
    text = safe(shown_text(variable.value), _LONGEST_COMPARED)
    deleted = variable.kind == "delete_marker"
    lines: list[Any] = []
    if before is not None and not deleted:
        old = safe(shown_text(before.value), _LONGEST_COMPARED)
        lines = [[line.kind, line.parts, line.fold] for line in difference(old, text)]
    return {"id": variable.id, "version": variable.version, "deleted": deleted, "text": text, "difference": lines}


def _operation(graph: ExecutionGraph, operation: Operation) -> dict[str, Any]:
    facts = {
        "status": operation.status,
        "seconds": round(operation.ended - operation.started, 3) if operation.ended is not None else None,
        "model": operation.model,
        "calls": operation.calls,
        "prompt tokens": operation.prompt_tokens,
        "completion tokens": operation.completion_tokens,
        "error": safe(operation.error) if operation.error else None,
    }
    return {
        **brief(graph, operation.id),
        "session": _where(graph, operation.session),
        "facts": {key: value for key, value in facts.items() if value not in (None, 0, "")},
        "inputs": [{"role": role, **brief(graph, vid)} for role, vid in operation.inputs[:MOST_LISTED]],
        "outputs": [{"role": role, **brief(graph, vid)} for role, vid in operation.outputs[:MOST_LISTED]],
        "inputs_count": len(operation.inputs),
        "outputs_count": len(operation.outputs),
    }


def _where(graph: ExecutionGraph, session: str | None) -> str:
    shared_session = graph.sessions.get(session or "")
    return safe(shared_session.name, BRIEF) if shared_session is not None else ""


def shown_entry(entry: ListedCase, place: int | None) -> dict[str, Any]:
    """A question in the list; `place` is that in the queue."""
    main = entry.verdict.main if entry.verdict is not None else None
    return {
        "id": entry.id.case,
        "question": safe(entry.question, _BRIEF_REPLY),
        "reply": safe(entry.reply, _BRIEF_REPLY),
        "kind": safe(entry.kind),
        "state": entry.state,
        "place": place,
        "verdict": [main.error_type, main.operation, main.confidence] if main is not None else None,
    }


def timeline(recording: Recording) -> dict[str, Any]:
    """The conversation, with the id of each message's variable."""
    ids: dict[str, str] = {}
    for message in recording.graph.find_variables(kind="message"):
        ids.setdefault(message.name, message.id)
    return {
        "sessions": [
            {
                "name": safe(session.id),
                "time": safe(session.time),
                "turns": [
                    [ids.get(turn.id), safe(turn.id), safe(turn.speaker), safe(turn.text)] for turn in session.turns
                ],
            }
            for session in recording.conversation.sessions
        ]
    }


def shown_case(workspace: Workspace, case: CaseId) -> dict[str, Any]:
    """A case with its evidence and its part of the graph."""
    entry, attributed_case = workspace.entry(case), workspace.case(case)
    recording = workspace.graph(case.trace).recording
    graphs = CaseGraphs(recording, attributed_case)
    evidence = graphs.evidence()
    blames = (*entry.verdict.decisive,) if entry.verdict is not None else ()
    blamed = [blame.operation_id for blame in blames if blame.operation_id is not None]
    part = graphs.around(blamed)
    return {
        "question": safe(entry.question),
        "reply": safe(entry.reply),
        "kind": safe(entry.kind),
        "state": entry.state,
        "prediction": attributed_case.prediction,
        "answers": [safe(answer) for answer in entry.answers],
        "evidence": [
            {**brief(recording.graph, message.id), "gold": message.gold, "used": message.used}
            for message in evidence[:MOST_EVIDENCE]
        ],
        "evidence_count": len(evidence),
        "titles": list(part.titles),
        "columns": [[brief(recording.graph, element_id) for element_id in column] for column in part.columns],
        "left_out": list(part.left_out),
        "edges": [list(edge) for edge in part.edges],
    }


def shown_label(label: Label) -> dict[str, Any]:
    """A revision of a label."""
    assessment = label.assessment
    return {
        "annotator": safe(label.annotator),
        "revision": label.revision,
        "restores": label.restores,
        "made": label.created,
        **asdict(assessment),
        "note": safe(assessment.note),
        "method": safe(assessment.method),
    }


def shown_explanation(explanation: Explained, recording: Recording) -> dict[str, Any]:
    """A verdict with its picture, which is markup, and the method's steps."""
    verdict, graph = explanation.attribution, recording.graph
    return {
        "picture": picture_html(pictures_of(recording, [verdict])[0], ""),
        "steps": [
            {"title": safe(step.title), "text": safe(step.text), "variables": _briefs(step.variables, graph)}
            for step in explanation.steps
        ],
        "decisive": [_blame(blame, graph) for blame in verdict.decisive],
        "alternatives": [_blame(blame, graph) for blame in verdict.alternatives],
        "abstained": safe(verdict.abstained) if verdict.abstained else None,
    }


def _blame(blame: Blame, graph: ExecutionGraph) -> Mapping[str, Any]:
    texts = {"operation": safe(blame.operation), "reason": safe(blame.reason)}
    return {**asdict(blame), **texts, "evidence": _briefs(blame.evidence, graph)}


def _briefs(vids: tuple[str, ...], graph: ExecutionGraph) -> list[dict[str, Any]]:
    return [brief(graph, vid) for vid in vids if vid in graph.variables]
