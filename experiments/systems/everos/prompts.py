"""The prompts that EverOS 1.5 lets a user replace: contracts, files, how it fills them, and requests read back.

EverOS ships long texts of its own; tuning starts from short ones, or from those with `memtune import-prompts`.
A slot is a YAML file with `enabled` and `template`, which the server reads once, when it starts. It is filled nearly as
`str.format` does, but no brace is refused.
"""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.systems.building_blocks.answering import ANSWER_PROMPT
from experiments.systems.building_blocks.prompt_files import prompts_in
from experiments.systems.building_blocks.structured_replies import object_schema
from tracing.errors import RunError
from tracing.files.opening import read_file
from tracing.files.yaml_text import load_yaml
from tracing.systems.prompts import escaped, placeholders_of, render

_OPEN, _CLOSE = "\0open\0", "\0close\0"


def rendered(text: str, values: Mapping[str, str]) -> str:
    """A slot's text with its values, as EverOS sends it."""
    masked = _masked(text)
    for name, value in values.items():
        masked = masked.replace(f"{{{name}}}", value)
    return masked.replace(_OPEN, "{").replace(_CLOSE, "}")


def as_template(text: str, placeholders: Collection[str]) -> str:
    """A slot's text as a template of memtune's, which gives the same request: a brace that is text is doubled there."""
    names = "|".join(map(re.escape, sorted(placeholders))) or "(?!)"
    parts = re.split(rf"(\{{(?:{names})\}})", _masked(text))
    doubled = (part if at % 2 else escaped(part) for at, part in enumerate(parts))
    return "".join(doubled).replace(_OPEN, "{{").replace(_CLOSE, "}}")


def reads_alike(text: str) -> Sequence[str]:
    """What is wrong with a template's braces for EverOS."""
    try:
        values = {name: f"<{name}>" for name in placeholders_of(text)}
    except ValueError:
        return ()  # the contract says so itself
    if rendered(text, values) != render(text, values):
        return ("EverOS reads braces beside a placeholder otherwise; put a blank between them",)
    return ()


def _masked(text: str) -> str:
    return text.replace("{{", _OPEN).replace("}}", _CLOSE)


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
    """The text of a slot; None if it is not enabled or empty, so that EverOS uses its own."""
    import yaml

    try:
        slot = load_yaml(read_file(path).decode())
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise RunError(f"{path}: cannot be read ({reason}); give a prompt slot of EverOS") from None
    template = slot.get("template") if isinstance(slot, Mapping) else None
    if not isinstance(slot, Mapping) or not isinstance(template, str | None):
        raise RunError(f"{path}: no prompt slot of EverOS: `enabled` and a text as `template` are expected")
    return template if slot.get("enabled", False) and template and template.strip() else None


FACTS_SCHEMA = object_schema(
    atomic_facts=object_schema(
        time={"type": "string", "maxLength": 40},
        atomic_fact={"type": "array", "items": {"type": "string", "maxLength": 200}, "maxItems": 12},
    )
)
"""The reply to EverOS's own request for the facts of an episode, whose prompt has no slot."""

_SLOTS = prompts_in(Path(__file__).with_name("prompts.toml"), rules=(reads_alike,))
SLOTS = tuple(_SLOTS)
PROMPTS = {**_SLOTS, "answer": ANSWER_PROMPT}


class PromptRequest:
    """The requests that a prompt makes, from which the values of its placeholders can be read."""

    def __init__(self, template: str) -> None:
        names: set[str] = set()
        pattern = ""
        for literal, name, _, _ in string.Formatter().parse(template):
            pattern += re.escape(literal)
            if name is not None:
                pattern += f"(?P={name})" if name in names else f"(?P<{name}>.*?)"
                names.add(name)
        self._pattern = re.compile(pattern, re.DOTALL)

    def values(self, text: str) -> dict[str, str] | None:
        """The values in a request; None if it is not of this prompt."""
        match = self._pattern.fullmatch(text)
        return None if match is None else match.groupdict()
