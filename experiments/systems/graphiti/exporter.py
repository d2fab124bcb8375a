"""Graphiti's prompts as overrides of its prompt library, and the proof that it sends them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from experiments.systems.exporting.arguments import reply_by_schema
from experiments.systems.exporting.formats.constants import literal, python_constants
from experiments.systems.exporting.one_file import OneFile
from experiments.systems.exporting.places import Place
from experiments.systems.exporting.proving import proven_in, sent_by
from experiments.systems.libraries import NeedsLibrary
from experiments.systems.worker.environment import Environment
from tracing.systems.prompts import Candidate, placeholders_of, render
from tracing.systems.protocol import Stage

MODULE_FILE = "graphiti_prompts.py"

_ENVIRONMENT = Environment(
    "graphiti@0.31",
    f"{__name__}:GraphitiLibrary",
    # It imports httpx without requiring it.
    ("graphiti-core[kuzu]==0.31.1", "httpx>=0.27,<1"),
)
GRAPHITI = proven_in(_ENVIRONMENT, "graphiti-core", "0.31.")

_MODULE = Path(__file__).with_name("graphiti_prompts.template")
_ENTITIES = frozenset(
    {
        "entity_types",
        "previous_episodes",
        "custom_extraction_instructions",
        "episode_timestamp",
        "source_description",
    }
)
_FACTS = frozenset(
    {"previous_episodes", "reference_time", "edge_types", "strict_edge_types", "custom_extraction_instructions"}
)
_LOST = {
    "{custom_extraction_instructions}": "what you give Graphiti as custom_extraction_instructions is not sent",
    "{entity_types}": "the model is told of no entity types, your own among them",
    "{edge_types}": "what you give Graphiti as edge_types is not sent",
    "{previous_episodes}": "the episodes before are not sent",
    "{reference_time}": "the time that you give an episode is not sent",
    "{source_description}": "what you give an episode as source_description is not sent",
}
"""What the library's own prompts send."""

MESSAGE, TEXT, JSON = (f"extract_nodes.extract_{kind}" for kind in ("message", "text", "json"))
EDGE, COMBINED = "extract_edges.edge", "extract_nodes_and_edges.extract_message"

_REQUESTS = {
    MESSAGE: "for the entities of a message",
    TEXT: "for the entities of a text",
    JSON: "for the entities of a JSON episode",
    EDGE: "for the facts of an episode",
    COMBINED: "in add_episode_bulk, unless it is called with use_combined_extraction=False",
}

_NO_PLACE = (
    "Graphiti asks by its own prompts for the dates, attributes, summaries and duplicates of what it extracted: there "
    "are no places for them."
)


def _place(name: str, *, stage: Stage | None = None, needs: tuple[str, ...] = (), may: frozenset[str]) -> Place:
    """A place whose text loses nothing if it has all that the library's own prompt there sends."""
    own = {"{custom_extraction_instructions}"}
    own |= {"{entity_types}"} if name != EDGE else {"{reference_time}"}
    own |= {"{edge_types}"} if name in (EDGE, COMBINED) else set()
    own |= {"{previous_episodes}"} if name not in (TEXT, JSON) else set()
    own |= {"{source_description}"} if name == JSON else set()
    lost = {part: loss for part, loss in _LOST.items() if part in own}
    return Place(name, stage, needs=frozenset({"episode_content", *needs}), may=may, losses=lost)


class GraphitiLibrary(OneFile, NeedsLibrary):
    """A Python module with the prompts as user messages; `{name}` is a key of the context that Graphiti hands over."""

    file = MODULE_FILE
    environment, library = _ENVIRONMENT, GRAPHITI
    places = (
        _place(MESSAGE, stage="extract", may=_ENTITIES),
        _place(TEXT, may=_ENTITIES),
        _place(JSON, may=_ENTITIES),
        _place(EDGE, needs=("nodes",), may=_FACTS),
        _place(COMBINED, may=_FACTS - {"reference_time"} | {"entity_types"}),
    )

    def content(self, candidate: Candidate) -> str:
        """The module."""
        prompts = "".join(f"{place!r}: {literal(text)},\n" for place, text in candidate.items())
        return _MODULE.read_text(encoding="utf-8").format(prompts=prompts)

    def render(self, name: str, values: Mapping[str, str], folder: Path) -> str:
        """One prompt as the module builds it."""
        return self.texts(str(folder))[name].format_map(values)

    def warnings(self, texts: Mapping[str, str]) -> list[str]:
        """Where Graphiti extracts by a prompt of its own."""
        own = [f"{place} ({request})" for place, request in _REQUESTS.items() if place not in texts]
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
