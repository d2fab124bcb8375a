"""What was recorded of a prompt's operation: executions behind right and wrong answers, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from attribution.cases import UNUSABLE_REPLY, Attribution, Case
from attribution.judging.words import SHORT_REPLY_WORDS
from attribution.text.phrases import is_unknowable
from attribution.text.tokens import contains, word_count
from tracing.graph.execution_graph import ExecutionGraph, Operation, Variable
from tracing.llm.reply_json import object_in
from tracing.systems.layouts import RECORDED_REPLY, Item, Parts, recorded_outputs, recorded_parts
from tracing.systems.prompts import PromptSpec
from tracing.systems.protocol import Stage

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Outcome

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
    "unusable reply",
    "led astray",
]
"""What a failed execution looks like: finer than the error type; instructions and edits are chosen by it."""


@dataclass(frozen=True, slots=True)
class Example:
    """One recorded execution of a prompt's operation, seen from one judged question.

    Attributes:
        prompt: the operation's prompt; its layout says how the execution is written.
        case: the judged question.
        attribution: why it failed; None for a passed case.
        parts: placeholder name → the inputs that filled it.
        outputs: what it made.
        right: the reply of a correct operation; None if it is not known.
    """

    prompt: PromptSpec = field(hash=False)
    case: Case
    attribution: Attribution | None
    parts: Parts = field(hash=False)
    outputs: tuple[Item, ...] = field(hash=False)
    right: str | None = None

    @property
    def inputs(self) -> dict[str, str]:
        """Placeholder name → text, as the request had it."""
        return self.prompt.layout.filled(self.parts)

    @property
    def output(self) -> str:
        """The reply, in the form the prompt asks for."""
        return self.prompt.reply(self.parts, self.outputs)

    @property
    def statements(self) -> tuple[Item, ...]:
        """Its outputs that are texts: the facts of an extraction."""
        return tuple(item for item in self.outputs if isinstance(item.value, str) and item.kind != RECORDED_REPLY)

    def placeholder(self, *kinds: str) -> str | None:
        """The first placeholder that inputs of one of these kinds fill."""
        return next((name for name, items in self.parts.items() if any(item.kind in kinds for item in items)), None)

    @property
    def unusable_reply(self) -> bool:
        """Whether it failed because the reply could not be used, by its form or its limit."""
        blames = self.attribution.decisive if self.attribution is not None else ()
        return any(b.operation == self.prompt.operation and b.error_type == UNUSABLE_REPLY for b in blames)

    @property
    def wants_unknown(self) -> bool:
        """Whether the right answer is that it is not known."""
        return is_unknowable(self.case.question)


def examples_of(
    prompt: PromptSpec, outcomes: Sequence[Outcome], attributions: Sequence[Attribution]
) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """Recorded executions of the prompt's operation: those blamed for wrong answers, and those behind right ones.

    Behind an answer are the operation that made it, those that searched for it, the extractions that read its evidence
    turns, and the decisions on facts from those turns. Tainted outcomes are skipped.
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
            executions = [named] if named else list(_executions_behind(prompt.operation, attribution.case, graph))[:1]
            failed += [_example(prompt, execution, attribution.case, attribution, graph) for execution in executions]
    passed = [
        _example(prompt, execution, case, None, graphs[case.conversation])
        for outcome in outcomes
        if outcome.tainted is None
        for case in outcome.cases
        if case.passed
        for execution in _executions_behind(prompt.operation, case, graphs[case.conversation])
    ]
    return tuple(failed), tuple(passed)


def symptoms_of(example: Example, stage: Stage) -> set[Symptom]:
    """What is visibly wrong in a failed execution."""
    question = example.case.question
    symptoms: set[Symptom] = set()
    if example.unusable_reply:
        # What it would have said nobody knows.
        return {"unusable reply"}
    if stage == "answer":
        # By a metric of form, as `f1`, a short sentence around the right answer is too long as well.
        if word_count(example.output) > SHORT_REPLY_WORDS or example.case.judgement.contains:
            symptoms.add("long reply")
        says_unknown = contains(example.output, "unknown")
        if example.wants_unknown and not says_unknown:
            symptoms.add("missed unknown")
        elif says_unknown and not example.wants_unknown:
            symptoms.add("false unknown")
        elif question.near_miss and contains(example.output, question.near_miss.value):
            symptoms.add("near miss")
        elif not symptoms:
            symptoms.add("wrong value")
    elif stage == "extract":
        read = [item for items in example.parts.values() for item in items if item.kind == "message"]
        speakers = {item.text.partition(":")[0] for item in read}
        facts = [item.text for item in example.statements]
        if facts and sum(any(contains(fact, name) for name in speakers) for fact in facts) < len(facts):
            symptoms.add("nameless facts")
        if example.wants_unknown:
            symptoms.add("lost retraction")
        elif not any(contains(example.output, answer) for answer in question.answers):
            symptoms.add("lost change" if question.supersedes else "lost value")
    elif stage == "update":
        event = event_in(example.output)
        if example.wants_unknown and event != "DELETE":
            symptoms.add("missed delete")
        elif question.supersedes and event != "UPDATE":
            symptoms.add("missed update")
        elif event not in ("ADD", None):
            symptoms.add("wrong overwrite")
    return symptoms or {"led astray"}


def event_in(output: str) -> str | None:
    """The event of a decision's reply."""
    value = object_in(output)
    return str(value["event"]) if value is not None and "event" in value else None


def _executions_behind(name: str, case: Case, graph: ExecutionGraph) -> Iterator[Operation]:
    executions = graph.find_operations(name=name)
    direct = [execution for execution in executions if case.prediction in execution.output_ids()]
    if direct:
        yield from direct
        return
    in_session = [execution for execution in executions if _session(execution, graph) == case.question.id]
    if in_session:
        yield from in_session
        return
    evidence = set(case.question.evidence)
    for execution in executions:
        inputs = [graph.variables[vid] for vid in execution.input_ids()]
        if _turn_ids(inputs) & evidence or any(
            _carries_answer(variable, case, graph) for variable in inputs if variable.kind == "fact"
        ):
            yield execution


def _session(execution: Operation, graph: ExecutionGraph) -> str:
    where = graph.sessions.get(execution.session or "")
    return where.name if where is not None else ""


def _carries_answer(fact: Variable, case: Case, graph: ExecutionGraph) -> bool:
    """Whether a fact was taken from the evidence of a case and holds its answer (or what a retraction needs)."""
    sources = [graph.variables[vid] for operation in graph.producers(fact.id) for vid in operation.input_ids()]
    if not _turn_ids(sources) & set(case.question.evidence):
        return False
    return is_unknowable(case.question) or any(contains(str(fact.value), answer) for answer in case.question.answers)


def _turn_ids(variables: Sequence[Variable]) -> set[str]:
    return {variable.name for variable in variables if variable.kind == "message"}


def _example(
    prompt: PromptSpec, execution: Operation, case: Case, attribution: Attribution | None, graph: ExecutionGraph
) -> Example:
    parts = recorded_parts(prompt.layout, prompt.contract.placeholders, execution, graph)
    return Example(prompt, case, attribution, parts, recorded_outputs(execution, graph))
