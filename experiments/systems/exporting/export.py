"""Exports tuned prompts in the form of the system that will use them, with a manifest that gives their origin."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from experiments.systems.exporting.exporter import (
    EXPORTERS,
    Exporter,
    HasPlaces,
    HoldsOnly,
    Proves,
    ShowsUse,
    Warns,
    open_exporter,
    version_of,
)
from experiments.systems.exporting.forms import TextFiles
from experiments.systems.exporting.places import check_fit, losses, placed
from experiments.systems.exporting.written_files import as_json, json_object, json_or_yaml, whole_folder, write_text
from tracing.errors import ConfigError, ContractError, MemtuneError, RunError
from tracing.formats import FORMATS
from tracing.plugins import is_object
from tracing.recording.redaction import excerpt
from tracing.suggestions import did_you_mean
from tracing.systems.baseline import with_baseline
from tracing.systems.description import describe
from tracing.systems.prompts import Candidate, baseline_candidate, check_candidate, placeholders_of, render
from tracing.systems.protocol import MemorySystem
from tracing.systems.registry import open_system

MANIFEST = "manifest.json"
FORMAT, VERSION = "memtune-export", FORMATS["export"]

_LONGEST = 300


def export(
    system_name: str,
    candidate: Candidate,
    target: str,
    out: Path,
    manifest: Mapping[str, Any],
    *,
    verify: bool = False,
    model: str | None = None,
    settings: Mapping[str, Any] | None = None,
    mapping: Mapping[str, str] | None = None,
    baseline: Candidate | None = None,
    into: Path | None = None,
) -> Path:
    """Write `candidate` to the new folder `out` in the form of `target`, with `manifest.json` beside it.

    The files are read back and rendered with awkward values. Only if this gives the same as the candidate does the
    folder appear, all at once.

    Args:
        manifest: the origin of the prompts (run, models, scores, caveats); hashes, format, version and warnings are
            added.
        verify: load the files in the library they are for, and add to the manifest where it sends the prompts.
        model: the model that the prompts will be used with; None if unknown.
        settings: of the system, if it cannot be made without.
        mapping: prompt → the target's place for it, for a target with places of its own. A prompt without a place is
            written beside as a text file.
        baseline: the prompts that the candidate was tuned from, if they are not the system's own.
        into: a user's own configuration, JSON or YAML; a copy of it with the target's keys is written beside, without
            the prompts that the configuration of the run has by itself.

    Raises:
        ContractError: a prompt breaks its contract, does not fit its place, reads back differently, or is not sent by
            the library.
        RunError: the target is unknown, does not fit the system's prompts or has no library to verify it in, or `out`
            cannot be written, or `into` has no place for them.
        ConfigError: no such system or exporter, or the library to verify in is not installed.
    """
    system = system_as_is = open_system(system_name, settings)
    if baseline is not None and baseline != baseline_candidate(system.prompts):
        system = with_baseline(system, baseline)
    target = known_target(target, lambda: _fitting(system_name, system))
    exporter = _holding(system_name, system, target)
    if verify and not isinstance(exporter, Proves):
        raise RunError(f"--verify: {target} is for no library that can check it; export without --verify")
    check_candidate(system.prompts, candidate)
    at = _places(exporter, target, system_name, system, mapping or {})
    if isinstance(exporter, HasPlaces):
        check_fit(target, exporter.places, system.prompts, candidate, at)
    with whole_folder(out) as folder:
        files = _files(exporter, candidate, at, folder)
        own_texts: list[str] = []
        if into is not None:
            own = baseline_candidate(system_as_is.prompts) if (settings or {}).get("config") else {}
            sent_as_is = {place for name, place in at.items() if candidate[name] == own.get(name)}
            own_texts = _fill_in(into, {files[name] for name in at}, sent_as_is, target, folder)
        prompts = {
            name: {
                "file": files[name],
                **({"place": at[name]} if isinstance(exporter, HasPlaces) and name in at else {}),
                "sha256": hashlib.sha256(text.encode()).hexdigest(),
            }
            for name, text in candidate.items()
        }
        origin = {
            **manifest,
            "format": FORMAT,
            "version": VERSION,
            "target": target,
            "system": system_name,
            "system_version": describe(system).version,
            "prompts": prompts,
            **({"use": exporter.use.strip().splitlines()} if isinstance(exporter, ShowsUse) else {}),
            "warnings": [
                *origin_warnings(manifest, model),
                *_without_a_place(target, at, candidate, manifest),
                *_of_the_library(exporter, target, at, candidate),
                *own_texts,
            ],
            "verified": _proven(exporter, folder) if verify else [],
        }
        write_text(folder / MANIFEST, as_json(origin))
    return out


def _places(
    exporter: Exporter, target: str, system_name: str, system: MemorySystem, mapping: Mapping[str, str]
) -> dict[str, str]:
    """Prompt → the name that the exporter knows it by."""
    if isinstance(exporter, HasPlaces):
        return placed(target, exporter.places, system_name, system, mapping)
    if mapping:
        raise RunError(f"--map: {target} keeps the names of the prompts; leave it out")
    return {name: name for name in system.prompts}


def _files(exporter: Exporter, candidate: Candidate, at: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Write all prompts, those without a place as text files; prompt → file."""
    placed_files = written(exporter, {place: candidate[name] for name, place in at.items()}, folder)
    others = {name: text for name, text in candidate.items() if name not in at}
    return {**{name: placed_files[place] for name, place in at.items()}, **written(TextFiles(), others, folder)}


