"""A trace as an interactive page: one file, works offline. It opens on the questions, if any were asked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from attribution.cases import Attribution, Blame, Case
from attribution.failures import answers_in
from attribution.history import graph_at
from attribution.recordings import recording_of
from attribution.survival.failure_picture import FailurePicture
from attribution.survival.survival_method import pictures_of
from attribution.text.content import text_of
from experiments.display.pages import picture_html, template
from experiments.runs.intervals import duration_text
from experiments.views.trace_map import render_map
from experiments.views.trace_tree import Nesting, shorten
from tracing.graph.elements import Operation
from tracing.graph.execution_graph import ExecutionGraph
from tracing.graph.search import shown_text
from tracing.package_data import packaged_text
from tracing.recording.redaction import Redaction, redact

LONGEST_VALUE = 20_000
"""Characters of a value that the page holds; the rest is counted."""


SESSION_TEXT = 200
"""Characters of a session's text that tell it from others."""

_SCRIPTS = ("model", "tree", "neighbours", "questions", "waterfall", "search", "opening")
Judged = tuple[Case, Attribution | None]
"""A judged question, and its attribution, if one was made."""


def render_page(
    graph: ExecutionGraph,
    title: str,
    judged: Sequence[Judged] = (),
    pictures: Mapping[str, FailurePicture] = MappingProxyType({}),
) -> str:
    """The page as HTML. Its size is about that of the trace file.

    Args:
        graph: of the trace.
        title: of the page; credentials are removed from it.
        judged: the questions that were judged; what was asked besides is shown without a mark.
        pictures: of wrong replies, by their predictions.
    """
    from markupsafe import Markup

    title = redact(title)
    data = json.dumps(_data(graph, judged, pictures), ensure_ascii=False, separators=(",", ":"))
    data = data.encode("utf-8", "backslashreplace").decode()  # half of a character, as JSON has it
    # Only `<` could end a script element; JSON can escape it.
    safe = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    script = "\n".join(packaged_text("experiments", f"templates/trace/{name}.js") for name in _SCRIPTS)
    parts = {"data": safe, "script": script, "picture": render_map(graph, title)}
    return template("trace.html").render(title=title, **{name: Markup(part) for name, part in parts.items()})  # noqa: S704


def question_anchor(question: str) -> str:
    """What follows the address of a page, to open it on the question with this id."""
    return f"#question={quote(question, safe='', errors='replace')}"


def _data(graph: ExecutionGraph, judged: Sequence[Judged], pictures: Mapping[str, FailurePicture]) -> dict[str, Any]:
    """What the page's script reads; operations and variables refer to each other by id."""
    nesting = Nesting(graph)
    # A value that a file holds once is one object.
    values = {id(variable.value): variable.value for variable in graph.variables.values()}
    places = {key: place for place, key in enumerate(values)}
    counts = Counter(operation.session for operation in graph.operations.values())
    failed = Counter(operation.session for operation in graph.operations.values() if operation.status == "error")
    texts = _session_texts(graph)
    return {
        "questions": questions_of(graph, judged),
        "pictures": {prediction: picture_html(picture, "") for prediction, picture in pictures.items()},
        "sessions": [
            {
                "id": sid,
                "name": graph.sessions[sid].name if sid is not None else "outside of any session",
                "time": str(graph.sessions[sid].attributes.get("time", "")) if sid is not None else "",
                "text": texts.get(sid, ""),
                "tops": [operation.id for operation in tops],
                "count": counts[sid],
                "failed": failed[sid],
            }
            for sid, tops in nesting.tops.items()
            if tops or sid is not None
        ],
        "values": [_shortened_value(shown_text(value)) for value in values.values()],
        "variables": {
            vid: [v.name, v.kind, places[id(v.value)], v.version, v.previous, dict(v.attributes)]
            for vid, v in graph.variables.items()
        },
        "operations": {oid: _operation(operation, nesting) for oid, operation in graph.operations.items()},
    }


