"""Failed cases read off a graph: annotated ones, those its judge called wrong, and a user's complaint."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from attribution.cases import PASS_SCORE, Case
from attribution.content import text_of
from attribution.judge import judge
from attribution.recordings import Recording, metadata_of
from tracing.elements import Operation, Variable
from tracing.errors import TraceError
from tracing.graph import ExecutionGraph
from tracing.systems.conversations import Question

NOT_KNOWN = ""
"""The accepted answer of a complaint: nobody has said what would be right."""


def failed_cases(recording: Recording) -> list[Case]:
    """The cases that a graph's own judge called wrong: judge operations whose score is below the pass mark."""
    graph = recording.graph
    cases: list[Case] = []
    for operation in graph.operations.values():
        score = _score(graph, operation)
        if score is None or score >= PASS_SCORE:
            continue
        read = {graph.variables[vid].kind: graph.variables[vid] for vid in operation.input_ids()}
        query, prediction, gold = read.get("query"), read.get("prediction"), read.get("golden_answers")
        if query is None or prediction is None or gold is None:
            continue
        evidence = _strings(metadata_of(query).get("evidence"))
        cases.append(_case(recording, query.name, query, _answers(gold.value), evidence, prediction))
    return cases


def case_of(annotation: Mapping[str, Any], recording: Recording) -> Case | None:
    """The failed case that one of MemTraceBench's annotations is about; None if the graph has no such reply."""
    variables = recording.graph.variables
    prediction = variables.get(str(annotation.get("prediction_id")))
    query = variables.get(str(annotation.get("query_id")))
    asked = annotation.get("query") or (text_of(query.value) if query is not None else "")
    if prediction is None or not asked:
        return None
    gold = annotation.get("golden_answers")
    if gold is None and str(annotation.get("golden_answers_id")) in variables:
        gold = variables[str(annotation.get("golden_answers_id"))].value
    evidence = [
        variables[vid].name if vid in variables else vid for vid in _strings(annotation.get("source_evidence_ids"))
    ]
    name = query.name if query is not None else prediction.name
    return _case(recording, name, str(asked), _answers(gold), evidence, prediction)


def complaint(recording: Recording, question: str, reply: str) -> Case:
    """The case of a user who says that `reply` to `question` is wrong, without knowing what is right.

    The reply's operation is found by the words of question and reply.

    Raises:
        TraceError: the graph has no such answer.
    """
    graph = recording.graph
    wanted = " ".join(question.split()).casefold()
    for prediction in graph.find_variables(kind="prediction"):
        said = " ".join(text_of(prediction.value).split()).casefold()
        if reply and said != " ".join(reply.split()).casefold():
            continue
        for producer in graph.producers(prediction.id):
            for vid in producer.input_ids():
                query = graph.variables[vid]
                if query.kind == "query" and " ".join(text_of(query.value).split()).casefold() == wanted:
                    return _case(recording, query.name, query, (NOT_KNOWN,), (), prediction)
    raise TraceError(
        f"conversation {recording.conversation.id}: no answer to {question!r} that says {reply!r} is in the trace; "
        "give question and answer as they were recorded"
    )


def _case(
    recording: Recording,
    name: str,
    query: Variable | str,
    answers: Sequence[str],
    evidence: Iterable[str],
    prediction: Variable,
) -> Case:
    known = {turn.id for turn in recording.conversation.turns()}
    asked = query if isinstance(query, str) else text_of(query.value)
    question = Question(
        id=name,
        question=asked,
        answers=tuple(answers) or (NOT_KNOWN,),
        evidence=tuple(dict.fromkeys(turn for turn in evidence if turn in known)),
    )
    reply = text_of(prediction.value)
    # Whoever judged it said that it is wrong; how near it comes is still worth knowing.
    judgement = replace(judge(reply, question.answers), score=0.0)
    return Case(recording.conversation.id, question, reply, judgement, prediction.id)


def _score(graph: ExecutionGraph, operation: Operation) -> float | None:
    for vid in operation.output_ids():
        variable = graph.variables[vid]
        if variable.kind == "judge_score":
            try:
                score = float(text_of(variable.value) or variable.value)
            except (TypeError, ValueError):
                return None
            return None if math.isnan(score) else score
    return None


def _answers(gold: Any) -> tuple[str, ...]:
    listed = gold if isinstance(gold, list) else [gold]
    return tuple(text for text in (text_of(one).strip() for one in listed) if text)


def _strings(raw: Any) -> list[str]:
    return [one for one in raw if isinstance(one, str)] if isinstance(raw, list) else []
