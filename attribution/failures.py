"""Cases from a graph: annotated ones, those its judge called wrong or right, and a user's complaint."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from attribution.cases import PASS_SCORE, Case
from attribution.judging.words import judge_reply
from attribution.recordings import Recording, metadata_of
from attribution.text.content import text_of
from tracing.errors import TraceError
from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.systems.conversations import Question

NOT_KNOWN = ""
"""The accepted answer of a complaint: nobody has said what would be right."""

Tell = Callable[[str], None]
"""Takes a problem of one case, with the key and the remedy."""

_MOST_SHOWN = 5
NO_REPLY = "None"
"""How a reply that is no text is given in a complaint."""

_NOTHING = frozenset(("", NO_REPLY.casefold(), "null", "nan"))
_QUOTES = "\"'`“”„‟«»‹›‘’‚「」『』"
_ENDS = " \t\r\n.!?…。！？¿¡*"
_TWO_LINES = (
    '`asked = variable({question!r}, name="q1", kind="query")` and, on the next line, '
    '`with operation("answer", inputs={{"question": asked}}) as op: op.output("prediction", reply, kind="prediction")`'
)


def _untold(problem: str) -> None:
    """For who needs the cases alone."""


def failed_cases(recording: Recording, tell: Tell = _untold) -> list[Case]:
    """The cases that a graph's own judge called wrong. Evidence in a query's metadata that names no message is told."""
    return [case for case in judged_cases(recording, tell) if not case.passed]


def judged_cases(recording: Recording, tell: Tell = _untold) -> list[Case]:
    """As `failed_cases`, and those that the judge called right."""
    graph = recording.graph
    cases: list[Case] = []
    for operation in graph.operations.values():
        score = judge_score(graph, operation)
        if score is None:
            continue
        read = {graph.variables[vid].kind: graph.variables[vid] for vid in operation.input_ids()}
        query, prediction, gold = read.get("query"), read.get("prediction"), read.get("golden_answers")
        if query is None or prediction is None or gold is None:
            continue
        about = f"query {query.name}: evidence"
        teller = tell if score < PASS_SCORE else _untold
        evidence = _evidence(metadata_of(query).get("evidence"), about, recording, teller)
        case = _case(recording, query.name, query, _answers(gold.value), evidence, prediction)
        cases.append(case if score < PASS_SCORE else replace(case, judgement=replace(case.judgement, score=score)))
    return cases


def case_of(annotation: Mapping[str, Any], recording: Recording, tell: Tell = _untold) -> Case | None:
    """The failed case that a MemTraceBench annotation describes; None if the graph has no such reply."""
    variables = recording.graph.variables
    prediction = variables.get(str(annotation.get("prediction_id")))
    query = variables.get(str(annotation.get("query_id")))
    question = annotation.get("query") or (text_of(query.value) if query is not None else "")
    if prediction is None or not question:
        return None
    gold = annotation.get("golden_answers")
    if gold is None and str(annotation.get("golden_answers_id")) in variables:
        gold = variables[str(annotation.get("golden_answers_id"))].value
    evidence = _evidence(annotation.get("source_evidence_ids"), "source_evidence_ids", recording, tell)
    name = query.name if query is not None else prediction.name
    return _case(recording, name, str(question), _answers(gold), evidence, prediction)


def complaint(
    recording: Recording, question: str, reply: str = "", right: Sequence[str] = (), reply_id: str = ""
) -> Case:
    """The case of a user who says that the reply to a question is wrong.

    Args:
        recording: of the trace that the answer is in.
        question: as it was asked.
        reply: as it was given; may be empty if the trace has only one. If several say the same, the last counts.
        right: the right answer; empty if the user does not know it.
        reply_id: of the reply's variable, where it is known.

    The reply is found by the words of question and reply. A question annotated in the conversation keeps its
    evidence, and its accepted answers if `right` is empty.

    Raises:
        TraceError: the graph has no such answer, or several; lists what it has, or says how to record one.
    """
    recorded_replies = [pair for pair in answers_in(recording.graph) if _asks(pair[0], question)]
    candidates = {
        _plain(text_of(prediction.value)): (query, prediction)
        for query, prediction in recorded_replies
        if reply_id in ("", prediction.id) and (not reply or same_text(text_of(prediction.value), reply))
    }
    if not recorded_replies:
        unrecorded = answer_missing(recording.graph, question)
        if unrecorded is not None:
            raise TraceError(f"conversation {recording.conversation.id}: {unrecorded}")
    if len(candidates) != 1:
        replies = "; ".join(repr(text_of(prediction.value)) for _, prediction in recorded_replies[:_MOST_SHOWN])
        recorded_questions = dict.fromkeys(
            repr(text_of(variable.value)) for variable in recording.graph.find_variables(kind="query")
        )
        questions = "; ".join(list(recorded_questions)[:_MOST_SHOWN])
        count = f"{len(candidates)} answers" if candidates else "no answer"
        recorded = f"it was answered with: {replies}" if replies else f"questions in it are: {questions or 'none'}"
        raise TraceError(
            f"conversation {recording.conversation.id}: {count} to {question!r} in the trace; give question and reply "
            f"as they were recorded; {recorded}"
        )
    ((query, prediction),) = candidates.values()
    annotated_questions = recording.conversation.questions
    same = [annotated for annotated in annotated_questions if _plain(annotated.question) == _plain(question)]
    if not same:
        return _case(recording, query.name, query, tuple(right) or (NOT_KNOWN,), (), prediction)
    annotated = same[0].model_copy(update={"answers": tuple(right)}) if right else same[0]
    reply_text = text_of(prediction.value)
    judgement = replace(judge_reply(annotated, reply_text), score=0.0)
    return Case(recording.conversation.id, annotated, reply_text, judgement, prediction.id)


def answers_in(graph: ExecutionGraph) -> list[tuple[Variable, Variable]]:
    """Every question in a graph with a reply to it, in the order recorded."""
    return [
        (query, prediction)
        for prediction in graph.find_variables(kind="prediction")
        for producer in graph.producers(prediction.id)
        for query in map(graph.variables.__getitem__, producer.input_ids())
        if query.kind == "query"
    ]


def answer_missing(graph: ExecutionGraph, question: str = "") -> str | None:
    """What a graph lacks to have the answer to a question, or to any, and how to record it; None if it has others."""
    queries = [query for query in graph.find_variables(kind="query") if not question or _asks(query, question)]
    if answers_in(graph) and not (question and queries):
        return None
    if queries:
        what = f"records the question {text_of(queries[0].value)!r}, but no reply to it: no operation that read it made"
        what += " a variable of kind 'prediction'"
    elif graph.find_variables(kind="prediction"):
        what = "records replies, but no operation that made one read a question: a variable of kind 'query'"
    else:
        what = "records no answer: neither a question (a variable of kind 'query') nor the reply (kind 'prediction')"
    lines = _TWO_LINES.format(question=question or (text_of(queries[0].value) if queries else "Where does Mara live?"))
    return f"the trace {what}; record both where the answer is made: {lines}; see docs/tracing.md#questions-and-answers"


def _asks(query: Variable, question: str) -> bool:
    return _plain(text_of(query.value)) == _plain(question)


def same_text(first: str, second: str) -> bool:
    """Whether two texts are one reply or question, in quotation marks or not; `None` is a reply that is no text."""
    plain = _plain(first), _plain(second)
    return plain[0] == plain[1] or _NOTHING.issuperset(plain)


def _plain(text: str) -> str:
    # What is copied by hand loses or gains the sign at its end.
    bare = text.strip(_QUOTES + _ENDS)
    return " ".join((bare or text).split()).casefold()


def _case(
    recording: Recording,
    name: str,
    query: Variable | str,
    answers: Sequence[str],
    evidence: Sequence[str],
    prediction: Variable,
) -> Case:
    text = query if isinstance(query, str) else text_of(query.value)
    question = Question(id=name, question=text, answers=tuple(answers) or (NOT_KNOWN,), evidence=tuple(evidence))
    reply = text_of(prediction.value)
    # The reply was already judged wrong; how near it comes is still worth knowing.
    judgement = replace(judge_reply(question, reply), score=0.0)
    return Case(recording.conversation.id, question, reply, judgement, prediction.id)


def judge_score(graph: ExecutionGraph, operation: Operation) -> float | None:
    """The score that an operation gave a reply; None if it is no judge, or its score no number."""
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
    return tuple(text for text in (text_of(answer).strip() for answer in listed) if text)


def _evidence(raw: Any, key: str, recording: Recording, tell: Tell) -> tuple[str, ...]:
    """The turns that evidence names, by their names or the ids of their variables."""
    if raw is None:
        return ()
    if not isinstance(raw, list):
        tell(f"{key}: is {raw!r}, not a list; give a list of ids, such as [{json.dumps(str(raw))}]")
        raw = [raw]
    turns = {turn.id for turn in recording.conversation.turns()}
    evidence: dict[str, None] = {}
    for vid in raw:
        variable = recording.graph.variables.get(vid) if isinstance(vid, str) else None
        name = variable.name if variable is not None else vid
        if isinstance(name, str) and name in turns:
            evidence[name] = None
        else:
            tell(f"{key}: {vid!r} names no message of the graph; correct it, or leave it out")
    return tuple(evidence)
