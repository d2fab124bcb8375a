"""What was recorded of a prompt's operation: executions behind right and wrong answers, and what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from attribution.judging.words import SHORT_REPLY_WORDS
from attribution.text.tokens import contains, word_count
from tracing.errors import MalformedReplyError
from tracing.llm.http.strict_json import strict_json

if TYPE_CHECKING:
    from attribution.cases import Attribution, Case
    from optimizer.evaluation.evaluator import Outcome
    from tracing.graph.execution_graph import ExecutionGraph, Operation, Variable
    from tracing.systems.prompts import PromptSpec
    from tracing.systems.protocol import Stage

Symptom = Literal[
    "long reply",
    "false unknown",
    "missed unknown",
    "near miss",
    "wrong value",
    "lost value",
    "lost change",
    "lost retraction",
    "nameless facts",
    "missed update",
    "missed delete",
    "wrong overwrite",
]
"""What a failed execution looks like: finer than the error type, and what instructions and edits are chosen by."""

_PLACEHOLDERS = {"messages": "conversation", "query": "question"}
"""Roles of recorded inputs whose placeholder has another name."""


@dataclass(frozen=True, slots=True)
class Example:
    """One recorded execution of a prompt's operation, in the light of one judged question.

    Attributes:
        case: the judged question.
        attribution: why it failed; None for a passed case.
        parts: placeholder name → the texts it was filled with, each with its variable's name (turn id, entry id).
        output: the reply, in the form the prompt asks for.
    """

    case: Case
    attribution: Attribution | None
    parts: Mapping[str, tuple[tuple[str, str], ...]] = field(hash=False)
    output: str

    @property
    def inputs(self) -> dict[str, str]:
        """Placeholder name → text, one line an item, as the request had it."""
        return {name: fill(name, [text for _, text in items]) for name, items in self.parts.items()}

    @property
    def wants_unknown(self) -> bool:
        """Whether the right answer is that it is not known."""
        question = self.case.question
        return question.unanswerable or any(contains(answer, "unknown") for answer in question.answers)


def examples_of(
    prompt: PromptSpec, outcomes: Sequence[Outcome], attributions: Sequence[Attribution]
) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """Recorded executions of the prompt's operation: those blamed for wrong answers, and those behind right ones.

    Behind an answer lie the operation that made it, the extractions that read its evidence turns, and the decisions on
    facts from those turns. Tainted outcomes give nothing.
    """
    graphs = {outcome.conversation.id: outcome.graph for outcome in outcomes if outcome.tainted is None}
    failed: list[Example] = []
    for attribution in attributions:
        graph = graphs.get(attribution.case.conversation)
        if graph is None:
            continue
        for blame in attribution.decisive:
            if blame.operation != prompt.operation:
                continue
            named = graph.operations.get(blame.operation_id or "")
            executions = [named] if named else list(_behind(prompt.operation, attribution.case, graph))[:1]
            failed += [_example(each, attribution.case, attribution, graph) for each in executions]
    passed = [
        _example(execution, case, None, graphs[case.conversation])
        for outcome in outcomes
        if outcome.tainted is None
        for case in outcome.cases
        if case.passed
        for execution in _behind(prompt.operation, case, graphs[case.conversation])
    ]
    return tuple(failed), tuple(passed)


def symptoms_of(example: Example, stage: Stage) -> set[Symptom]:
    """What is visibly wrong in a failed execution."""
    question = example.case.question
    found: set[Symptom] = set()
    if stage == "answer":
        if word_count(example.output) > SHORT_REPLY_WORDS:
            found.add("long reply")
        says_unknown = contains(example.output, "unknown")
        if example.wants_unknown and not says_unknown:
            found.add("missed unknown")
        elif says_unknown and not example.wants_unknown:
            found.add("false unknown")
        elif question.near_miss and contains(example.output, question.near_miss.value):
            found.add("near miss")
        elif not found:
            found.add("wrong value")
    elif stage == "extract":
        speakers = {text.partition(":")[0] for _, text in example.parts.get("conversation", ())}
        facts = facts_in(example.output)
        if facts and sum(any(contains(fact, name) for name in speakers) for fact in facts) < len(facts):
            found.add("nameless facts")
        if example.wants_unknown:
            found.add("lost retraction")
        elif not any(contains(example.output, answer) for answer in question.answers):
            found.add("lost change" if question.supersedes else "lost value")
    elif stage == "update":
        event = event_in(example.output)
        if example.wants_unknown and event != "DELETE":
            found.add("missed delete")
        elif question.supersedes and event != "UPDATE":
            found.add("missed update")
        elif event != "ADD":
            found.add("wrong overwrite")
    return found


def fill(placeholder: str, texts: Sequence[str]) -> str:
    """The texts as one value of a placeholder, laid out as the built-in systems lay them out in a request."""
    if placeholder == "context":
        return "\n".join(f"- {text}" for text in texts)
    if placeholder == "memories":
        return "\n".join(f"{number}: {text}" for number, text in enumerate(texts, start=1))
    return "\n".join(texts)


def facts_in(output: str) -> list[str]:
    """The facts of an extraction's reply; empty where it is no such reply."""
    try:
        value = strict_json(output)
    except MalformedReplyError:
        return []
    facts = value.get("facts") if isinstance(value, dict) else None
    return [fact for fact in facts if isinstance(fact, str)] if isinstance(facts, list) else []


