"""Graphiti's prompts as overrides of its prompt library, and the proof that it sends them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.systems.exporting.arguments import reply_by_schema
from experiments.systems.exporting.formats.constants import literal, python_constants
from experiments.systems.exporting.places import Place
from experiments.systems.exporting.proving import proven_in, sent_by
from experiments.systems.exporting.written_files import OneFile
from experiments.systems.libraries import NeedsLibrary
from experiments.systems.worker.environment import Environment
from tracing.package_data import packaged_tables
from tracing.systems.prompts import Candidate, placeholders_of, render

MODULE_FILE = "graphiti_prompts.py"

_ENVIRONMENT = Environment(
    "graphiti@0.31",
    f"{__name__}:GraphitiLibrary",
    # It imports httpx without requiring it.
    ("graphiti-core[kuzu]==0.31.1", "httpx>=0.27,<1"),
)
GRAPHITI = proven_in(_ENVIRONMENT, "graphiti-core", "0.31.")

_MODULE = Path(__file__).with_name("graphiti_prompts.template")
_ROWS = packaged_tables("experiments.systems.graphiti", "places.toml")

_NO_PLACE = (
    "Graphiti asks by its own prompts for the dates, attributes, summaries and duplicates of what it extracted: there "
    "are no places for them."
)


def _place(name: str, row: Mapping[str, Any]) -> Place:
    losses = {f"{{{part}}}": loss for part, loss in _ROWS["losses"].items() if part in row["sends"]}
    return Place(name, row.get("stage"), needs=frozenset(row["needs"]), may=frozenset(row["may"]), losses=losses)


class GraphitiLibrary(OneFile, NeedsLibrary):
    """A Python module with the prompts as user messages; `{name}` is a key of the context that Graphiti hands over."""

    file = MODULE_FILE
    environment, library = _ENVIRONMENT, GRAPHITI
    places = tuple(_place(name, row) for name, row in _ROWS["places"].items())

    def content(self, candidate: Candidate) -> str:
        """The module."""
        prompts = "".join(f"{place!r}: {literal(text)},\n" for place, text in candidate.items())
        return _MODULE.read_text(encoding="utf-8").format(prompts=prompts)

    def render(self, name: str, values: Mapping[str, str], folder: Path) -> str:
        """One prompt as the module builds it."""
        return self.texts(str(folder))[name].format_map(values)

    def warnings(self, texts: Mapping[str, str]) -> list[str]:
        """Where Graphiti extracts by a prompt of its own."""
        own = [f"{place} ({row['request']})" for place, row in _ROWS["places"].items() if place not in texts]
        there = [f"Graphiti asks by its own prompts at {', '.join(own)}: no prompt is placed there."] if own else []
        return [*there, _NO_PLACE]

    def texts(self, source: str) -> dict[str, str]:
        """The templates of a module, by place; nothing of it is executed."""
        constants = python_constants(str(self.path_in(source)))
        return {place.name: constants[place.name] for place in self.places if place.name in constants}

    def prove(self, folder: Path) -> list[str]:
        """Let Graphiti add episodes of each kind, alone and in bulk, and find each prompt in what it sends.

        A request has values in the places of the placeholders, so the texts between them are looked for.
        """
        module = str((folder / MODULE_FILE).resolve())
        parts = {place: _literals(text) for place, text in self.texts(module).items()}
        sent = sent_by(GRAPHITI, Path(__file__).with_name("proof.py"), {"module": module}, reply_by_schema)
        return sent.proofs(parts)


def _literals(template: str) -> list[str]:
    """The texts before, between and after the placeholders."""
    mark = "\0"
    return render(template, dict.fromkeys(placeholders_of(template), mark)).split(mark)
