"""Replies that have the form which a request asks for, so that a library goes on to its next request."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_SCHEMA_IN_TEXT = re.compile(r"conforming to this schema:\n```json\n(.*?)\n```", re.DOTALL)


def reply_by_schema(body: Mapping[str, Any], text: str = "tea") -> dict[str, Any]:
    """A reply in the form that a request asks for: a small instance of its schema, or this text."""
    schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
    schemas = [
        schema_text for message in body["messages"] for schema_text in _SCHEMA_IN_TEXT.findall(str(message["content"]))
    ]
    if schema is None and schemas:
        schema = json.loads(schemas[-1])
    return {"content": text if schema is None else json.dumps(smallest(schema, schema))}


def smallest(schema: Mapping[str, Any], root: Mapping[str, Any], text: str = "tea") -> Any:
    """A small value that a JSON schema accepts: a list with one item, and this for a text."""
    if "$ref" in schema:
        return smallest(root["$defs"][schema["$ref"].rpartition("/")[2]], root, text)
    for choice in ("anyOf", "allOf", "oneOf"):
        if choice in schema:
            return smallest(schema[choice][0], root, text)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        return {name: smallest(inner, root, text) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [smallest(schema["items"], root, text)] if "items" in schema else []
    return {"integer": 0, "number": 0, "boolean": False, "null": None}.get(str(kind), text)
