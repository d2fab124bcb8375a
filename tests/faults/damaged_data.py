"""Data sets of each layout, of which one file is damaged and the others are sound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from damage import Damage, in_json, in_lines, in_text
from data_files import SOUND

from experiments.data.dataset_reader import Reading, Reports
from experiments.data.datasets import DATASETS, checked
from tracing.errors import MemtuneError


@dataclass(frozen=True)
class DamagedData:
    """A data set and the file of it that is damaged.

    Attributes:
        dataset: its name.
        made: path of the file in the sound data.
        damage: how it is damaged.
        folder: whether the data set is a folder.
    """

    dataset: str
    made: str
    damage: Damage
    folder: bool = True

    @property
    def file(self) -> str:
        """The file's name where it is read."""
        return Path(self.made).name

    def sound(self) -> Sequence[bytes]:
        """The sound content of the file."""
        with TemporaryDirectory() as folder:
            SOUND[self.dataset](Path(folder))
            return [(Path(folder) / self.made).read_bytes()]

    def read(self, path: Path) -> bool:
        """Read it strictly, and gathering its problems, of which the first is what the strict reader raises."""
        place = path.parent / self.dataset
        if not place.is_dir():
            SOUND[self.dataset](place)
        (place / self.made).write_bytes(path.read_bytes())
        named = place if self.folder else place / self.made
        reader = cast("Reports", DATASETS.open(self.dataset))
        problems: list[str] = []
        broken: MemtuneError | None = None
        try:
            found = list(reader.read(named, Reading(problems=problems)))
        except MemtuneError as error:  # of the whole file
            broken = error
            found = []
        if problems or broken is not None:
            assert all(str(place) in each and "\n" not in each and ";" in each for each in problems), problems
            strictly = _raised(reader, named)
            assert str(strictly) == (problems[0] if problems else str(broken))
            assert strictly is not None
            raise strictly
        checked(found, str(place))
        return True


def _raised(reader: Reports, path: Path) -> MemtuneError | None:
    try:
        list(reader.read(path, Reading()))
    except MemtuneError as error:
        return error
    return None


DATA: Mapping[str, DamagedData] = {
    "turns": DamagedData("csv", "turns.csv", in_text),
    "questions": DamagedData("csv", "questions.csv", in_text),
    "facts": DamagedData("csv", "facts.csv", in_text),
    "chatgpt": DamagedData("openai-chats", "ann/conversations.json", in_json),
    "sharegpt": DamagedData("sharegpt", "chats.json", in_json),
    "feedback": DamagedData("traces", "feedback.jsonl", in_lines),
    "production trace": DamagedData("traces", "one.jsonl", in_lines),
    "longmemeval": DamagedData("longmemeval", "longmemeval_s.json", in_json, folder=False),
    "realmem": DamagedData("realmem", "Ann_Li_dialogues_256k.json", in_json, folder=False),
    "halumem": DamagedData("halumem", "HaluMem.jsonl", in_lines, folder=False),
    "mobilemem": DamagedData("mobilemem", "locomo_u0.json", in_json),
    "beam chat": DamagedData("beam", "1/chat.json", in_json),
    "beam questions": DamagedData("beam", "1/probing_questions/probing_questions.json", in_json),
    "benchd": DamagedData("benchd", "manifest.signed.json", in_json, folder=False),
    "annotated graph": DamagedData("memeval", "g0.json", in_json, folder=False),
}
"""By what is damaged."""