def _fill_in(source: Path, files: set[str], left_out: set[str], target: str, folder: Path) -> list[str]:
    """Write a copy of a user's configuration with the keys of the target's file, which hold the prompts, but some.

    Returns:
        A warning for each of those that the configuration sets otherwise.
    """
    (file,) = files if len(files) == 1 else ("",)
    config = json_or_yaml(source)
    if not file.endswith(".json") or not isinstance(config, dict):
        raise RunError(f"--into {source}: {target} writes no keys that a file of this form can hold; leave it out")
    kept: list[str] = []
    filled = _filled(config, json_object(str(folder / file)), left_out, kept, f"--into {source}")
    as_yaml = source.suffix != ".json"
    text = yaml.safe_dump(filled, sort_keys=False, allow_unicode=True) if as_yaml else as_json(filled)
    write_text(folder / source.name, text)
    return [
        f"{source.name} keeps its own {key}, which is not the text that these prompts were measured with."
        for key in kept
    ]


def _filled(
    config: Mapping[str, Any], keys: Mapping[str, Any], left_out: set[str], kept: list[str], file: str, outer: str = ""
) -> dict[str, Any]:
    """A configuration with these keys, also within its groups; `kept` gets those left out that it sets otherwise."""
    filled = dict(config)
    for key, value in keys.items():
        place, own = f"{outer}{key}", config.get(key)
        if place in left_out:
            if own not in (None, value):
                kept.append(place)
        elif isinstance(value, Mapping) and isinstance(own, Mapping):
            filled[key] = _filled(own, value, left_out, kept, file, f"{place}.")
        elif isinstance(value, list) and own:
            raise RunError(f"{file}: {place} is set there, and prompts are items of that list; export without --into")
        else:
            filled[key] = value
    return filled


def _proven(exporter: Exporter, folder: Path) -> list[str]:
    assert isinstance(exporter, Proves)  # noqa: S101 (checked before anything was written)
    with own_errors("prove"):
        return list(exporter.prove(folder))


def _without_a_place(
    target: str, at: Mapping[str, str], candidate: Candidate, manifest: Mapping[str, Any]
) -> list[str]:
    tuned = manifest.get("tuned")
    return [
        f"{target} has no place for the prompt {name}: it is in {name}.txt, for your program to send."
        for name in candidate
        if name not in at and (tuned is None or name in tuned)
    ]


def _of_the_library(exporter: Exporter, target: str, at: Mapping[str, str], candidate: Candidate) -> list[str]:
    lost = losses(target, exporter.places, candidate, at) if isinstance(exporter, HasPlaces) else []
    if not isinstance(exporter, Warns):
        return lost
    with own_errors("warnings"):
        return [*lost, *exporter.warnings({place: candidate[name] for name, place in at.items()})]


