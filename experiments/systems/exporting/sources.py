"""In which form a file, a folder or an address holds prompts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from experiments.systems.exporting.export import FORMAT, MANIFEST
from experiments.systems.exporting.exporter import EXPORTERS, Reads, open_exporter
from tracing.errors import RunError

OWN_FORMS = {"mem0": "mem0@1.0"}
"""System → the exporter that writes for it, where that does not follow from its name."""

_GENERAL = ("rag", "graphiti@0.31", "dspy", "json", "python", "dotenv", "mlflow", "text")


def own_form(system_name: str) -> str | None:
    """The exporter that writes for a system itself: the one of its name, or the only version of that."""
    versions = [name for name in EXPORTERS.names() if name.partition("@")[0] == system_name]
    if system_name in EXPORTERS.names():
        return system_name
    return versions[0] if len(versions) == 1 else OWN_FORMS.get(system_name)


def readable_forms() -> list[str]:
    """The exporters whose forms can be read."""
    return [name for name in EXPORTERS.names() if isinstance(open_exporter(name), Reads)]


def form_of(source: str, own: str | None) -> str:
    """The exporter whose form a source has.

    Args:
        own: the exporter that writes for the system itself, which is asked first.

    Raises:
        RunError: there is no such source, or it has no known form.
    """
    target = _manifest(source).get("target")
    if target in readable_forms():
        return str(target)
    if "://" not in source and not Path(source).exists():
        raise RunError(f"{source}: no such file or folder; give --from what holds the prompts")
    for name in dict.fromkeys((*([own] if own is not None else []), *_GENERAL)):
        exporter = open_exporter(name)
        if isinstance(exporter, Reads) and exporter.recognises(source):
            return name
    raise RunError(f"{source}: prompts in no known form; say which with --format ({', '.join(readable_forms())})")


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
