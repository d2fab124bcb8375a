"""Constrains the replies that Mem0 0.1 and 1.0 ask for to a JSON schema, for a small model that needs it.

    import mem0_replies

    memory = mem0_replies.with_reply_schemas(Memory.from_config(...))

Mem0 alone asks for any JSON object. A model that replies `{}` to the request for an update then stores nothing,
whatever the prompts say, since Mem0's own words come after them. With a schema an extraction lists at most four facts,
and an update has one item for each new fact, with the fact's text. The endpoint has to support `response_format` with
a JSON schema, as llama.cpp, vLLM, Ollama and OpenAI do. This file needs mem0 alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

FACTS_SCHEMA = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "string", "maxLength": 140}, "maxItems": 4}},
    "required": ["facts"],
    "additionalProperties": False,
}
"""The form of an extraction's reply."""

EVENTS = ("ADD", "UPDATE", "DELETE", "NONE")

_EXTRACTION = "Input:\n"
_NEW_FACTS = "The new retrieved facts are mentioned in the triple backticks."
_QUOTED = r"```\n(.*)\n\s*```"
_MEMORIES = re.compile(rf"current content of my memory.*\n\s*{_QUOTED}\s*$")


def with_reply_schemas(memory: Any) -> Any:
    """The same `Memory` or `AsyncMemory`, whose extractions and updates are asked for in a schema from now on."""
    ask = memory.llm.generate_response

    def generate_response(messages: Any, response_format: Any = None, **others: Any) -> Any:
        if response_format == {"type": "json_object"}:
            schema = schema_for(messages)
            if schema is not None:
                form = {"name": "reply", "schema": schema, "strict": True}
                response_format = {"type": "json_schema", "json_schema": form}
        return ask(messages=messages, response_format=response_format, **others)

    memory.llm.generate_response = generate_response
    return memory


def schema_for(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The schema of the reply to a request of Mem0's; None for one that is neither an extraction nor an update."""
    request = str(messages[-1]["content"])
    if request.startswith(_EXTRACTION):
        return FACTS_SCHEMA
    before, marker, after = request.rpartition(_NEW_FACTS)
    memory_list, facts = _MEMORIES.search(before.rstrip()), re.search(_QUOTED, after)
    if not marker or facts is None:
        return None
    try:
        memories = ast.literal_eval(memory_list[1].strip()) if memory_list else ()
        return update_schema(ast.literal_eval(facts[1].strip()), len(memories))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def update_schema(facts: Sequence[str], memory_count: int) -> dict[str, Any]:
    """Schema of an update reply: one item for each new fact, with that text, for one of so many memories."""
    events = list(EVENTS) if memory_count else ["ADD"]
    ids = [str(number) for number in range(max(memory_count, 1))]
    items = [
        {
            "type": "object",
            "properties": {"text": {"const": fact}, "event": {"enum": events}, "id": {"enum": ids}},
            "required": ["text", "event", "id"],
            "additionalProperties": False,
        }
        for fact in facts
    ]
    memory = {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    return {
        "type": "object",
        "properties": {"memory": memory},
        "required": ["memory"],
        "additionalProperties": False,
    }
