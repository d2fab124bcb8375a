"""Prompts from a TOML file: a table for each, with its text and what is fixed of it; schemas and replies are code."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from experiments.systems.building_blocks.structured_replies import object_schema
from tracing.systems.layouts import Layout, Write, bullets, numbered
from tracing.systems.prompts import Contract, PromptSpec, placeholders_of

_LISTS: Mapping[str, Callable[[Sequence[str]], str]] = {
    "bullets": bullets,
    "numbered": numbered,
    "semicolons": "; ".join,
}


SHARED = Path(__file__).with_name("prompts.toml")
"""The prompts that several systems have."""


def prompts_in(
    file: Path,
    *,
    schemas: Mapping[str, Mapping[str, Any]] | None = None,
    replies: Mapping[str, Write] | None = None,
    lists: Mapping[str, Callable[[Sequence[str]], str]] | None = None,
    rules: tuple[Callable[[str], Sequence[str]], ...] = (),
) -> dict[str, PromptSpec]:
    """The prompts of a file, by table; the placeholders of the text there are those that a rewrite must keep.

    A table has `text`, `operation`, `purpose` and `builds`, and may have `name`, `markers`, `waived` and `limits` of
    the contract, the `properties` of a reply that is a JSON object, and `roles` and `lists` of the layout.

    Args:
        schemas: table → JSON schema of the reply, if not of its `properties`; free text where it has neither.
        replies: table → how outputs are written as a reply, if not by the schema.
        lists: name → how several texts are written, beside `bullets`, `numbered` and `semicolons`.
        rules: further checks of every text.
    """
    ways = {**_LISTS, **(lists or {})}
    return {
        table: PromptSpec(
            name=fields.get("name", table),
            text=fields["text"],
            operation=fields["operation"],
            contract=Contract(
                placeholders=frozenset(placeholders_of(fields["text"])),
                reply_schema=(schemas or {}).get(table) or _schema_of(fields),
                markers=tuple(fields.get("markers", ())),
                waived=frozenset(fields.get("waived", ())),
                rules=rules,
                **fields.get("limits", {}),
            ),
            purpose=fields["purpose"],
            builds=fields["builds"],
            layout=Layout(
                roles=fields.get("roles", {}),
                lists={placeholder: ways[way] for placeholder, way in fields.get("lists", {}).items()},
                reply=(replies or {}).get(table),
            ),
        )
        for table, fields in _tables(file).items()
    }


def _schema_of(fields: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return object_schema(**fields["properties"]) if "properties" in fields else None


@cache
def _tables(file: Path) -> Mapping[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8"))
