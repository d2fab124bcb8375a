"""Exports tuned prompts in the form of the system that will use them, with a manifest that gives their origin."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tracing.doors import is_object
from tracing.errors import ConfigError, ContractError, MemtuneError, RunError
from tracing.recording.redaction import excerpt
from tracing.systems.description import describe
from tracing.systems.exporting.exporter import EXPORTERS, Exporter, HoldsOnly, Proves, open_exporter
from tracing.systems.prompts import Candidate, PromptSpec, check_candidate, placeholders_of, render
from tracing.systems.registry import open_system

MANIFEST = "manifest.json"
FORMAT, VERSION = "memtune-export", 1

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

    Raises:
        ContractError: a prompt breaks its contract, reads back differently, or is not sent by the library.
        RunError: the target is unknown, does not fit the system's prompts or has no library to verify it in, or `out`
            cannot be written.
        ConfigError: no such system or exporter, or the library to verify in is not installed.
    """
    system = open_system(system_name, settings)
    exporter = exporter_for(system_name, system.prompts, target)
    if verify and not isinstance(exporter, Proves):
        raise RunError(f"--verify: {target} is for no library that can check it; export without --verify")
    check_candidate(system.prompts, candidate)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunError(f"{out}: exists already; give --out a new folder")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as scratch:
            folder = Path(scratch) / "export"
            folder.mkdir()
            files = written(exporter, candidate, folder)
            prompts = {
                name: {"file": files[name], "sha256": hashlib.sha256(text.encode()).hexdigest()}
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
                "warnings": _warnings(manifest, model),
                "verified": exporter.prove(folder) if verify and isinstance(exporter, Proves) else [],
            }
            text = json.dumps(origin, indent=2, ensure_ascii=False) + "\n"
            (folder / MANIFEST).write_text(text, encoding="utf-8", newline="")
            if out.exists():
                out.rmdir()
            os.replace(folder, out)
    except OSError as error:
        raise RunError(
            f"{error.filename or out}: cannot be written ({error.strerror}); give --out another folder"
        ) from None
    return out


def exporter_for(system_name: str, prompts: Mapping[str, PromptSpec], target: str) -> Exporter:
    """The exporter named `target`, if it can hold exactly these prompts.

    Raises:
        RunError: it is unknown or cannot hold them; the message names those that can.
        ConfigError: it cannot be imported or made, or is not an exporter.
    """
    if target not in EXPORTERS.names() and not is_object(target):
        fitting = _fitting(system_name, prompts)
        raise RunError(f"--to {target}: unknown target; {fitting}, or by your own as module:Object")
    exporter = open_exporter(target)
    if not _holds(exporter, prompts):
        held = ", ".join(sorted(exporter.prompts)) if isinstance(exporter, HoldsOnly) else ""
        raise RunError(
            f"--to {target}: holds the prompts {held}, but {system_name} has {', '.join(prompts)}; "
            f"{_fitting(system_name, prompts)}"
        )
    return exporter


def _fitting(system_name: str, prompts: Mapping[str, PromptSpec]) -> str:
    names = []
    for name in EXPORTERS.names():
        # Leave out a broken one; naming it gives the reason.
        with contextlib.suppress(ConfigError):
            if _holds(open_exporter(name), prompts):
                names.append(name)
    return f"{system_name} can be exported to: {', '.join(names)}"


def _holds(exporter: Exporter, prompts: Mapping[str, PromptSpec]) -> bool:
    return not isinstance(exporter, HoldsOnly) or set(exporter.prompts) == set(prompts)


def _warnings(manifest: Mapping[str, Any], model: str | None) -> list[str]:
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
    with _own_errors("write"):
        files = dict(exporter.write(candidate, folder))
    inside = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    for name, text in candidate.items():
        if files.get(name) not in inside:
            raise ContractError(
                f"{name}: the exporter wrote it into no file of the folder (it names {files.get(name)})"
            )
        values = {place: f"${place} {{{place}}} $$ \\ % é\n" for place in placeholders_of(text)}
        with _own_errors("render"):
            rendered = exporter.render(name, values, folder)
        if rendered != render(text, values):
            raise ContractError(f"{name}: the exported prompt reads back differently, so its reader would send another")
    return {name: files[name] for name in candidate}


@contextlib.contextmanager
def _own_errors(method: str) -> Iterator[None]:
    try:
        yield
    except (MemtuneError, OSError):
        raise
    except Exception as error:
        said = excerpt(" ".join(f"{type(error).__name__}: {error}".split()), _LONGEST)
        raise RunError(f"the exporter failed in {method}: {said}") from error
