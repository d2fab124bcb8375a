"""What the page shows of a trace, as JSON: its questions, timeline, cases, labels and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attribution.cases import Blame
from attribution.explanations import Explained
from attribution.recordings import Recording
from experiments.annotating.case_graph import CaseGraphs
from experiments.annotating.label_store import Label
from experiments.annotating.labels import CaseId
from experiments.annotating.lineage import brief, safe
from experiments.annotating.workspace import ListedCase, Workspace
from tracing.graph.execution_graph import ExecutionGraph

MOST_EVIDENCE = 60
_BRIEF_REPLY = 300


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
        "made": label.made,
        "action": assessment.action,
        "error_type": assessment.error_type,
        "operations": list(assessment.operations),
        "evidence": list(assessment.evidence),
        "note": safe(assessment.note),
        "method": safe(assessment.method),
    }


def shown_explanation(explanation: Explained, graph: ExecutionGraph) -> dict[str, Any]:
    """A verdict with its steps."""
    verdict = explanation.attribution
    return {
        "steps": [
            {"title": safe(step.title), "text": safe(step.text), "variables": _briefs(step.variables, graph)}
            for step in explanation.steps
        ],
        "decisive": [_blame(blame, graph) for blame in verdict.decisive],
        "alternatives": [_blame(blame, graph) for blame in verdict.alternatives],
        "abstained": safe(verdict.abstained) if verdict.abstained else None,
    }


def _blame(blame: Blame, graph: ExecutionGraph) -> Mapping[str, Any]:
    return {
        "operation": safe(blame.operation),
        "operation_id": blame.operation_id,
        "error_type": blame.error_type,
        "confidence": blame.confidence,
        "reason": safe(blame.reason),
        "evidence": _briefs(blame.evidence, graph),
        "verdict": blame.verdict,
    }


def _briefs(vids: tuple[str, ...], graph: ExecutionGraph) -> list[dict[str, Any]]:
    return [brief(graph, vid) for vid in vids if vid in graph.variables]
