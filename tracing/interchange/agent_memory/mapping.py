"""What operations do with a memory, as a file says it where their names do not.

operations:
  jot: {role: store, text: line}
  peek: {role: retrieve}
  weather: {role: other}
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tracing.errors import TraceError, in_one_line
from tracing.files.opening import read_file
from tracing.files.yaml_text import load_yaml
from tracing.graph.execution_graph import ExecutionGraph
from tracing.interchange.agent_memory.notes import id_in, text_in, unwrapped
from tracing.interchange.agent_memory.roles import ROLES, Role, role_of, roles_shown
from tracing.interchange.agent_memory.turns import Call, calls_of
from tracing.recording.redaction import redact

_LONGEST_EXAMPLE = 100


class Mapped(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an operation does: its role, and the names of its arguments where these do not tell what they are.

    Attributes:
        role: `store`, `update`, `delete`, `retrieve`, or `other` for what has nothing to do with a memory.
        text: the argument with what is kept or sought; id: that with the id of the entry; user: that with whose it is.
    """

    role: Role
    text: str | None = None
    id: str | None = None
    user: str | None = None

    def names(self) -> dict[str, str]:
        """The names of arguments that it says → those that are known."""
        arguments = {"text": self.text, "id": self.id, "user_id": self.user}
        return {own: name for name, own in arguments.items() if own is not None}

    def applied(self, arguments: Any) -> Any:
        """The arguments of a call under the names that are known."""
        names = self.names()
        if not isinstance(arguments, Mapping) or not names:
            return arguments
        rest = {key: value for key, value in arguments.items() if key not in names}
        return {name: arguments[own] for own, name in names.items() if own in arguments} | rest


class _Mapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    operations: dict[str, Any]


def read_mapping(path: Path) -> Mapping[str, Mapped]:
    """What a mapping file says, by names of tools or operations.

    Raises:
        TraceError: it cannot be read, or says something else; names the file and the key.
    """
    try:
        content = load_yaml(read_file(path).decode("utf-8"))
    except Exception as error:
        raise TraceError(
            f"{path}: is no YAML: {in_one_line(error)}; `memtune trace map TRACE` writes a draft"
        ) from error
    operations: dict[str, Mapped] = {}
    place = "operations"
    try:
        for name, facts in msgspec.convert(content, _Mapping).operations.items():
            place = f"operations.{name}"
            operations[name] = msgspec.convert(facts, Mapped)
    except msgspec.ValidationError as error:
        remedy = f"give each operation a role ({', '.join(ROLES)}), and the names of its arguments where needed"
        raise TraceError(f"{path}: {place}: {error}; {remedy}; see docs/interchange.md#agents") from error
    return operations


def renamed(result: Any, mapping: Mapping[str, Mapped]) -> Any:
    """A result with the fields of entries under the names that are known: they are called as what writes them is."""
    writing = [mapped.names() for mapped in mapping.values() if mapped.role in ("store", "update")]
    names = {own: name for own_names in writing for own, name in own_names.items()}
    return _under(names, unwrapped(result)) if names else result


def _under(names: Mapping[str, str], value: Any) -> Any:
    if isinstance(value, list):
        return [_under(names, part) for part in value]
    if isinstance(value, Mapping):
        return {names.get(key, key): _under(names, part) for key, part in value.items()}
    return value


def unused(mapping: Mapping[str, Mapped], graph: ExecutionGraph) -> list[str]:
    """The names in a mapping that no tool and no operation of a graph has."""
    names = {call.tool for call in calls_of(graph)} | {operation.name for operation in graph.operations.values()}
    return [name for name in mapping if name not in names]


def roles_in(calls: Sequence[Call], mapping: Mapping[str, Mapped]) -> dict[str, Role]:
    """The roles of calls, by the ids of their operations: as a mapping, their kind, their name or other calls tell."""
    shown_roles = roles_shown((call.tool, call.arguments, str(unwrapped(call.result))) for call in calls)

    def role(call: Call) -> Role:
        if call.tool in mapping:
            return mapping[call.tool].role
        if call.operation.kind == "retrieval":
            return "retrieve"
        return role_of(call.tool, call.arguments) or shown_roles.get(call.tool) or "other"

    return {call.operation.id: role(call) for call in calls}


def draft(graph: ExecutionGraph) -> str:
    """A mapping file for a graph: every operation that may be a tool, the role it is taken to have, and an example."""
    calls: dict[str, Call] = {}
    every = calls_of(graph)
    counts = Counter(call.tool for call in every)
    roles = roles_in(every, {})
    doing = defaultdict[str, set[Role]](set)
    for call in every:
        calls.setdefault(call.tool, call)
        doing[call.tool].add(roles[call.operation.id])
    lines = [
        "# What each operation does with the memory: store, update, delete, retrieve, or other for nothing.",
        "# Where the names of its arguments do not tell, give `text` (what is kept or sought), `id` and `user`.",
        "operations:",
    ]
    for tool, call in sorted(calls.items()):
        name = json.dumps(tool, ensure_ascii=False)
        if len(doing[tool]) > 1:
            lines.append(f"  # {name} does several things, as its arguments say, and needs no line here.")
            continue
        arguments = json.dumps(call.arguments, ensure_ascii=False, default=str)
        lines += [
            f"  # {counts[tool]} calls; given {_shortened(arguments)}; gave {_shortened(str(call.result))}",
            f"  {name}: {{role: {roles[call.operation.id]}{_names(call)}}}",
        ]
    is_empty = all(len(several) > 1 for several in doing.values())
    return "\n".join([line if line != "operations:" or not is_empty else "operations: {}" for line in lines]) + "\n"


def _names(call: Call) -> str:
    """The arguments that are taken for the text and the id, so that a reader can correct them."""
    if not isinstance(call.arguments, Mapping):
        return ""
    meanings = {"text": text_in(call.arguments), "id": id_in(call.arguments)}
    names = {
        noun: next((key for key, value in call.arguments.items() if str(value) == meaning), "")
        for noun, meaning in meanings.items()
        if meaning
    }
    return "".join(f", {noun}: {json.dumps(name)}" for noun, name in names.items() if name)


def _shortened(text: str) -> str:
    line = " ".join(redact(text).split())
    return line if len(line) <= _LONGEST_EXAMPLE else f"{line[: _LONGEST_EXAMPLE - 1]}…"
