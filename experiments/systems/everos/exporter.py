"""EverOS's own form of its prompts: the YAML files of its two slots, and the proof that the server sends them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from experiments.systems.everos import proof
from experiments.systems.everos.prompts import FOLDER, PROMPTS, SLOTS, as_template, read_slot, rendered, write_slots
from experiments.systems.everos.server import LIBRARY
from experiments.systems.everos.system import EverOs
from experiments.systems.exporting.proving import result_of
from experiments.systems.worker.isolated import own_environment
from tracing.errors import RunError
from tracing.systems.baseline import check_baseline
from tracing.systems.prompts import Candidate, render

ANSWER_FILE = "answer.txt"


class EverOsSlots:
    """`prompt_slots/NAME.yaml`, for the folder `config` of the package everos, and the answer prompt beside it."""

    prompts = frozenset(PROMPTS)

    def write(self, candidate: Candidate, folder: Path) -> dict[str, str]:
        """Write the slots as YAML and the answer prompt, which EverOS has no slot for, as a template."""
        check_baseline(PROMPTS, candidate)
        write_slots({name: candidate[name] for name in SLOTS}, folder / FOLDER)
        (folder / ANSWER_FILE).write_text(candidate["answer"], encoding="utf-8", newline="")
        return {**{name: f"{FOLDER}/{name}.yaml" for name in SLOTS}, "answer": ANSWER_FILE}

    def render(self, name: str, values: Mapping[str, str], folder: Path) -> str:
        """One prompt as EverOS sends it; the answer's as the user of the export does."""
        if name == "answer":
            return render((folder / ANSWER_FILE).read_bytes().decode(), values)
        return rendered(read_slot(folder / FOLDER / f"{name}.yaml") or "", values)

    def prove(self, folder: Path) -> list[str]:
        """See `proof.prove`; in the environment of EverOS, unless it is installed here."""
        return list(_result({"folder": str(folder.absolute())}))

    def defaults(self) -> Mapping[str, str]:
        """The texts that EverOS ships, by slot. See `proof.shipped`, and `prove`."""
        return dict(_result({}))

    def recognises(self, source: str) -> bool:
        """Whether it is a folder of slots, has one, or is a file of one."""
        return any((_slots_in(source) / f"{name}.yaml").is_file() for name in SLOTS)

    def texts(self, source: str) -> dict[str, str]:
        """The texts that an EverOS with these slots sends: where one is not enabled, the one that it ships."""
        if not self.recognises(source):
            raise RunError(
                f"{source}: no {' or '.join(f'{name}.yaml' for name in SLOTS)}; give the folder of the slots"
            )
        files = {name: _slots_in(source) / f"{name}.yaml" for name in SLOTS}
        texts = {name: read_slot(path) if path.is_file() else None for name, path in files.items()}
        own = self.defaults() if None in texts.values() else {}
        return {name: own[name] if text is None else text for name, text in texts.items()}

    def template(self, text: str, placeholders: Collection[str]) -> str:
        """A slot's text as a template of memtune's."""
        return as_template(text, placeholders)


def _result(payload: Mapping[str, str]) -> Any:
    return result_of(Path(proof.__file__), payload, LIBRARY, own_environment(EverOs))


def _slots_in(source: str) -> Path:
    folder = Path(source).parent if Path(source).is_file() else Path(source)
    return folder / FOLDER if (folder / FOLDER).is_dir() else folder
