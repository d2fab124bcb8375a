"""EverOS's prompt slots: YAML files with `enabled` and `template`, which the server reads once, when it starts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tracing.errors import RunError

FOLDER = "prompt_slots"


def write_slots(texts: Mapping[str, str], folder: Path) -> None:
    """Write a file `NAME.yaml` for each slot into `folder`."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes texts as blocks wherever YAML can hold them so."""

    def as_block(dumper: yaml.SafeDumper, text: str) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    Dumper.add_representer(str, as_block)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        slot = {"enabled": True, "template": text}
        written = yaml.dump(slot, Dumper=Dumper, allow_unicode=True, sort_keys=False, width=2**30)
        (folder / f"{name}.yaml").write_text(written, encoding="utf-8", newline="")


def read_slot(path: Path) -> str | None:
    """The text of a slot; None if it is not enabled or empty, so that EverOS uses its own.

    Raises:
        RunError: it cannot be read, or is no slot.
    """
    import yaml

    try:
        slot = yaml.safe_load(path.read_bytes().decode())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise RunError(f"{path}: cannot be read ({reason}); give a prompt slot of EverOS") from None
    template = slot.get("template") if isinstance(slot, Mapping) else None
    if not isinstance(slot, Mapping) or not isinstance(template, str | None):
        raise RunError(f"{path}: no prompt slot of EverOS: `enabled` and a text as `template` are expected")
    return template if slot.get("enabled", False) and template and template.strip() else None
