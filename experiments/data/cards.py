"""What is known of each data set without reading it: its licence, size and home, and what can be fetched of it.

Nothing of a data set comes with memtune but the samples. Hashes are those of files that were seen (the persona of
RealMem), or that many independent projects publish for the revision in the address (LoCoMo, LongMemEval). Where no
hash is known, the first fetch records it, and later ones are checked against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from experiments.data.fetching import RemoteFile

Takes = Literal["nothing", "a file", "a folder", "a file or folder"]

_HUB = "https://huggingface.co"
_GITHUB = "https://raw.githubusercontent.com"
_LOCOMO_REVISION = "3eb6f2c585f5e1699204e3c3bdf7adc5c28cb376"
_LONGMEMEVAL_REVISION = "98d7416c24c778c2fee6e6f3006e7a073259d48f"
_REALMEM_REVISION = "67afd0891d603adcc4458ff0449df306ef296b7a"
_PERSONAS = (
    "Adeleke_Okonjo",
    "Ethan_Hunt",
    "Kenta_Tanaka",
    "Kim_Ji_young",
    "Liam_O_Connor",
    "Lin_Wanyu",
    "Oliver_Smith",
    "Pak_Budi",
    "Sarah_Miller",
    "Sophie_Dubois",
)
_KNOWN_PERSONA = ("Lin_Wanyu", 2_498_500, "a7a751066c48e829b3012a94f2b365febd0e6fb6db454a6d5f4ec01f9c55008a")


@dataclass(frozen=True, slots=True)
class Card:
    """What is known of a data set.

    Attributes:
        what: it is, in a few words.
        licence: of its contents.
        size: in words.
        home: address of its public home; empty for one's own data.
        takes: what `--data` must name.
        files: those that can be fetched.
        listing: `module:function` that asks the home for the files; for a home with too many to list here.
        by_hand: how to get it where it cannot be fetched.
    """

    what: str
    licence: str
    size: str
    home: str = ""
    takes: Takes = "a file"
    files: tuple[RemoteFile, ...] = ()
    listing: str = ""
    by_hand: str = ""

    @property
    def can_be_fetched(self) -> bool:
        """Whether `memtune data fetch` knows where its files are."""
        return bool(self.files or self.listing)


def _persona(name: str) -> RemoteFile:
    file = f"{name}_dialogues_256k.json"
    url = f"{_GITHUB}/AvatarMemory/RealMemBench/{_REALMEM_REVISION}/dataset/{file}"
    if name == _KNOWN_PERSONA[0]:
        return RemoteFile(file, url, _KNOWN_PERSONA[1], _KNOWN_PERSONA[2])
    return RemoteFile(file, url)


def _longmemeval(file: str, size: int, sha256: str) -> RemoteFile:
    path = f"datasets/xiaowu0162/longmemeval-cleaned/resolve/{_LONGMEMEVAL_REVISION}/{file}"
    return RemoteFile(file, f"{_HUB}/{path}", size, sha256)


_YOURS = "yours"

CARDS: Mapping[str, Card] = {
    "sample": Card("bundled example conversations", "Apache-2.0", "78 conversations", takes="nothing"),
    "agent-traces": Card(
        "bundled traces of agents at work", "Apache-2.0", "12 projects, 72 questions", takes="nothing"
    ),
    "jsonl": Card("your conversations and questions, one a line", _YOURS, "any", takes="a file or folder"),
    "csv": Card("your conversations and questions as tables", _YOURS, "any", takes="a folder"),
    "openai-chats": Card("ChatGPT exports (conversations.json)", _YOURS, "any", takes="a file or folder"),
    "sharegpt": Card(
        "chats in OpenAI's message format or the ShareGPT layout", _YOURS, "any", takes="a file or folder"
    ),
    "traces": Card("your recorded traces with feedback on the answers", _YOURS, "any", takes="a folder"),
    "locomo": Card(
        "LoCoMo: long conversations of two people",
        "CC BY-NC 4.0",
        "10 conversations, 1,986 questions, 2.8 MB",
        "https://github.com/snap-research/locomo",
        files=(
            RemoteFile(
                "locomo10.json",
                f"{_GITHUB}/snap-research/locomo/{_LOCOMO_REVISION}/data/locomo10.json",
                2_805_274,
                "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4",
            ),
        ),
    ),
    "longmemeval": Card(
        "LongMemEval: questions on a history of chats with an assistant",
        "MIT",
        "500 questions, each on its own 115,000 tokens; 277 MB (oracle: 15 MB)",
        f"{_HUB}/datasets/xiaowu0162/longmemeval-cleaned",
        files=(
            _longmemeval(
                "longmemeval_oracle.json",
                15_388_478,
                "821a2034d219ab45846873dd14c14f12cfe7776e73527a483f9dac095d38620c",
            ),
            _longmemeval(
                "longmemeval_s_cleaned.json",
                277_383_467,
                "d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442",
            ),
        ),
    ),
    "realmem": Card(
        "RealMem: projects over months, with gold memories",
        "Apache-2.0",
        "10 personas with 5 projects or so each, 2.5 MB a persona",
        "https://github.com/AvatarMemory/RealMemBench",
        takes="a file or folder",
        files=tuple(_persona(name) for name in _PERSONAS),
    ),
    "beam": Card(
        "BEAM: chats of 128,000 to a million tokens, with probing questions",
        "CC BY-SA 4.0",
        "100 chats, 2,000 questions",
        "https://github.com/mohammadtavakoli78/BEAM",
        takes="a folder",
        by_hand="clone the repository, and give --data one of its folders, such as BEAM/chats/100K",
    ),
    "memeval": Card(
        "MemEval: failures of Mem0 on LoCoMo, labelled by people",
        "labels: none stated; texts: CC BY-NC 4.0",
        "81 failures in 1 conversation",
        takes="a file or folder",
        by_hand="give --data the annotated graph that you were given",
    ),
    "memtracebench": Card(
        "MemTraceBench: annotated graphs of memory systems",
        "MIT",
        "graphs of four systems, 6.4 GB",
        f"{_HUB}/datasets/zjunlp/MemTraceBench",
        takes="a file or folder",
        listing="experiments.data.published.memtracebench:remote_files",
    ),
}
"""By the names of the data sets that memtune ships, in the order of the registry."""