def pictures_in(graph: ExecutionGraph, judged: Sequence[Judged]) -> dict[str, FailurePicture]:
    """The pictures of the attributed questions of a graph alone, by their predictions."""
    attributions = [attribution for _, attribution in judged if attribution is not None]
    if not attributions:
        return {}
    pictures = zip(attributions, pictures_of(recording_of(graph, ""), attributions), strict=True)
    return {attribution.case.prediction or "": picture for attribution, picture in pictures}


def _session_texts(graph: ExecutionGraph) -> dict[str | None, str]:
    """What each session is about: its question, or what was said first in it."""
    texts: dict[str | None, str] = {}
    for kind in ("query", "message"):
        for variable in graph.find_variables(kind=kind):
            if variable.session is not None and variable.session not in texts:
                texts[variable.session] = shorten(
                    text_of(variable.value) or shown_text(variable.value, SESSION_TEXT), SESSION_TEXT
                )
    return texts


def _operation(operation: Operation, nesting: Nesting) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "kind": operation.kind,
        "status": operation.status,
        "took": duration_text(operation.ended - operation.started) if operation.ended is not None else None,
        "model": operation.model,
        "calls": operation.calls,
        "cached calls": operation.cached_calls,
        "prompt tokens": operation.prompt_tokens,
        "completion tokens": operation.completion_tokens,
        "cost": operation.cost,
        "error": operation.error,
        **operation.attributes,
    }
    return {
        "name": operation.name,
        "in": operation.inputs,
        "out": operation.outputs,
        "inside": [operation.id for operation in nesting.children.get(operation.id, ())],
        "parent": operation.parent,
        "session": operation.session,
        "at": [operation.started, operation.ended],
        "facts": {key: value for key, value in facts.items() if value not in (None, 0, "")},
    }


def _shortened_value(text: str) -> str:
    if len(text) <= LONGEST_VALUE:
        return text
    return f"{text[:LONGEST_VALUE]}… ({len(text) - LONGEST_VALUE:,} more characters)"


def questions_of(graph: ExecutionGraph, judged: Sequence[Judged] = ()) -> list[dict[str, Any]]:
    """Every question with a reply in the graph, in the order asked, as plain data without credentials.

    `passed` is null for what nobody judged. Operations and variables are given by their ids in the graph.
    """
    judged_by_prediction = {case.prediction: (case, attribution) for case, attribution in judged}
    messages = {message.name: message.id for message in reversed(graph.find_variables(kind="message"))}
    questions = []
    for query, prediction in answers_in(graph):
        question_data: dict[str, Any] = {
            "id": query.name,
            "asked": text_of(query.value),
            "reply": text_of(prediction.value),
            "passed": None,
            "session": prediction.session,
            "prediction": prediction.id,
        }
        if prediction.id in judged_by_prediction:
            case, attribution = judged_by_prediction[prediction.id]
            question_data |= _judgement_record(
                case, attribution, [messages[turn] for turn in case.question.evidence if turn in messages]
            )
            if question_data["evidence"]:
                past = graph_at(graph, (), case).variables
                question_data["evidence"] = [message for message in question_data["evidence"] if message in past]
        questions.append(Redaction().value(question_data))
    return questions


def _judgement_record(case: Case, attribution: Attribution | None, evidence: list[str]) -> dict[str, Any]:
    question = case.question
    decisive, alternatives = (attribution.decisive, attribution.alternatives) if attribution is not None else ((), ())
    return {
        "id": question.id,
        "asked": question.asked,
        "kind": question.kind,
        "gold": [answer for answer in question.answers if answer],
        "passed": case.passed,
        "score": round(case.judgement.score, 4),
        "evidence": evidence,
        "decisive": [_blame(blame) for blame in decisive],
        "alternatives": [_blame(blame) for blame in alternatives],
        "abstained": attribution.abstained if attribution is not None else None,
    }


def _blame(blame: Blame) -> dict[str, Any]:
    return {
        "operation": blame.operation,
        "at": blame.operation_id,
        "error": blame.error_type,
        "confidence": round(blame.confidence, 2),
        "reason": blame.reason,
        "evidence": list(blame.evidence),
        "verdict": blame.verdict,
    }
