"""What systems that store facts share: how a small model is asked for facts of messages, and what may happen to one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from experiments.systems.building_blocks.prompt_files import SHARED, prompts_in
from experiments.systems.building_blocks.structured_replies import number_schema, object_schema, parsed_reply, read_as
from tracing.llm.access import ModelAccess
from tracing.recording.operations import ActiveOperation, operation
from tracing.recording.trace_context import variable
from tracing.systems.interventions import Step, intervening
from tracing.systems.layouts import Item, Parts
from tracing.systems.prompts import PromptSpec, render
from tracing.systems.texts import Text, variables_of

MAX_FACTS = 4
"""Most facts of one extraction; a small model fills any list it may, so the limit is near what turns contain."""

LONGEST_FACT = 140
"""Most characters of one fact."""

EVENTS = ("ADD", "UPDATE", "DELETE", "NONE")


def facts_schema(most: int) -> dict[str, Any]:
    """The form of an extraction of so many facts at most."""
    return object_schema(
        facts={"type": "array", "items": {"type": "string", "maxLength": LONGEST_FACT}, "maxItems": most}
    )


FACTS_SCHEMA = facts_schema(MAX_FACTS)
"""The form of an extraction's reply, for endpoints that enforce it."""

FACTS_PROMPT = prompts_in(SHARED, schemas={"extract": FACTS_SCHEMA})["extract"]
"""The prompt of an extraction whose one placeholder is the conversation."""


def decision_reply(parts: Parts, outputs: Sequence[Item]) -> str:
    """A decision on an entry, as the reply that gives its number among the memories shown."""
    value = outputs[0].value if outputs else ""
    if not isinstance(value, dict):
        return str(value)
    listed = [item.name for item in parts.get("memories", ())]
    number = str(listed.index(value["target"]) + 1) if value.get("target") in listed else ""
    return json.dumps({"event": value.get("event"), "id": number})


def decision_schema(count: int | None = None) -> dict[str, Any]:
    """The form of a decision on one of so many memories."""
    return object_schema(event={"type": "string", "enum": list(EVENTS)}, id=number_schema(count))


_SLACK = 4
"""A reply may exceed the limits by this factor, since some endpoints do not enforce them."""

MOST_READ = _SLACK * MAX_FACTS
"""Facts of a reply that are read at most: one with more is malformed."""


class _Facts(BaseModel):
    """The same form, for replies of endpoints that do not enforce it."""

    model_config = ConfigDict(strict=True)

    facts: Annotated[list[Annotated[str, Field(max_length=_SLACK * LONGEST_FACT)]], Field(max_length=MOST_READ)]


_read = read_as(_Facts)


def facts_in(reply: str) -> list[str]:
    """The facts in the reply to an extraction, as written.

    Raises:
        MalformedReplyError: it is not JSON, does not have the form of `FACTS_SCHEMA`, or is far over its limits.
    """
    return _read(reply).facts


MAX_EXTRACT_TOKENS = 512


class Extractor:
    """Asks a model for the facts of messages, as the layout of a prompt says, and numbers them through a build."""

    def __init__(
        self,
        spec: PromptSpec,
        template: str,
        access: ModelAccess,
        *,
        max_tokens: int = MAX_EXTRACT_TOKENS,
        most: int = MAX_FACTS,
    ) -> None:
        self._spec, self._template, self._model, self._max_tokens = spec, template, access.task, max_tokens
        self._schema = spec.contract.reply_schema if most == MAX_FACTS else facts_schema(most)
        self._prompt = variable(template, name=spec.name, kind="prompt")
        self._extracted = 0

    def extract(self, texts: Sequence[Text]) -> list[Text]:
        """Record and return the facts in these texts, each once; none if the reply is malformed."""
        spec = self._spec
        (placeholder,) = spec.contract.placeholders
        values = {placeholder: spec.layout.fill(placeholder, [text.text for text in texts])}
        request = render(self._template, values)
        read = variables_of(texts)
        with operation(spec.operation, kind="llm", inputs={"messages": read, "prompt": self._prompt}) as op:
            reply = parsed_reply(facts_in, self._model, request, self._schema, self._max_tokens, op)
            unique = list(dict.fromkeys(fact.strip() for fact in reply or ()))
            messages = [source for source in read if source.kind == "message"]
            statements = intervening().extracted(Step(spec.operation, op.id), messages, unique)
            return [self._fact(op, statement) for statement in statements if statement]

    def _fact(self, op: ActiveOperation, text: str) -> Text:
        self._extracted += 1
        return Text(text, op.output("facts", text, name=f"fact{self._extracted}", kind="fact"))
