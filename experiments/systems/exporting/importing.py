"""Reads the prompts that a system uses today, as the start of a run: its library's own, or those of a user's files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.systems.exporting.export import FORMAT, MANIFEST, own_errors
from experiments.systems.exporting.exporter import (
    EXPORTERS,
    Exporter,
    HasDefaults,
    HasPlaces,
    Reads,
    open_exporter,
    version_of,
)
from experiments.systems.exporting.formats.constants import constant_of
from experiments.systems.exporting.forms import TextFiles
from experiments.systems.exporting.places import likeliest, of_stage
from experiments.systems.exporting.written_files import whole_folder
from tracing.errors import ContractError, RunError
from tracing.systems.baseline import fitted
from tracing.systems.prompts import baseline_candidate
from tracing.systems.protocol import MemorySystem
from tracing.systems.registry import open_system


@dataclass(frozen=True, slots=True)
class ImportedPrompts:
    """What was read.

    Attributes:
        candidate: a text for each prompt of the system.
        names: prompt → its name in the source. A prompt that is not here has the system's own text.
        form: the exporter whose form the source has; None for the system's own.
    """

    candidate: Mapping[str, str]
    names: Mapping[str, str]
    form: str | None


def import_prompts(
    system_name: str,
    source: str | None,
    *,
    form: str | None = None,
    mapping: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> ImportedPrompts:
    """The prompts of `source` as those of a system; without one, those that its library uses by default.

    Args:
        source: file, folder or address; None for the user's own configuration, if the settings name its file
            (`config`), and else for the defaults.
        form: the exporter whose form it has; by default that of the export's manifest, or the first that recognises it.
        mapping: prompt → its name there, instead of the names that are looked for.
        settings: of the system, if it cannot be made without.

    Raises:
        RunError: the source cannot be read, is in no known form, or has none of the prompts.
        ContractError: a text breaks the contract of its prompt.
        ConfigError: no such system or form, or the library is not installed.
    """
    system = open_system(system_name, settings)
    own = own_form(system_name)
    exporter = open_exporter(own) if own is not None else None
    file = (settings or {}).get("config")
    # A configuration that sets no prompt leaves the library's.
    if source is None and isinstance(file, str) and isinstance(exporter, Reads) and exporter.recognises(file):
        source = file
    if source is None:
        if not isinstance(exporter, HasDefaults):
            return ImportedPrompts(baseline_candidate(system.prompts), {}, None)
        with own_errors("defaults"):
            texts = dict(exporter.defaults())
        return _Reading(system_name, system, "its library", exporter, texts).all(mapping or {}, own)
    form = form_of(source, own) if form is None else version_of(form) or form
    exporter = open_exporter(form)
    if not isinstance(exporter, Reads):
        raise RunError(f"--format {form}: no prompts can be read from it; choose one of {', '.join(readable_forms())}")
    with own_errors("texts"):
        files = [source] if exporter.recognises(source) else files_of(source)
        texts = {name: text for file in files for name, text in exporter.texts(file).items()}
    reading = _Reading(system_name, system, source, exporter, texts)
    return reading.all(mapping or {}, form)


def write_prompts(imported: ImportedPrompts, out: Path) -> None:
    """Write a file `NAME.txt` for each prompt into the new folder `out`, all at once."""
    with whole_folder(out) as folder:
        TextFiles().write(imported.candidate, folder)


@dataclass(frozen=True, slots=True)
class _Reading:
    """The texts of a source, for the prompts of a system."""

    system_name: str
    system: MemorySystem
    source: str
    exporter: Exporter
    texts: Mapping[str, str]

    def all(self, mapping: Mapping[str, str], form: str | None) -> ImportedPrompts:
        names = self._names(mapping)
        candidate, problems = {}, []
        for prompt, name in names.items():
            contract = self.system.prompts[prompt].contract
            try:
                text = self.texts[name]
                with own_errors("template"):
                    candidate[prompt] = (
                        self.exporter.template(text, contract.placeholders)
                        if isinstance(self.exporter, Reads)
                        else text
                    )
                violations = fitted(contract, text).violations(candidate[prompt])
            except ContractError as error:
                violations = [str(error)]
            problems += [f"{prompt} ({name}): {problem}" for problem in violations]
        if problems:
            raise ContractError(f"{self.source}: {'; '.join(problems)}")
        beside = self._beside()
        names |= {prompt: f"{prompt}.txt" for prompt in beside if prompt not in names}
        return ImportedPrompts({**baseline_candidate(self.system.prompts), **beside, **candidate}, names, form)

    def _beside(self) -> dict[str, str]:
        """The prompts that an export wrote beside, since the target has no place for them."""
        if not Path(self.source).is_dir():
            return {}
        return {name: text for name, text in TextFiles().texts(self.source).items() if name in self.system.prompts}

    def _names(self, mapping: Mapping[str, str]) -> dict[str, str]:
        """Prompt → its name in the source."""
        there = ", ".join(self.texts) or "no prompts"
        for prompt, name in mapping.items():
            if prompt not in self.system.prompts:
                prompts = ", ".join(self.system.prompts)
                raise RunError(f"--map {prompt}={name}: {self.system_name} has no such prompt; it has {prompts}")
            if name not in self.texts:
                raise RunError(f"--map {prompt}={name}: {self.source} has no such text; it has {there}")
        names = dict(mapping)
        for prompt in self.system.prompts:
            fitting = [name for name in self._looked_for(prompt) if name in self.texts]
            if fitting:
                names.setdefault(prompt, fitting[0])
        if not names:
            raise RunError(
                f"{self.source}: has {there}, but {self.system_name} has the prompts {', '.join(self.system.prompts)}; "
                "say which is which with --map PROMPT=NAME"
            )
        return {prompt: names[prompt] for prompt in self.system.prompts if prompt in names}

    def _looked_for(self, prompt: str) -> Iterator[str]:
        """Names that a prompt may have in a source, the likeliest first."""
        exported = places_of(self.source)
        if prompt in exported:
            there = exported[prompt]
            if there is not None:
                yield there
            return
        if isinstance(self.exporter, HasPlaces):
            spec = self.system.prompts[prompt]
            for place in self.exporter.places:
                alone = place.stage is not None and of_stage(self.system, place.stage) == [prompt]
                if alone and place in likeliest(self.exporter.places, spec, place.stage):
                    yield place.name
        yield prompt
        yield constant_of(prompt)
        yield f"{prompt}.predict"
        yield f"memtune.{self.system_name}.{prompt}"


OWN_FORMS = {"mem0": "mem0@1.0"}
"""System → the exporter that writes for it, where that does not follow from its name."""

_GENERAL = ("rag", "graphiti@0.31", "dspy", "json", "python", "dotenv", "mlflow", "text")


def own_form(system_name: str) -> str | None:
    """The exporter that writes for a system itself: the one of its name, or the only version of that."""
    return version_of(system_name) or OWN_FORMS.get(system_name)


def readable_forms() -> list[str]:
    """The exporters whose forms can be read."""
    return [name for name in EXPORTERS.names() if isinstance(open_exporter(name), Reads)]


def form_of(source: str, own: str | None) -> str:
    """The exporter whose form a source has."""
    target = _manifest(source).get("target")
    if target in readable_forms():
        return str(target)
    if "://" not in source and not Path(source).exists():
        raise RunError(f"{source}: no such file or folder; give --from what holds the prompts")
    for name in dict.fromkeys((*([own] if own is not None else []), *_GENERAL)):
        exporter = open_exporter(name)
        if isinstance(exporter, Reads) and exporter.recognises(source):
            return name
    raise RunError(
        f"{source}: no prompts, or prompts in no known form; say which with --format ({', '.join(readable_forms())}), "
        "or leave out --from for those that the library itself uses"
    )


def files_of(source: str) -> list[str]:
    """The files of an export that is named by its folder, without those beside; any other source itself."""
    files = [str(entry.get("file")) for entry in _manifest(source).get("prompts", {}).values()]
    together = dict.fromkeys(name for name in files if not name.endswith(".txt"))
    return [str(Path(source) / name) for name in together] or [source]


def places_of(source: str) -> dict[str, str | None]:
    """Prompt → the place that it was exported to, None if it is beside; empty for what is no export with places."""
    prompts = _manifest(source).get("prompts", {})
    places = {name: str(entry["place"]) if "place" in entry else None for name, entry in prompts.items()}
    return places if any(places.values()) else {}


def _manifest(source: str) -> dict[str, Any]:
    """The manifest of an export's folder; empty for anything else."""
    try:
        manifest = json.loads((Path(source) / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return {}
    prompts = manifest.get("prompts") if isinstance(manifest, dict) and manifest.get("format") == FORMAT else None
    return manifest if isinstance(prompts, dict) and all(isinstance(entry, dict) for entry in prompts.values()) else {}
