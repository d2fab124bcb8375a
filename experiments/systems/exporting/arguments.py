"""Prompts as arguments of a library's functions, in a JSON file: plain texts, whose braces mean nothing.

A library of this kind is a row of `argument_targets.toml` and a proof; it needs no code here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

from experiments.systems.exporting.places import Place
from experiments.systems.exporting.proving import ProvenLibrary, proven_in, sent_by
from experiments.systems.exporting.written_files import OneFile, as_json, json_object
from experiments.systems.libraries import NeedsLibrary
from experiments.systems.worker.environment import Environment
from tracing.errors import RunError
from tracing.package_data import packaged_tables
from tracing.systems.prompts import Candidate, escaped, render


class Arguments(OneFile, NeedsLibrary):
    """A place is an argument (`instructions`), or one of a function (`search.system_prompt`, nested in the file).

    Attributes:
        library: that takes the arguments.
        proof: the program that calls it with them, in an environment that has the library and not memtune.
        places: for prompts.
    """

    library: ClassVar[ProvenLibrary]
    proof: Path
    places: tuple[Place, ...]

    def content(self, candidate: Candidate) -> str:
        """The rendered texts."""
        arguments: dict[str, Any] = {}
        for place, template in candidate.items():
            function, _, argument = place.rpartition(".")
            group = arguments.setdefault(function, {}) if function else arguments
            group[argument] = render(template, {})
        return as_json(arguments)

    def render(self, name: str, values: Mapping[str, str], folder: Path) -> str:
        """One text as the library gets it."""
        return self.texts(str(folder / self.file))[name]

    def recognises(self, source: str) -> bool:
        """Whether it is a JSON file with one of the arguments."""
        try:
            return Path(source).suffix == ".json" and bool(self.texts(source))
        except RunError:
            return False

    def texts(self, source: str) -> dict[str, str]:
        """The texts of a file, by place."""
        arguments, texts = json_object(source), {}
        for place in self.places:
            function, _, argument = place.name.rpartition(".")
            group = arguments.get(function) if function else arguments
            text = group.get(argument) if isinstance(group, dict) else None
            if isinstance(text, str):
                texts[place.name] = text
        return texts

    def template(self, text: str, placeholders: Collection[str]) -> str:
        """The text as a template without placeholders."""
        return escaped(text)

    def prove(self, folder: Path) -> list[str]:
        """Call the library with the arguments, and find each text in the requests that it sends."""
        file = str(folder / self.file)
        sent = sent_by(self.library, self.proof, {"arguments": json_object(file)}, reply_by_schema)
        return sent.proofs({place: [text] for place, text in self.texts(file).items()})


def _target(product: str, row: Mapping[str, Any]) -> type[Arguments]:
    environment = Environment(row["target"], f"{__name__}:{product}", (row["requirement"],))
    members = {
        "environment": environment,
        "library": proven_in(environment, row["requirement"].partition("==")[0], row["generation"]),
        "proof": Path(__file__).parents[1] / product / "proof.py",
        "file": f"{product}.json",
        "places": tuple(Place(**place) for place in row["places"]),
    }
    return type(product, (Arguments,), members)


TARGETS: Mapping[str, type[Arguments]] = {
    product: _target(product, row)
    for product, row in packaged_tables("experiments.systems.exporting", "argument_targets.toml").items()
}
"""Product → the class of its exporters, which an attribute of this module is called, too."""


def __getattr__(name: str) -> type[Arguments]:
    try:
        return TARGETS[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


_SCHEMA_IN_TEXT = re.compile(r"conforming to this schema:\n```json\n(.*?)\n```", re.DOTALL)


def reply_by_schema(body: Mapping[str, Any]) -> dict[str, Any]:
    """A reply in the form that a request asks for: a small instance of its schema, or a word."""
    schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
    schemas = [
        schema_text for message in body["messages"] for schema_text in _SCHEMA_IN_TEXT.findall(str(message["content"]))
    ]
    if schema is None and schemas:
        schema = json.loads(schemas[-1])
    return {"content": "tea" if schema is None else json.dumps(smallest(schema, schema))}


def smallest(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """A small value that a JSON schema accepts: a list with one item, a text with a word."""
    if "$ref" in schema:
        return smallest(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    for choice in ("anyOf", "allOf", "oneOf"):
        if choice in schema:
            return smallest(schema[choice][0], root)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        return {name: smallest(property_schema, root) for name, property_schema in schema.get("properties", {}).items()}
    if kind == "array":
        return [smallest(schema["items"], root)] if "items" in schema else []
    return {"integer": 0, "number": 0, "boolean": False, "null": None}.get(str(kind), "tea")
