"""Interventions of the process with the run, asked by a worker before its system emits an output."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from tracing.graph.elements import Variable
from tracing.systems.entries import Entry
from tracing.systems.interventions import Change, Intervention, Step, intervening

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

    def extracted(self, step: Step, messages: Sequence[Variable], statements: list[str]) -> list[str]:
        return list(self._forwarded("extracted", step, list(messages), statements))

    def decided(self, step: Step, fact: str, memories: Sequence[Entry], change: Change) -> Change:
        result: Change = self._forwarded("decided", step, fact, list(memories), change)
        return result

    def stored(self, step: Step, decision: Change, change: Change) -> Change:
        result: Change = self._forwarded("stored", step, decision, change)
        return result

    def retrieved(self, step: Step, query: Variable, entries: Sequence[Entry], hits: list[Entry]) -> list[Entry]:
        return list(self._forwarded("retrieved", step, query, list(entries), hits))

    def presented(self, step: Step, query: Variable, lines: list[str]) -> list[str]:
        return list(self._forwarded("presented", step, query, lines))

    def answered(self, step: Step, query: Variable, context: Sequence[str], reply: str) -> str:
        return str(self._forwarded("answered", step, query, list(context), reply))

    def _forwarded(self, method: str, *arguments: Any) -> Any:
        sent = [method, *(_plain(argument) for argument in arguments)]
        return msgspec.convert(json.loads(self._ask(json.dumps(sent))), _TYPES[method][-1])


def intervened(request: str) -> str:
    """What the interventions of the current context make of the output that a worker asks about; both are JSON."""
    method, *encoded = json.loads(request)
    types = (Step, *_TYPES[method])
    arguments = [msgspec.convert(value, kind) for value, kind in zip(encoded, types, strict=True)]
    return json.dumps(_plain(getattr(intervening(), method)(*arguments)))


def _plain(value: Any) -> Any:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, Variable):
            item.id  # noqa: B018 - a variable may have been noted only, and msgspec does not fill it in
    return msgspec.to_builtins(value)
