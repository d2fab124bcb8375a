"""How information flows through a graph, by the stages of its operations: read, extracted, written, current, used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from attribution.cases import UNUSABLE_REPLY, Blame, ErrorType
from attribution.constants import FAILED, FEW_MESSAGES
from attribution.recorded_values import CONTENT, event_of
from attribution.text.content import content_of, text_of
from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.systems.protocol import OperationSpec, Stage

_NOT_CONTENT = frozenset(("prompt", "query"))
_MADE_OF_MESSAGES = frozenset(("fact", "memory_entry"))
_DECIDED_TEXTS = ("text", "memory", "new_memory", "content", "data")

STAGES: Mapping[ErrorType, Stage] = {
    "ExtractionError": "extract",
    "UpdateError": "update",
    "DeletionError": "update",
    "RetrievalError": "retrieve",
    "ResponseError": "answer",
}
"""The stage in which an error of this type is made."""


@dataclass(frozen=True, slots=True)
class Writing:
    """The update operations that a fact went through, in order, and the entries and delete markers they made."""

    operations: tuple[Operation, ...]
    results: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Answering:
    """How one question was answered: the operations, and what the last of them was given to answer from."""

    retrievals: tuple[Operation, ...]
    answer: Operation
    context: tuple[Variable, ...]


class ContentFlow:
    """Questions to one graph about where content went; operations are known by their specs' stages."""

    def __init__(self, graph: ExecutionGraph, operations: Sequence[OperationSpec]) -> None:
        self.graph = graph
        self.specs: Mapping[str, OperationSpec] = {spec.name: spec for spec in operations}
        self._stages = {spec.stage for spec in self.specs.values()}
        self._messages: dict[str, list[Variable]] = defaultdict(list)
        self._entries: list[Variable] = []
        self._following: dict[str, list[Variable]] = defaultdict(list)
        self._changed: set[str] = set()
        self._read: set[str] = set()
        """What was read to be extracted from."""
        self._answers: dict[str, Operation] = {}
        self._retrievals: dict[str, list[Operation]] = defaultdict(list)
        for operation in graph.operations.values():
            stage = self.stage(operation)
            if stage == "update":
                self._follow(operation)
            elif stage == "extract":
                self._read.update(operation.input_ids())
            elif stage in ("answer", "retrieve") and operation.session in graph.sessions:
                question = graph.sessions[operation.session].name
                if stage == "answer":
                    self._answers[question] = operation
                else:
                    self._retrievals[question].append(operation)
        for variable in graph.variables.values():
            if variable.kind == "message":
                self._messages[variable.name].append(variable)
            elif variable.kind == "memory_entry":
                self._entries.append(variable)
            if variable.previous is not None and variable.name not in self._changed:
                self._following[variable.previous].append(variable)
        self.current = [variable for variable in self._stored() if not self._following.get(variable.id)]
        """Everything the memory holds in the end: the latest versions of the entries that were not deleted."""

    @cached_property
    def unmade(self) -> frozenset[str]:
        """Ids of what the memory holds in the end and no operation is known to have made."""
        return frozenset(entry.id for entry in self.current if not self.graph.producers(entry.id))

    def stage(self, operation: Operation) -> Stage | None:
        """What an operation does with information; None for one that no spec names."""
        spec = self.specs.get(operation.name)
        return None if spec is None else spec.stage

    def has(self, stage: Stage) -> bool:
        """Whether the system has a stage at all."""
        return stage in self._stages

    def shows_memory(self) -> bool:
        """Whether the graph shows what a memory held: by steps that wrote it, by its entries, or kept messages."""
        return (
            self.has("extract")
            or self.has("update")
            or bool(self._entries)
            or any(
                self.graph.variables[vid].kind == "message"
                for operation in self.graph.operations.values()
                if self.stage(operation) == "retrieve"
                for vid in operation.input_ids()
            )
        )

    def rewrites(self) -> bool:
        """Whether the stored texts are a model's words; see the function of this name."""
        return rewrites(self.specs.values())

    def has_prompt(self, operation: Operation) -> bool:
        """Whether a prompt steers the operation."""
        return operation.name in self.specs and self.specs[operation.name].prompt is not None

    def named(self, stage: Stage) -> str:
        """Name of the first operation of a stage, preferably one that a prompt steers."""
        specs = [spec for spec in self.specs.values() if spec.stage == stage]
        return next((spec.name for spec in specs if spec.prompt), specs[0].name if specs else stage)

    def blame(
        self, fault: Operation | None, kind: ErrorType, confidence: float, reason: str, evidence: Sequence[str] = ()
    ) -> Blame:
        """Blame for an execution; where the step that was due never ran, for the operation of that stage.

        If the execution's reply could not be used, that is the error, whatever is missing because of it.
        """
        if fault is None:
            return Blame(self.named(STAGES[kind]), None, kind, confidence, reason, tuple(evidence))
        unusable = unusable_reply_of(fault)
        if unusable is not None:
            kind, confidence = UNUSABLE_REPLY, FAILED
            reason = f"the reply of {fault.name} could not be used: it was {unusable}; {reason}"
        return Blame(fault.name, fault.id, kind, confidence, reason, tuple(evidence))

    def stage_error(self, blame: Blame) -> ErrorType:
        """The type of error that is made in the stage of a blamed operation."""
        spec = self.specs.get(blame.operation)
        if blame.error_type != UNUSABLE_REPLY or spec is None:
            return blame.error_type
        return next(kind for kind, stage in STAGES.items() if stage == spec.stage)

    def messages(self, *turns: str) -> list[Variable]:
        """The variables of some turns."""
        return [message for turn in turns for message in self._messages.get(turn, ())]

    def readers(self, *turns: str) -> list[Operation]:
        """The extract operations that read each turn, directly or after another of them, in the order recorded."""
        return [reader for turn in turns for reader in self._readers(turn)]

    def _readers(self, turn: str) -> list[Operation]:
        readers: dict[str, Operation] = {}
        queue = [message.id for message in self.messages(turn)]
        for vid in queue:
            for operation in self.graph.consumers(vid):
                if self.stage(operation) == "extract" and operation.id not in readers:
                    readers[operation.id] = operation
                    queue += operation.output_ids()
        return list(readers.values())

    def extracted(self, turn: str) -> list[tuple[Variable, bool]]:
        """What was extracted when a turn was read, each with whether it can come from few other turns.

        What a further extract operation reads is on the way and left out. Without such a stage it is the messages.
        """
        if not self.has("extract"):
            return [(message, True) for message in self.messages(turn)]
        memories: dict[str, tuple[Variable, bool]] = {}
        for operation in self.readers(turn):
            few = len(turns_read(self.graph, operation)) <= FEW_MESSAGES
            outputs = self.outputs_of(operation)
            memories |= {output.id: (output, few) for output in outputs if self._is_final(output.id)}
        return list(memories.values())

    def written(self, fact: Variable) -> Writing:
        """How the update stage processed a fact. An extracted entry is its own result, without an operation."""
        if fact.kind == "memory_entry":
            return Writing((), (fact,))
        operations: dict[str, Operation] = {}
        results: dict[str, Variable] = {}
        queue = [fact.id]
        for vid in queue:
            for operation in self.graph.consumers(vid):
                if self.stage(operation) != "update" or operation.id in operations:
                    continue
                operations[operation.id] = operation
                for output in (self.graph.variables[out] for out in operation.output_ids()):
                    if output.kind in ("memory_entry", "delete_marker"):
                        results[output.id] = output
                    else:
                        queue.append(output.id)
        return Writing(tuple(operations.values()), tuple(results.values()))

    def following(self, entry: Variable) -> list[Variable]:
        """The versions made directly from an entry, a delete marker included."""
        return self._following.get(entry.id, [])

    def later(self, entry: Variable) -> list[Variable]:
        """An entry with all its later versions, oldest first."""
        versions = {entry.id: entry}
        queue = [entry]
        for version in queue:
            fresh = [successor for successor in self._following.get(version.id, []) if successor.id not in versions]
            versions.update((successor.id, successor) for successor in fresh)
            queue += fresh
        return queue

    def decider(self, operation: Operation) -> Operation | None:
        """Who decided: an operation with a prompt itself, else the one whose decision it was to carry out, if any."""
        if self.has_prompt(operation):
            return operation
        for vid in operation.input_ids():
            for producer in self.graph.producers(vid):
                if self.stage(producer) == "update" and self.has_prompt(producer) and self._decides(vid):
                    return producer
        return None

    def at_fault(self, operation: Operation) -> Operation:
        """Who is responsible for what an update operation did: its decider, unless it did something else."""
        if self.has_prompt(operation):
            return operation
        decider = self.decider(operation)
        return decider if decider is not None and self._carried_out(operation, decider) else operation

    def answering(self, question: str, prediction: str | None) -> Answering | None:
        """How a question was answered, found by the reply's variable or by the session named for the question.

        None where the graph has no answer operation for it.
        """
        answer = self._answers.get(question)
        if prediction in self.graph.variables:
            answer = next((op for op in self.graph.producers(prediction) if self.stage(op) == "answer"), answer)
        if answer is None:
            return None
        retrievals = self._retrievals.get(question, [])
        context = self.inputs_of(answer)
        if not retrievals:
            makers = (op for variable in context for op in self.graph.producers(variable.id))
            retrievals = list({op.id: op for op in makers if self.stage(op) == "retrieve"}.values())
        return Answering(tuple(retrievals), answer, tuple(context))

    def entry_of(self, context: Variable) -> Variable | None:
        """The stored entry that a piece of context shows, if the trace says."""
        return self.graph.variables.get(str(context.attributes.get("entry", "")))

    def inputs_of(self, operation: Operation) -> list[Variable]:
        """An operation's inputs without its prompt and query."""
        inputs = (self.graph.variables[vid] for vid in operation.input_ids())
        return [variable for variable in inputs if variable.kind not in _NOT_CONTENT]

    def outputs_of(self, operation: Operation) -> list[Variable]:
        """What an operation made; a model's raw reply only where nothing was read from it."""
        outputs = [self.graph.variables[vid] for vid in operation.output_ids()]
        read = any(output.kind in CONTENT for output in outputs)
        return [output for output in outputs if not (read and output.kind == "reply")]

    def _follow(self, operation: Operation) -> None:
        """Record which version an update made of which, by what it read and made, not by the numbers of versions.

        Foreign traces number versions in the order in which they were first seen.
        """
        read = {self.graph.variables[vid].name: self.graph.variables[vid] for vid in operation.input_ids()}
        for output in map(self.graph.variables.__getitem__, operation.output_ids()):
            old = read.get(output.name)
            if old is not None and old.id != output.id and old.kind == "memory_entry":
                self._following[old.id].append(output)
                self._changed.add(output.name)

    def _stored(self) -> list[Variable]:
        """Everything that was ever in the memory. Without an update stage that is whatever was extracted."""
        if self.has("update"):
            return self._entries
        if not self.has("extract"):
            return [message for messages in self._messages.values() for message in messages]
        extracts = [op for op in self.graph.operations.values() if self.stage(op) == "extract"]
        return [output for op in extracts for output in self.outputs_of(op) if self._is_final(output.id)]

    def _is_final(self, vid: str) -> bool:
        return vid not in self._read

    def _decides(self, vid: str) -> bool:
        return self.graph.variables[vid].kind not in ("memory_entry", "delete_marker", "fact")

    def _carried_out(self, operation: Operation, decider: Operation) -> bool:
        decision = event_of(self.outputs_of(decider))
        if decision is None:
            return True
        event, target = decision
        results = [output for output in self.outputs_of(operation) if output.kind in ("memory_entry", "delete_marker")]
        if event in ("ADD", "UPDATE") and not self._says_what_was_decided(event, operation, decider, results):
            return False
        if event in ("UPDATE", "DELETE") and target is not None:
            kind = "memory_entry" if event == "UPDATE" else "delete_marker"
            return any(
                result.kind == kind
                and result.previous is not None
                and target in (result.previous, result.name, self.graph.variables[result.previous].name)
                for result in results
            )
        if event == "ADD":
            return any(result.kind == "memory_entry" and result.previous is None for result in results)
        return not results

    def _says_what_was_decided(
        self, event: str, operation: Operation, decider: Operation, results: Sequence[Variable]
    ) -> bool:
        """Whether what was stored is the decision's text or, if that has none, uses words that were given for it."""
        result_words = [content_of(text_of(result.value)) for result in results]
        decided = [content_of(text) for text in map(_text_decided, self.outputs_of(decider)) if text]
        if decided:
            return any(text <= stored_words for text in decided for stored_words in result_words)
        inputs = self.inputs_of(operation)
        if event != "ADD" or all(variable.kind != "fact" for variable in inputs):
            # An update may merge what the decision was shown; what is new is the fact.
            inputs += self.inputs_of(decider)
        words = frozenset[str]().union(*(content_of(text_of(variable.value)) for variable in inputs))
        return all(stored_words <= words for stored_words in result_words)


