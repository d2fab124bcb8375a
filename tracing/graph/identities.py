"""Whose an element of a graph is, and of which chat: by the attributes that programs and their tools give such ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracing.graph.elements import Operation, Variable
from tracing.graph.execution_graph import ExecutionGraph

USERS = (
    *("enduser.id", "user.id", "gen_ai.user.id", "enduser.pseudo.id", "langfuse.user.id", "mlflow.trace.user"),
    *("traceloop.association.properties.user_id", "langsmith.metadata.user_id"),
)
"""Names of the id of a user in spans."""

CHATS = (
    *("gen_ai.conversation.id", "session.id", "langfuse.session.id", "mlflow.trace.session"),
    *(f"traceloop.association.properties.{name}" for name in ("session_id", "chat_id", "thread_id")),
    *(f"langsmith.metadata.{name}" for name in ("session_id", "conversation_id", "thread_id")),
)
"""Names of the id of a chat in spans."""

OWN_USERS, OWN_CHATS = ("user", "user_id"), ("session_id", "conversation_id", "chat_id", "thread_id", "run_id")
"""The same in what memtune records. What the program says goes before what the library that it uses was told."""

_TENANTS = ("tenant", "tenant_id", "tenant.id")
_REDACTED = "[redacted]"


def first_id(attributes: object, names: Sequence[str]) -> str:
    """The first of the attributes with these names that is an id; empty if none is."""
    values = (attributes.get(name) for name in names) if isinstance(attributes, Mapping) else ()
    ids = (str(value) for value in values if isinstance(value, str | int))
    return next((value for value in ids if value and value != _REDACTED), "")


def user_in(attributes: Mapping[str, object]) -> str:
    """The user that attributes name, with the tenant before it where they name one; empty if they name no user.

    Example:
        >>> user_in({"tenant": "acme", "user": "mara"})
        'acme/mara'
    """
    user, tenant = first_id(attributes, (*OWN_USERS, *USERS)), first_id(attributes, _TENANTS)
    return f"{tenant}/{user}" if user and tenant else user


def user_of(element: Variable | Operation, graph: ExecutionGraph) -> str:
    """The user that an element of a graph names, or else its session; empty if neither does."""
    session = graph.sessions.get(element.session or "")
    return user_in(element.attributes) or (user_in(session.attributes) if session is not None else "")


def chat_in(attributes: Mapping[str, object]) -> str:
    """The chat that attributes name; empty if they name none."""
    return first_id(attributes, (*OWN_CHATS, *CHATS))


def graphs_by_user(graph: ExecutionGraph) -> dict[str, ExecutionGraph]:
    """A graph by the users that its elements or their sessions name; all of it where they name at most one.

    What names none belongs to those whose operations read or made it, or to all if none did.
    """
    variables = {vid: {user_of(variable, graph)} - {""} for vid, variable in graph.variables.items()}
    operations = {oid: {user_of(operation, graph)} - {""} for oid, operation in graph.operations.items()}
    users = list(dict.fromkeys(user for named in (*variables.values(), *operations.values()) for user in named))
    if len(users) < 2:
        return {users[0] if users else "": graph}
    for oid, operation in graph.operations.items():
        operations[oid] = operations[oid] or {user for vid in _links(operation) for user in variables[vid]} or {*users}
    for vid, named in variables.items():
        around = (*graph.producers(vid), *graph.consumers(vid))
        variables[vid] = named or {user for operation in around for user in operations[operation.id]} or {*users}
    parts: dict[str, tuple[dict[str, None], list[Operation]]] = {user: ({}, []) for user in users}
    for oid, named in operations.items():
        for user in named:
            parts[user][1].append(graph.operations[oid])
            for vid in _links(graph.operations[oid]):
                variables[vid] = variables[vid] | {user}
    for vid, named in variables.items():
        for user in named:
            parts[user][0][vid] = None
    return {
        user: ExecutionGraph(map(graph.variables.__getitem__, vids), steps, graph.sessions.values(), graph.attributes)
        for user, (vids, steps) in parts.items()
    }


def _links(operation: Operation) -> list[str]:
    return [vid for _, vid in (*operation.inputs, *operation.outputs)]
