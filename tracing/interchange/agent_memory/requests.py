"""What a call to a model read and gave: who said what, the tools that it called, and what these returned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from tracing.files.depth import structured
from tracing.graph.elements import Link, Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.speech import (
    ASSISTANT,
    INSTRUCTIONS,
    SPEAKERS,
    TOOL_RESULTS,
    UNSPOKEN,
    USER,
    role_of,
    speech_of,
    unspoken,
)

FRAMES = ("agent", "invoke_agent", "chain", "workflow", "invoke_workflow", "task", "execute_task")
"""Kinds of operations around calls to models."""

_CALLED = ("tool_call", "tool_use", "function_call", "functionCall", "tool-call")
_RETURNED = ("tool_call_response", "tool_result", "function_call_output", "functionResponse", "function_response")
_REQUESTS = ("messages", "request")
"""Roles of a whole request, as the gateway and the recording of a client have it."""
_IDS = ("tool_call_id", "tool_use_id", "call_id", "id")


@dataclass(slots=True)
class ToolCall:
    """A call of a tool as messages tell it.

    Attributes:
        id: empty if it has none.
        tool: its name; arguments: as given.
        after: the texts before it, by which a call without an id is known again in a later request.
        is_reply: whether the model gave it, rather than read it.
        result: what came back; None if no message tells.
        is_past: whether a user said something since.
    """

    id: str
    tool: str
    arguments: Any
    after: tuple[str, ...]
    is_reply: bool
    result: Any = None
    is_past: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """What is the same in all requests that show it."""
        return (self.id or self.after, self.tool, str(structured(self.arguments)))


class Requests:
    """Reads the calls to models of one graph."""

    def __init__(self, graph: ExecutionGraph) -> None:
        self._variables = graph.variables

    def messages(self, operation: Operation) -> list[tuple[str, str]]:
        """Who said what in the request of a model or an agent."""
        messages = self._messages(operation, operation.inputs, USER)
        return [(who, text) for who, text, _ in messages if who and text]

    def reply(self, operation: Operation) -> str:
        """The last text that a model or an agent gave."""
        messages = self._messages(operation, operation.outputs, ASSISTANT)
        texts = [text for who, text, _ in messages if text and who != USER]
        if not texts and operation.kind == "llm":  # a recording of memtune's own has the text alone
            values = (self._variables[vid].value for role, vid in operation.outputs if role == "result")
            texts = [value.strip() for value in values if isinstance(value, str)]
        return texts[-1] if texts else ""

    def prompt(self, operation: Operation) -> Variable | None:
        """The instructions of a call, where they are recorded."""
        inputs = [(role, self._variables[vid]) for role, vid in operation.inputs]
        prompts = [variable for _, variable in inputs if variable.kind == "prompt"]
        for role, variable in inputs:
            for message in variable.value if role in _REQUESTS and isinstance(variable.value, list) else ():
                if isinstance(message, Mapping) and unspoken(message) == INSTRUCTIONS:
                    text = speech_of(message).text
                    prompts.append(
                        replace(variable, id=f"{variable.id}/prompt", name="prompt", kind="prompt", value=text)
                    )
        return prompts[0] if prompts else None

    def tool_calls(self, operation: Operation) -> list[ToolCall]:
        """The calls of tools in what a model read and gave, in order, with the results that it read."""
        calls: list[ToolCall] = []
        texts: list[str] = []
        for is_reply, links in ((False, operation.inputs), (True, operation.outputs)):
            for who, text, message in self._messages(operation, links, ASSISTANT if is_reply else USER):
                if text and who:
                    texts.append(text)
                for call in calls if text and who == USER else ():
                    call.is_past = True
                for name, tool, arguments in calls_in(message):
                    calls.append(ToolCall(name, tool, arguments, tuple(texts), is_reply))
                for name, result in results_in(message):
                    waiting = (call for call in calls if call.result is None and (not name or call.id == name))
                    if (answered := next(waiting, None)) is not None:
                        answered.result = result
        return calls

    def _messages(
        self, operation: Operation, links: Sequence[Link], who_else: str
    ) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Who speaks, the text, and the message where it is recorded as a whole; what is not told is empty."""
        for role, vid in links:
            variable = self._variables[vid]
            value = variable.value
            if isinstance(value, Mapping):
                whole = operation.kind == "llm" and role in ("result", "reply")
                for part in _replied(value):
                    yield (who_else, speech_of(part).text, part) if whole else ("", "", part)
            elif isinstance(value, list) and role in _REQUESTS:
                for message in value:
                    if isinstance(message, Mapping):
                        spoken = unspoken(message) is None
                        who = SPEAKERS.get(role_of(message).lower(), "") if spoken else ""
                        yield who, speech_of(message).text if who else "", message
            elif isinstance(value, str) and value.strip():
                spoken = variable.kind in ("message", "prediction", *(["reply"] if who_else == ASSISTANT else []))
                bare = operation.kind in FRAMES and variable.kind == "value" and role in ("input", "output", "result")
                bare = bare or variable.name == role == "request"
                if spoken or bare:
                    named = str(variable.attributes.get("role") or role).lower()
                    who = SPEAKERS.get(named) or (ASSISTANT if variable.kind in ("reply", "prediction") else "")
                    yield who or (who_else if bare else ""), value.strip(), {}


def _replied(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The messages in a whole reply as clients get it: of chat completions, or of responses; or the reply itself."""
    listed = value.get("choices", value.get("output"))
    for part in listed if isinstance(listed, list) else (value,):
        message = part.get("message", part) if isinstance(part, Mapping) else None
        if isinstance(message, Mapping):
            yield message


def calls_in(message: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """The id, the tool and the arguments of each call in a message."""
    listed = structured(message.get("tool_calls"))
    parts = [*(listed if isinstance(listed, list) else ()), message.get("function_call")]
    parts += [part for part in _parts(message) if part.get("type") in _CALLED or "functionCall" in part]
    for part in parts:
        if not isinstance(part, Mapping):
            continue
        inner = next((part[key] for key in (*_CALLED, "function") if isinstance(part.get(key), Mapping)), part)
        call = inner["function"] if isinstance(inner.get("function"), Mapping) else inner
        keys = ("arguments", "input", "args")
        arguments: Any = next((call[key] for key in keys if call.get(key) is not None), {})
        if isinstance(call.get("name"), str):
            yield _id({**inner, **part}), call["name"], arguments


def results_in(message: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The id of the call and the result of each result in a message."""
    parts = [part for part in _parts(message) if part.get("type") in _RETURNED or "functionResponse" in part]
    if not parts and UNSPOKEN.get(role_of(message).lower()) == TOOL_RESULTS:
        parts = [message]
    for part in parts:
        inner = part["functionResponse"] if isinstance(part.get("functionResponse"), Mapping) else part
        keys = ("response", "result", "output", "content")
        yield _id(inner), next((inner[key] for key in keys if inner.get(key) is not None), "")


def _parts(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    contents = (structured(message.get(key)) for key in ("content", "parts"))
    listed = [part for content in contents if isinstance(content, list) for part in content]
    return [part for part in (message, *listed) if isinstance(part, Mapping)]


def _id(part: Mapping[str, Any]) -> str:
    return next((str(part[key]) for key in _IDS if part.get(key)), "")
