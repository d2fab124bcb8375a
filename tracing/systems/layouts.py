"""How one execution of a prompt's operation is written as an example: what fills its placeholders, and its reply."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracing.graph.execution_graph import ExecutionGraph, Operation, Variable


@dataclass(frozen=True, slots=True)
class Item:
    """A recorded input or output of an operation: its variable's name and kind, its value, and its role there.

    Example:
        >>> Item("facts", "fact1", "fact", "Mara lives in Oslo.").text
        'Mara lives in Oslo.'
    """

    role: str
    name: str
    kind: str
    value: Any

    @property
    def text(self) -> str:
        """The value as written in a request."""
        return str(self.value)


Parts = Mapping[str, tuple[Item, ...]]
"""Placeholder → the inputs that fill it, in order."""

Write = Callable[[Parts, Sequence[Item]], str]
"""Maps the inputs and outputs of an execution to the reply that a model gave, or should give."""

Read = Callable[[str], Sequence[Item]]
"""Maps the reply of a model to the outputs that an operation makes of it."""

RECORDED_REPLY = "reply"
"""Kind of the output in which `tracing.instrument` records a model's reply verbatim."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The form of a prompt's request and reply. The default fits if roles have the names of the placeholders.

    Attributes:
        roles: placeholder → role of the operation's inputs that fill it; by default the role of the same name.
        lists: placeholder → how several texts are written in it; by default one a line.
        reply: how outputs are written as a reply; None for `plain_reply`.
        read: what the operation makes of a reply, for a system without `rerun`; None where recorded replies and outputs
            show it (`optimizer.objectives.reply_readers`).

    Example:
        >>> layout = Layout(roles={"notes": "context"}, lists={"notes": bullets})
        >>> layout.placeholder("context"), layout.fill("notes", ["Mara lives in Oslo."])
        ('notes', '- Mara lives in Oslo.')
    """

    roles: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, Callable[[Sequence[str]], str]] = field(default_factory=dict)
    reply: Write | None = None
    read: Read | None = None

    def placeholder(self, role: str) -> str:
        """The placeholder that a role fills."""
        return next((name for name, filling in self.roles.items() if filling == role), role)

    def fill(self, placeholder: str, texts: Sequence[str]) -> str:
        """The texts as the value of a placeholder."""
        return self.lists.get(placeholder, "\n".join)(texts)

    def filled(self, parts: Parts) -> dict[str, str]:
        """Placeholder → its value, as the request of an execution had it."""
        return {name: self.fill(name, [item.text for item in items]) for name, items in parts.items()}


PLAIN = Layout()
"""For an operation whose roles have the names of its prompt's placeholders."""


_NO_DATA = ("prompt", "request")
"""Kinds of inputs that fill no placeholder: the template, and what `tracing.instrument` keeps of a request."""


def recorded_parts(layout: Layout, placeholders: Collection[str], execution: Operation, graph: ExecutionGraph) -> Parts:
    """Placeholder → the recorded inputs that filled it in an execution; none where there were none."""
    parts: dict[str, tuple[Item, ...]] = dict.fromkeys(sorted(placeholders), ())
    for role, vid in execution.inputs:
        item = _item(role, graph.variables[vid])
        if item.kind not in _NO_DATA:
            name = layout.placeholder(role)
            parts[name] = (*parts.get(name, ()), item)
    return parts


def recorded_outputs(execution: Operation, graph: ExecutionGraph) -> tuple[Item, ...]:
    """What an execution made."""
    return tuple(_item(role, graph.variables[vid]) for role, vid in execution.outputs)


def beside_reply(outputs: Sequence[Item]) -> tuple[Item, ...]:
    """What an execution made of the reply that was recorded verbatim; that itself, if it made nothing else."""
    return tuple(item for item in outputs if item.kind != RECORDED_REPLY) or tuple(outputs)


def _item(role: str, variable: Variable) -> Item:
    return Item(role, variable.name, variable.kind, variable.value)


def bullets(texts: Sequence[str]) -> str:
    """One a line, each after a dash.

    Example:
        >>> print(bullets(["Mara lives in Oslo.", "Mara sails."]))
        - Mara lives in Oslo.
        - Mara sails.
    """
    return "\n".join(f"- {text}" for text in texts)


def numbered(texts: Sequence[str]) -> str:
    """One a line, each after its number, from 1."""
    return "\n".join(f"{number}: {text}" for number, text in enumerate(texts, start=1))


def plain_reply(schema: Mapping[str, Any] | None, outputs: Sequence[Item]) -> str:
    """Outputs as a reply: what was recorded verbatim; JSON by role, if the prompt asks for it; or the texts.

    Args:
        schema: JSON schema of the reply; None for free text. A property takes the outputs of the role with its name.
        outputs: of the execution, or some of them.
    """
    replies = [item.text for item in outputs if item.kind == RECORDED_REPLY]
    if len(replies) == 1:
        return replies[0]
    properties = schema.get("properties", {}) if schema is not None else {}
    roles = {item.role for item in outputs}
    if properties and (roles & set(properties) or not outputs):
        listed = {name for name, form in properties.items() if form.get("type") == "array"}
        by_role = {name: [item.value for item in outputs if item.role == name] for name in properties}
        values = {
            name: role_values if name in listed else role_values[0]
            for name, role_values in by_role.items()
            if role_values or name in listed
        }
        return json.dumps(values, ensure_ascii=False)
    return "\n".join(
        item.text if isinstance(item.value, str) else json.dumps(item.value, ensure_ascii=False) for item in outputs
    )
