"""Memori's own form of its prompts: an augmentation to register in place of its cloud's, and its text beside it."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from experiments.systems.memori import augmentation, proof
from experiments.systems.memori.augmentation import PROMPTS_FILE
from experiments.systems.memori.ingestion import PROMPTS
from experiments.systems.memori.library import LIBRARY
from experiments.systems.memori.proof import AUGMENTATION_FILE
from experiments.systems.memori.system import Memori
from experiments.systems.worker.environment import result_of
from experiments.systems.worker.isolated import own_environment
from tracing.errors import RunError
from tracing.systems.prompts import Candidate, render
from tracing.systems.seeding import check_seeds


class MemoriAugmentation:
    """`memori_augmentation.py`, which needs no memtune, and `memori.json` with its prompt and the answer's."""

    prompts = frozenset(PROMPTS)

    def write(self, candidate: Candidate, folder: Path) -> dict[str, str]:
        """Write both files.

        Raises:
            ContractError: a text would not do what its prompt is for.
        """
        check_seeds(PROMPTS, candidate)
        text = json.dumps(dict(candidate), indent=2, ensure_ascii=False) + "\n"
        (folder / PROMPTS_FILE).write_text(text, encoding="utf-8", newline="")
        (folder / AUGMENTATION_FILE).write_bytes(Path(augmentation.__file__).read_bytes())
        return dict.fromkeys(candidate, PROMPTS_FILE)

    def render(self, name: str, values: dict[str, str], folder: Path) -> str:
        """A prompt with its values, as `str.format` gives it."""
        return render(self.texts(str(folder / PROMPTS_FILE))[name], values)

    def prove(self, folder: Path) -> list[str]:
        """See `proof.prove`; in the environment of Memori, unless it is installed here."""
        if LIBRARY.is_here():
            return proof.prove(folder)
        return list(result_of(proof.__name__, [str(folder.absolute())], own_environment(Memori)))

    def recognises(self, source: str) -> bool:
        """Whether it is a `memori.json`, or a folder with one."""
        return _file_in(source).is_file() and _file_in(source).name == PROMPTS_FILE

    def texts(self, source: str) -> dict[str, str]:
        """The prompts in a `memori.json`.

        Raises:
            RunError: it cannot be read, or is not a JSON object of texts.
        """
        try:
            texts = json.loads(_file_in(source).read_bytes())
        except (OSError, ValueError) as error:
            raise RunError(f"{source}: cannot be read ({error}); give a {PROMPTS_FILE} that memtune exported") from None
        if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
            raise RunError(f"{source}: not a JSON object of texts; give a {PROMPTS_FILE} that memtune exported")
        return texts

    def template(self, text: str, placeholders: Collection[str]) -> str:
        """The text itself."""
        return text


def _file_in(source: str) -> Path:
    path = Path(source)
    return path / PROMPTS_FILE if path.is_dir() else path
