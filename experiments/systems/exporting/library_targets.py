"""Libraries that read prompts from a known place: a key of a JSON file, or of a module that is written from a template.

A library of this kind is a row of `library_targets.toml`; it needs no code here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from experiments.systems.exporting.formats.constants import literal, python_constants
from experiments.systems.exporting.formats.literal_templates import from_names, with_names
from experiments.systems.exporting.places import Place, place_named
from experiments.systems.exporting.proving import ProvenLibrary, proven_in, sent_by
from experiments.systems.exporting.schema_replies import reply_by_schema
from experiments.systems.exporting.written_files import OneFile, as_json, json_object
from experiments.systems.libraries import NeedsLibrary
from experiments.systems.worker.environment import Environment
from tracing.errors import RunError
from tracing.package_data import packaged_tables, packaged_text
from tracing.systems.prompts import Candidate, placeholders_of, render

_PACKAGE = "experiments.systems.exporting"
_ROWS = packaged_tables(_PACKAGE, "library_targets.toml")
_PROOF = Path(__file__).with_name("library_proof.py")


class LibraryTarget(OneFile, NeedsLibrary):
    """A place is a key of the file (`instructions`), nested at each dot (`search.system_prompt`).

    Attributes:
        row: of the library.
        environment: that has it.
        library: that reads the file.
        places: for prompts.
    """

    row: ClassVar[Mapping[str, Any]]
    environment: ClassVar[Environment]
    library: ClassVar[ProvenLibrary]
    places: tuple[Place, ...]

    def content(self, candidate: Candidate) -> str:
        """The texts in the library's own syntax."""
        texts = {
            place: template if self._formats(placeholders_of(template)) else with_names(template)
            for place, template in candidate.items()
        }
        if "template" in self.row:
            prompts = "".join(f"{place!r}: {literal(text)},\n" for place, text in texts.items())
            return packaged_text(_PACKAGE, self.row["template"]).format(prompts=prompts)
        keys: dict[Any, Any] = {}
        for name, text in texts.items():
            (*outer, key), beside = self._at(name)
            group = keys
            for part in outer:
                named: dict[Any, Any] = dict([part]) if isinstance(part, tuple) else {}
                group = group.setdefault(len(group) if part == "#" else part, named)
            group |= {**beside, key: text}
        return as_json(_with_lists(keys))

    def render(self, name: str, values: Mapping[str, str], folder: Path) -> str:
        """One text as the library sends it."""
        return render(self.template(self.texts(str(folder))[name], values), values)

    def recognises(self, source: str) -> bool:
        """Whether it is a file of this kind with one of the keys, or the folder of an export."""
        path = self.path_in(source)
        try:
            return path.suffix == Path(self.file).suffix and bool(self.texts(source))
        except RunError:
            return False

    def texts(self, source: str) -> dict[str, str]:
        """The texts of a file, by place; nothing of a module is executed."""
        file = str(self.path_in(source))
        if "template" in self.row:
            constants = python_constants(file)
            return {place.name: constants[place.name] for place in self.places if place.name in constants}
        keys = json_object(file)
        return {
            place.name.replace("*", "{}").format(*names): text
            for place in self.places
            for names, text in _found(keys, self._keys(place))
            if all(names)
        }

    def template(self, text: str, placeholders: Collection[str]) -> str:
        """The text as a template of memtune's."""
        return text if self._formats(placeholders) else from_names(text, placeholders)

    def _formats(self, placeholders: Collection[str]) -> bool:
        """Whether a text with these placeholders is filled in by `str.format`."""
        return bool(placeholders) and self.row.get("syntax") == "format"

    def _at(self, name: str) -> tuple[list[Any], Mapping[str, Any]]:
        """The keys to a place, and what stands beside it; a number or a pair is an item of a list."""
        place, chosen = next((place, names) for place in self.places if (names := place.chosen(name)) is not None)
        rest = iter(chosen)
        beside: Mapping[str, Any] = self.row["places"][place.name].get("beside", {})
        return [_key(part, rest) for part in self._keys(place)], beside

    def _keys(self, place: Place) -> list[str]:
        return str(self.row["places"][place.name].get("key", place.name)).split(".")

    @property
    def use(self) -> str:
        """A program that hands the file over; `prove` runs it."""
        return str(self.row["use"])

    def warnings(self, texts: Mapping[str, str]) -> list[str]:
        """Where the library asks by a prompt of its own, and what else its row says."""
        own = [
            f"{place} ({row['request']})"
            for place, row in self.row["places"].items()
            if place not in texts and "request" in row
        ]
        prompts = f"{self.library.package} asks by its own prompts at {', '.join(own)}: no prompt is placed there."
        used = [place for place in self.places if any(place.chosen(name) is not None for name in texts)]
        placed = [self.row["places"][place.name].get("warnings", ()) for place in used]
        return [*([prompts] if own else []), *self.row.get("warnings", ()), *dict.fromkeys(chain(*placed))]

    def prove(self, folder: Path) -> list[str]:
        """Let the library use the file, and find each text in the requests that it sends.

        A request has values in the places of the placeholders, so the texts between them are looked for.
        """
        file = str(folder / self.file)
        payload = {
            "use": self.use,
            "environment": self.row.get("environment", {}),
            "package": self.library.package,
            "prompts": {} if "template" in self.row else json_object(file),
            "exported": str(folder.resolve()),
        }
        reply = partial(reply_by_schema, text=self.row.get("reply", "tea"))
        sent = sent_by(self.library, _PROOF, payload, reply, self.row.get("answer", {}))
        texts = {}
        for name, text in self.texts(file).items():
            if (place := place_named(self.places, name)) is not None:
                texts[name] = _literals(self.template(text, place.needs | place.may))
        return sent.proofs(texts)


