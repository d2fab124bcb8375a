"""Memori's own form of its prompts: an augmentation to register in place of its cloud's, and its text beside it."""

from __future__ import annotations

from pathlib import Path

from experiments.systems.exporting.proving import result_of
from experiments.systems.exporting.written_files import OneFile, as_json, json_object
from experiments.systems.memori import augmentation, proof
from experiments.systems.memori.augmentation import PROMPTS_FILE
from experiments.systems.memori.ingestion import PROMPTS
from experiments.systems.memori.library import LIBRARY
from experiments.systems.memori.proof import AUGMENTATION_FILE
from experiments.systems.memori.system import Memori
from experiments.systems.worker.isolated import own_environment
from tracing.errors import RunError
from tracing.systems.baseline import check_baseline
from tracing.systems.prompts import Candidate


class MemoriAugmentation(OneFile):
    """`memori_augmentation.py`, which needs no memtune, and `memori.json` with its prompt and the answer's."""

    prompts, file = frozenset(PROMPTS), PROMPTS_FILE

    def content(self, candidate: Candidate) -> str:
        """The prompts."""
        check_baseline(PROMPTS, candidate)
        return as_json(candidate)

    def write(self, candidate: Candidate, folder: Path) -> dict[str, str]:
        """Write both files."""
        files = super().write(candidate, folder)
        (folder / AUGMENTATION_FILE).write_bytes(Path(augmentation.__file__).read_bytes())
        return files

    def prove(self, folder: Path) -> list[str]:
        """See `proof.prove`; in the environment of Memori, unless it is installed here."""
        payload = {"folder": str(folder.absolute())}
        return list(result_of(Path(proof.__file__), payload, LIBRARY, own_environment(Memori)))

    def texts(self, source: str) -> dict[str, str]:
        """The prompts in a `memori.json`."""
        texts = json_object(str(self.path_in(source)))
        if not all(isinstance(text, str) for text in texts.values()):
            raise RunError(f"{source}: not a JSON object of texts; give a {PROMPTS_FILE} that memtune exported")
        return texts
