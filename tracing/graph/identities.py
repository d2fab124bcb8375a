"""Whose an element of a graph is, and of which chat: by the attributes that programs and their tools give such ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

USERS = (
    *("enduser.id", "user.id", "gen_ai.user.id", "enduser.pseudo.id", "langfuse.user.id", "mlflow.trace.user"),
    "traceloop.association.properties.user_id",
)
"""Names of the id of a user in spans."""

CHATS = (
    *("gen_ai.conversation.id", "session.id", "langfuse.session.id", "mlflow.trace.session"),
    *(f"traceloop.association.properties.{name}" for name in ("session_id", "chat_id", "thread_id")),
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


def chat_in(attributes: Mapping[str, object]) -> str:
    """The chat that attributes name; empty if they name none."""
    return first_id(attributes, (*OWN_CHATS, *CHATS))