def event_in(output: str) -> str | None:
    """The event of a decision's reply."""
    try:
        value = strict_json(output)
    except MalformedReplyError:
        return None
    return str(value["event"]) if isinstance(value, dict) and "event" in value else None


def _behind(name: str, case: Case, graph: ExecutionGraph) -> Iterator[Operation]:
    executions = graph.find_operations(name=name)
    direct = [each for each in executions if case.prediction in each.output_ids()]
    if direct:
        yield from direct
        return
    evidence = set(case.question.evidence)
    for execution in executions:
        inputs = [graph.variables[vid] for vid in execution.input_ids()]
        if _turns(inputs) & evidence or any(
            _carries(variable, case, graph) for variable in inputs if variable.kind == "fact"
        ):
            yield execution


def _carries(fact: Variable, case: Case, graph: ExecutionGraph) -> bool:
    """Whether a fact was taken from the evidence of a case and holds its answer (or what a retraction needs)."""
    sources = [graph.variables[vid] for operation in graph.producers(fact.id) for vid in operation.input_ids()]
    if not _turns(sources) & set(case.question.evidence):
        return False
    answers = case.question.answers
    return any(contains(str(fact.value), answer) or contains(answer, "unknown") for answer in answers)


def _turns(variables: Sequence[Variable]) -> set[str]:
    return {variable.name for variable in variables if variable.kind == "message"}


def _example(execution: Operation, case: Case, attribution: Attribution | None, graph: ExecutionGraph) -> Example:
    parts: dict[str, tuple[tuple[str, str], ...]] = {}
    for role, vid in execution.inputs:
        variable = graph.variables[vid]
        if variable.kind != "prompt":
            name = _PLACEHOLDERS.get(role, role)
            parts[name] = (*parts.get(name, ()), (variable.name, str(variable.value)))
    return Example(case, attribution, parts, _reply(execution, parts, graph))


def _reply(execution: Operation, parts: Mapping[str, tuple[tuple[str, str], ...]], graph: ExecutionGraph) -> str:
    outputs = [(role, graph.variables[vid].value) for role, vid in execution.outputs]
    if any(role == "facts" for role, _ in outputs) or (not outputs and "conversation" in parts):
        return json.dumps({"facts": [value for role, value in outputs if role == "facts"]}, ensure_ascii=False)
    value: Any = outputs[0][1] if outputs else ""
    if isinstance(value, dict):
        listed = [name for name, _ in parts.get("memories", ())]
        number = str(listed.index(value["target"]) + 1) if value.get("target") in listed else ""
        return json.dumps({"event": value.get("event"), "id": number})
    return str(value)
