"""What attribution would miss in a recording of a memory system, told in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tracing.recording.redaction import redact

if TYPE_CHECKING:
    from tracing.graph.execution_graph import ExecutionGraph
    from tracing.systems.conversations import Conversation
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