def _key(part: str, names: Iterator[str]) -> str | int | tuple[str, str]:
    """A part of a path as a key; of an item that has a name, which of its keys that is, and the name."""
    if part.startswith("["):
        return part[1:-1], next(names)
    return next(names) if part == "*" else int(part) if part.isdigit() else part


def _with_lists(value: Any) -> Any:
    """Dictionaries whose keys are no texts become lists."""
    if not isinstance(value, dict):
        return value
    items = {key: _with_lists(item) for key, item in value.items()}
    return items if any(isinstance(key, str) for key in items) else list(items.values())


def _found(value: Any, path: Sequence[str], names: Sequence[str] = ()) -> Iterator[tuple[Sequence[str], str]]:
    """The texts at a path, each with its names for every `*`."""
    if not path:
        if isinstance(value, str):
            yield names, value
        return
    items = {str(number): item for number, item in enumerate(value)} if isinstance(value, list) else value
    if not isinstance(items, dict):
        return
    key, *rest = path
    for each, item in items.items():
        if key.startswith("["):
            name = item.get(key[1:-1]) if isinstance(item, dict) else None
            if isinstance(name, str):
                yield from _found(item, rest, (*names, name))
        elif key in (each, "#", "*"):
            yield from _found(item, rest, (*names, each) if key == "*" else names)


def _literals(template: str) -> list[str]:
    """The texts before, between and after the placeholders."""
    mark = "\0"
    return render(template, dict.fromkeys(placeholders_of(template), mark)).split(mark)


def _place(name: str, row: Mapping[str, Any], losses: Mapping[str, str]) -> Place:
    return Place(
        name,
        row.get("stage"),
        needs=frozenset(row.get("needs", ())),
        may=frozenset(row.get("may", ())),
        reply=frozenset(row.get("reply", ())),
        markers=tuple(row.get("markers", ())),
        strips=row.get("strips", False),
        longest=row.get("longest", 0),
        losses={f"{{{part}}}": losses[part] for part in row.get("sends", ()) if part in losses},
    )


def library_target(product: str, row: Mapping[str, Any]) -> type[LibraryTarget]:
    """The class of exporters for a row."""
    environment = Environment(f"{product}@{row['version']}", f"{__name__}:{product}", tuple(row["requirements"]))
    package, _, release = row["requirements"][0].partition("==")
    generation = release if release == row["version"] else f"{row['version']}."
    members = {
        "environment": environment,
        "library": proven_in(environment, package.partition("[")[0], generation),
        "row": row,
        "file": row["file"],
        "places": tuple(_place(name, place, row.get("losses", {})) for name, place in row["places"].items()),
    }
    return type(product, (LibraryTarget,), members)


TARGETS: Mapping[str, type[LibraryTarget]] = {product: library_target(product, row) for product, row in _ROWS.items()}
"""Product → the class of its exporters, which an attribute of this module is called, too."""


def __getattr__(name: str) -> type[LibraryTarget]:
    try:
        return TARGETS[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
