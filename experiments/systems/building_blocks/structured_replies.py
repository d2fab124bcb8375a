"""Asking a model for a reply of a given form, and what an operation records of one that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from tracing.errors import MalformedReplyError
from tracing.llm.booking import note_malformed
from tracing.llm.models import ChatModel
from tracing.llm.reply_json import read_json
from tracing.recording.operations import ActiveOperation, operation
from tracing.recording.redaction import excerpt
from tracing.recording.trace_context import variable
from tracing.systems.conversations import first_problem
from tracing.systems.prompts import PromptSpec, render
from tracing.systems.texts import Text, variables_of

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


def number_schema(count: int | None) -> dict[str, Any]:
    """The JSON schema of the number, as a text, of one of so many things; of any number if that is None."""
    numbers = {} if count is None else {"enum": [str(number) for number in range(1, count + 1)]}
    return {"type": "string", **numbers}


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


@contextmanager
def model_step(
    spec: PromptSpec,
    template: str,
    texts: Mapping[str, Sequence[Text]],
    form: type[M],
    model: ChatModel,
    max_tokens: int,
    schema: Mapping[str, Any] | None = None,
) -> Iterator[tuple[ActiveOperation, M | None]]:
    """The operation of a prompt as it runs, and the reply to its request; None if that is malformed.

    Args:
        texts: role → the inputs; the layout says which fill which placeholder, and how.
        form: that the reply is read as.
        schema: of the reply, if not that of the contract.
    """
    values = {
        placeholder: spec.layout.fill(placeholder, [text.text for text in texts[role]])
        for placeholder in spec.contract.placeholders
        for role in (spec.layout.roles.get(placeholder, placeholder),)
    }
    inputs = {role: variables_of(role_texts) for role, role_texts in texts.items()}
    prompt = variable(template, name=spec.name, kind="prompt")
    with operation(spec.operation, kind="llm", inputs={**inputs, "prompt": prompt}) as op:
        request = render(template, values)
        yield op, parsed_reply(read_as(form), model, request, schema or spec.contract.reply_schema, max_tokens, op)


def read_reply(read: Callable[[str], R], reply: str, op: ActiveOperation) -> R | None:
    """A reply, parsed by `read`; None if it is malformed, which the operation records."""
    try:
        return read(reply)
    except MalformedReplyError as error:
        note_malformed(reply)
        op.annotate(malformed=str(error), reply=excerpt(reply, LONGEST_SHOWN))
        return None


def read_as(form: type[M]) -> Callable[[str], M]:
    """Reads a reply as JSON of a form; anything else raises `MalformedReplyError`."""

    def read(reply: str) -> M:
        try:
            return form.model_validate(read_json(reply, fields=form.model_fields))
        except ValidationError as error:
            raise MalformedReplyError(first_problem(error)) from None

    return read
