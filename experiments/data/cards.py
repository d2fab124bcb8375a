"""What is known of each data set without reading it (`cards.json`): its licence, size and home, and its files there.

Nothing of a data set comes with memtune but the samples. Hashes are those of files that were seen (the persona of
RealMem), or that many independent projects publish for the revision in the address (LoCoMo, LongMemEval). Where no
hash is known, the first fetch records it, and later ones are checked against it.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec

from experiments.data.file_download import RemoteFile

Takes = Literal["nothing", "a file", "a folder", "a file or folder"]

_HUB = "https://huggingface.co/"


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

    Example:
        >>> Card("who eats what, in five conversations", licence="CC0-1.0", size="five conversations").can_be_fetched
        False
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


CARDS: Mapping[str, Card] = msgspec.json.decode(
    (resources.files("experiments") / "data" / "cards.json").read_bytes(), type=dict[str, Card]
)
"""By the names of the data sets that memtune ships, in the order of the registry."""


def files_of(card: Card, folder: Path) -> Sequence[RemoteFile]:
    """The files of a data set at its home, or at the mirror of the hub in $HF_ENDPOINT.

    Raises:
        DataError: the home has to be asked for a listing, and does not answer.
    """
    if card.listing:
        module, _, function = card.listing.partition(":")
        remote_files: Sequence[RemoteFile] = getattr(importlib.import_module(module), function)(folder)
        return remote_files
    mirror = os.environ.get("HF_ENDPOINT", "").rstrip("/")
    if not mirror:
        return card.files
    return [replace(file, url=_mirror_url(file.url, mirror)) for file in card.files]


def way_out(card: Card | None) -> str:
    """How to get a data set that cannot be fetched."""
    if card is None or (not card.home and not card.by_hand):
        return "it has no public home; give its own path with --data PATH"
    if card.by_hand:
        return f"{card.by_hand} ({card.home})" if card.home else card.by_hand
    return f"get it from {card.home}, and give its path with --data PATH"


def _mirror_url(url: str, mirror: str) -> str:
    return f"{mirror}/{url.removeprefix(_HUB)}" if url.startswith(_HUB) else url
