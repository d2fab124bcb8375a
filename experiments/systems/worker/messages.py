"""Calls of a memory system's methods as JSON, what they refer to in the trace, and interventions asked for there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from pydantic import BaseModel

from tracing.errors import MemorySystemError
from tracing.files.trace_lines import record_of
from tracing.graph.elements import Variable
from tracing.recording.recorder import Recorder
from tracing.systems.conversations import Conversation, Question
from tracing.systems.entries import Entry
from tracing.systems.interventions import Change, Intervention, Step, intervening
from tracing.systems.layouts import Parts
from tracing.systems.protocol import Answer, Memory

T = TypeVar("T")

METHODS: Mapping[str, tuple[str, ...]] = {
    "build": ("conversation", "candidate"),
    "answer": ("memory", "question", "candidate"),
    "build_from_facts": ("sessions", "candidate"),
    "with_entries": ("texts",),
    "answer_from": ("context", "question", "candidate"),
    "rerun": ("prompt", "parts", "candidate"),
}
"""The methods that run in a worker, each with its arguments before the access."""


CHECK = "check"
"""What a worker can be asked besides: whether its system has what it needs."""


_KINDS: Mapping[str, Any] = {"conversation": Conversation, "question": Question, "memory": Memory, "parts": Parts}
"""The arguments that are more than JSON."""


def written(value: Any) -> Any:
    """An argument as JSON."""
    return msgspec.to_builtins(value, enc_hook=_as_builtin)


def _as_builtin(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else dict(value)


def read(name: str, data: Any) -> Any:
    """The argument that `written` wrote."""
    return msgspec.convert(data, _KINDS.get(name, Any), dec_hook=lambda model, values: model.model_validate(values))


def result_written(method: str, result: Any) -> Any:
    """What a method returned, as JSON."""
    if isinstance(result, Memory):
        return {"state": dict(result.state)}
    if isinstance(result, Answer):
        return {"text": result.text, "variable": result.variable}
    if result is None:
        return None
    raise MemorySystemError(f"the memory system's {method} returned a {type(result).__name__}")


def result_read(data: Any) -> Memory | Answer | None:
    """What `result_written` wrote."""
    if data is None:
        return None
    return Memory(data["state"]) if "state" in data else Answer(data["text"], data["variable"])


def referred_to(recorder: Recorder | None, memory: Memory | None) -> list[dict[str, Any]]:
    """The records of the variables of the current trace that a memory names anywhere in its state."""
    if recorder is None or memory is None:
        return []
    variables = recorder.graph.variables
    named = dict.fromkeys(text for text in _texts(memory.state) if text in variables)
    return [record_of(variables[variable_id]) for variable_id in named]


def take_in(recorder: Recorder, records: Sequence[Mapping[str, Any]]) -> None:
    """Make variables of another process known here, so that operations can refer to them."""
    for record in records:
        recorder.graph.add_variable(msgspec.convert(record, Variable))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    # A vector holds no texts, and is long.
    elif isinstance(value, Sequence) and value and not isinstance(value[0], int | float):
        for item in value:
            yield from _texts(item)


_TYPES: Mapping[str, tuple[Any, ...]] = {
    "extracted": (list[Variable], list[str]),
    "decided": (str, list[Entry], Change),
    "stored": (Change, Change),
    "retrieved": (Variable, list[Entry], list[Entry]),
    "presented": (Variable, list[str]),
    "answered": (Variable, list[str], str),
}
"""The arguments of each method after the step; the last is the output, and has the type of the result."""


class ForwardedIntervention(Intervention):
    """Asks the process with the run what an operation is to emit."""

    def __init__(self, ask: Callable[[str], str]) -> None:
        self._ask = ask

    def emitted(self, method: str, step: Step, *inputs: object, output: T) -> T:
        request = json.dumps([method, *map(_plain, (step, *inputs, output))])
        result: T = msgspec.convert(json.loads(self._ask(request)), _TYPES[method][-1])
        return result


def intervened(request: str) -> str:
    """What the interventions of the current context make of the output that a worker asks about; both are JSON."""
    method, *encoded = json.loads(request)
    types = (Step, *_TYPES[method])
    arguments = [msgspec.convert(value, kind) for value, kind in zip(encoded, types, strict=True)]
    return json.dumps(_plain(getattr(intervening(), method)(*arguments)))


def _plain(value: Any) -> Any:
    for item in value if isinstance(value, Sequence) else [value]:
        if isinstance(item, Variable):
            item.id  # noqa: B018 - a variable may have been noted only, and msgspec does not fill it in
    return msgspec.to_builtins(value)
