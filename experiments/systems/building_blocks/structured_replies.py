"""Asking a model for a reply of a given form, and what an operation records of one that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from tracing.errors import MalformedReplyError
from tracing.llm.http.strict_json import strict_json
from tracing.llm.models import ChatModel
from tracing.recording.recorder import ActiveOperation
from tracing.recording.redaction import excerpt
from tracing.systems.conversations import first_problem

R = TypeVar("R")
M = TypeVar("M", bound=BaseModel)


def object_schema(**properties: Any) -> dict[str, Any]:
    """The JSON schema of an object that has these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


LONGEST_SHOWN = 500
"""Most characters of a malformed reply that its operation records."""


def parsed_reply(
    read: Callable[[str], R],
    model: ChatModel,
    request: str,
    schema: Mapping[str, Any] | None,
    max_tokens: int,
    op: ActiveOperation,
) -> R | None:
    """The model's reply, parsed by `read`; None if it is malformed, which the operation records."""
    reply = model.chat([{"role": "user", "content": request}], max_tokens=max_tokens, schema=schema).text
    return read_reply(read, reply, op)


def read_reply(read: Callable[[str], R], reply: str, op: ActiveOperation) -> R | None:
    """A reply, parsed by `read`; None if it is malformed, which the operation records."""
    try:
        return read(reply)
    except MalformedReplyError as error:
        op.annotate(malformed=str(error), reply=excerpt(reply, LONGEST_SHOWN))
        return None


def read_as(form: type[M]) -> Callable[[str], M]:
    """Reads a reply as JSON of a form; anything else raises `MalformedReplyError`."""

    def read(reply: str) -> M:
        try:
            return form.model_validate(strict_json(reply))
        except ValidationError as error:
            raise MalformedReplyError(first_problem(error)) from None

    return read