def _holding(system_name: str, system: MemorySystem, target: str) -> Exporter:
    """The exporter named `target`, if it can hold the system's prompts."""
    exporter = open_exporter(target)
    if isinstance(exporter, HoldsOnly) and set(exporter.prompts) != set(system.prompts):
        prompts = ", ".join(sorted(exporter.prompts))
        raise RunError(
            f"--to {target}: holds the prompts {prompts}, but {system_name} has {', '.join(system.prompts)}; "
            f"{_fitting(system_name, system)}"
        )
    return exporter


def known_target(target: str, fitting: Callable[[], str]) -> str:
    """The name of an exporter with its version; without one (`langmem`) it is the only version that there is."""
    full_name = target if is_object(target) else version_of(target)
    if full_name is not None:
        return full_name
    name, _, version = target.partition("@")
    versions = [choice for choice in EXPORTERS.names() if choice.startswith(f"{name}@")]
    if not versions:
        near = did_you_mean(target, EXPORTERS.names())
        raise RunError(f"--to {target}: unknown target{near}; {fitting()}, or by your own as module:Object")
    if version:
        raise RunError(f"--to {target}: unknown version; choose one of {', '.join(versions)}")
    raise RunError(f"--to {target}: which version? choose one of {', '.join(versions)}")


def _fitting(system_name: str, system: MemorySystem) -> str:
    names = []
    for name in EXPORTERS.names():
        # Leave out a broken one, and one that the baseline prompts do not fit; naming it gives the reason.
        with contextlib.suppress(ConfigError, RunError, ContractError):
            exporter = open_exporter(name)
            at = _places(exporter, name, system_name, system, {})
            if isinstance(exporter, HasPlaces):
                check_fit(name, exporter.places, system.prompts, baseline_candidate(system.prompts), at)
            if not isinstance(exporter, HoldsOnly) or set(exporter.prompts) == set(system.prompts):
                names.append(name)
    return f"{system_name} can be exported to: {', '.join(names)}"


def origin_warnings(manifest: Mapping[str, Any], model: str | None) -> list[str]:
    """What the origin of prompts says to those who use them with a model; None if that is unknown."""
    warnings = list(manifest.get("caveats", ()))
    tuned = manifest.get("model")
    if tuned and model != tuned and manifest.get("tuned") != []:
        used = "another model" if model is None else model
        warnings.append(
            f"These prompts were tuned on {tuned}: with {used}, measure them again before you rely on them."
        )
    return warnings


def written(exporter: Exporter, candidate: Candidate, folder: Path) -> dict[str, str]:
    """Let an exporter write a candidate into an empty folder, and read it back as its reader will.

    Returns:
        The file of each prompt.

    Raises:
        ContractError: a prompt is in no file of the folder, or reads back differently.
        RunError: the exporter raised its own error.
    """
    with own_errors("write"):
        files = dict(exporter.write(candidate, folder))
    inside = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    for name, text in candidate.items():
        if files.get(name) not in inside:
            raise ContractError(
                f"{name}: the exporter wrote it into no file of the folder (it names {files.get(name)})"
            )
        values = {place: f"${place} {{{place}}} $$ \\ % é\n" for place in placeholders_of(text)}
        with own_errors("render"):
            rendered = exporter.render(name, values, folder)
        if rendered != render(text, values):
            raise ContractError(f"{name}: the exported prompt reads back differently, so its reader would send another")
    return {name: files[name] for name in candidate}


@contextlib.contextmanager
def own_errors(method: str) -> Iterator[None]:
    """Tell an exporter's own exception in one line.

    Raises:
        RunError: it raised something that is no error of memtune's or of the system's.
    """
    try:
        yield
    except (MemtuneError, OSError):
        raise
    except Exception as error:
        reason = excerpt(" ".join(f"{type(error).__name__}: {error}".split()), _LONGEST)
        raise RunError(f"the exporter failed in {method}: {reason}") from error
