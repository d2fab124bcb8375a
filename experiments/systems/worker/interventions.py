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
        return list(self._asked("extracted", step, list(messages), statements))

    def decided(self, step: Step, fact: str, shown: Sequence[Entry], change: Change) -> Change:
        made: Change = self._asked("decided", step, fact, list(shown), change)
        return made

    def stored(self, step: Step, given: Change, change: Change) -> Change:
        made: Change = self._asked("stored", step, given, change)
        return made

    def retrieved(self, step: Step, query: Variable, entries: Sequence[Entry], found: list[Entry]) -> list[Entry]:
        return list(self._asked("retrieved", step, query, list(entries), found))

    def presented(self, step: Step, query: Variable, lines: list[str]) -> list[str]:
        return list(self._asked("presented", step, query, lines))

    def answered(self, step: Step, query: Variable, context: Sequence[str], reply: str) -> str:
        return str(self._asked("answered", step, query, list(context), reply))

    def _asked(self, method: str, *given: Any) -> Any:
        sent = [method, *(_plain(each) for each in given)]
        return msgspec.convert(json.loads(self._ask(json.dumps(sent))), _TYPES[method][-1])


def intervened(request: str) -> str:
    """What the interventions of the current context make of the output that a worker asks about; both are JSON."""
    method, *given = json.loads(request)
    types = (Step, *_TYPES[method])
    arguments = [msgspec.convert(each, kind) for each, kind in zip(given, types, strict=True)]
    return json.dumps(_plain(getattr(intervening(), method)(*arguments)))


def _plain(value: Any) -> Any:
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, Variable):
            each.id  # noqa: B018 - a variable may have been noted only, and msgspec does not fill it in
    return msgspec.to_builtins(value)