def _text_decided(variable: Variable) -> str:
    """The new text that a decision gives for an entry; empty where it gives none."""
    value: Any = variable.value
    if not isinstance(value, Mapping):
        return ""
    return next((value[key] for key in _DECIDED_TEXTS if isinstance(value.get(key), str)), "")


def turns_read(graph: ExecutionGraph, operation: Operation) -> tuple[str, ...]:
    """Names of the messages that an operation read; if it read none, of those that its facts and entries come from."""
    own = tuple(graph.variables[vid].name for vid in operation.input_ids() if graph.variables[vid].kind == "message")
    if own:
        return own
    messages: dict[str, None] = {}
    queue = list(operation.input_ids())
    visited = set(queue)
    for vid in queue:
        variable = graph.variables[vid]
        if variable.kind == "message":
            messages[variable.name] = None
        elif variable.kind in _MADE_OF_MESSAGES:
            sources = [
                source for maker in graph.producers(vid) for source in maker.input_ids() if source not in visited
            ]
            queue += sources
            visited.update(sources)
    return tuple(messages)


def rewrites(operations: Iterable[OperationSpec]) -> bool:
    """Whether a system stores a model's words, not text cut from the conversation."""
    return any(spec.prompt is not None for spec in operations if spec.stage in ("extract", "update"))


_UNREAD = ("MalformedReplyError", "ReplyCutShortError", "JSONDecodeError", "OutputParserException")


def unusable_reply_of(operation: Operation) -> str | None:
    """Why an operation's reply could not be used: `malformed`, `cut short` and the like; None if it could."""
    reason, problem = operation.attributes.get("unusable"), operation.attributes.get("malformed")
    if operation.error and operation.error.startswith(_UNREAD):
        problem = operation.error
    return f"malformed ({problem})" if problem and reason in (None, "malformed") else reason
