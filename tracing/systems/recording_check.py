"""What attribution would miss in a recording of a memory system, and whether a rerun repeats what was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracing.graph.execution_graph import ExecutionGraph
from tracing.recording.redaction import excerpt, redact
from tracing.systems.conversations import Conversation
from tracing.systems.layouts import Item, Parts, beside_reply, recorded_outputs, recorded_parts
from tracing.systems.prompts import PromptSpec
from tracing.systems.protocol import MemorySystem


def unrecorded_operations(system: MemorySystem, graph: ExecutionGraph) -> str | None:
    """The listed operations that never ran; one that never appears could never be blamed."""
    recorded = {operation.name for operation in graph.operations.values()}
    missing = [operation.name for operation in system.operations if operation.name not in recorded]
    return f"listed, but never recorded: {missing}; recorded: {sorted(recorded)}" if missing else None


def prompt_faults(system: MemorySystem, graph: ExecutionGraph) -> Iterator[str]:
    """Operations that do not read their prompt as a variable; blame reaches a prompt through its operation."""
    for listed in system.operations:
        for operation in graph.find_operations(name=listed.name):
            read = [graph.variables[vid] for vid in operation.input_ids()]
            if listed.prompt not in (None, *(variable.name for variable in read if variable.kind == "prompt")):
                yield f"{listed.name} must read the prompt {listed.prompt} as a variable of kind 'prompt' and that name"
                break


def message_faults(conversation: Conversation, graph: ExecutionGraph) -> Iterator[str]:
    """Turns without a message; evidence is given as turn ids, and attribution finds the messages by them."""
    messages = {variable.name: variable.value for variable in graph.find_variables(kind="message")}
    for turn in conversation.turns():
        if turn.id not in messages:
            yield f"no variable of kind 'message' is named {turn.id!r}"
        elif redact(turn.text) not in str(messages[turn.id]):
            yield f"the message {turn.id} does not hold the text of its turn"


def prediction_faults(system: MemorySystem, reply: str, prediction: str | None, graph: ExecutionGraph) -> Iterator[str]:
    """What is wrong with an answer's variable; a case names its prediction, and attribution walks back from there."""
    variable = graph.variables.get(prediction or "")
    if variable is None:
        yield f"Answer.variable {prediction!r} is not a variable of the trace"
        return
    if variable.kind != "prediction":
        yield f"the answer's variable is of kind {variable.kind!r}"
    if variable.value != redact(reply):
        yield "the recorded prediction is not the answer's text"
    makers = {operation.name for operation in graph.producers(variable.id)}
    if makers.isdisjoint(operation.name for operation in system.operations if operation.stage == "answer"):
        yield "no operation of stage 'answer' made the prediction"


_LONGEST = 160


def sees_calls(spec: PromptSpec, graph: ExecutionGraph) -> bool:
    """Whether the calls of a prompt's operation were recorded, as those through the access are."""
    return any(execution.calls for execution in graph.find_operations(name=spec.operation))


def rerun_difference(
    spec: PromptSpec, parts: Parts, outputs: Sequence[Item], graph: ExecutionGraph, *, repeatable: bool
) -> str | None:
    """What a rerun with the recorded prompt did otherwise than the recording, in one line; None if nothing.

    Args:
        spec: the prompt whose operation ran again.
        parts, outputs: the recorded execution's inputs by placeholder, and what it made.
        graph: recorded of the rerun.
        repeatable: whether equal requests get equal replies, as from a cache; what was made is compared then, and
            otherwise what was read, in any order.
    """
    executions = graph.find_operations(name=spec.operation)
    if len(executions) != 1:
        return f"rerun of {spec.name} recorded {len(executions)} executions of {spec.operation}, not 1"
    (again,) = executions
    if repeatable:
        before, after = _texts(beside_reply(outputs)), _texts(beside_reply(recorded_outputs(again, graph)))
        what, whence = "made", "of what gave"
    else:
        read = recorded_parts(spec.layout, spec.contract.placeholders, again, graph)
        before, after = _lines(parts), _lines(read)
        what, whence = "read", "where the recorded one read"
    if before == after:
        return None
    return f"rerun of {spec.name} {what} {_quoted(after)} {whence} {_quoted(before)}"


def _lines(parts: Parts) -> list[str]:
    return sorted(f"{name}: {text}" for name, items in parts.items() for text in _texts(items))


def _texts(items: Sequence[Item]) -> list[str]:
    return [item.text for item in items]


def _quoted(texts: Sequence[str]) -> str:
    return excerpt(repr("\n".join(texts)), _LONGEST) if texts else "nothing"
