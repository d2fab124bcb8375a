"""The files that a data set's public home has, and what to do where it cannot be reached."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from experiments.data.cards import Card
from experiments.data.fetching import RemoteFile

_HUB = "https://huggingface.co/"


def files_of(card: Card, folder: Path) -> Sequence[RemoteFile]:
    """The files of a data set at its home, or at the mirror of the hub in $HF_ENDPOINT.

    Args:
        card: of the data set.
        folder: where its files, and a listing of them, are kept.

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
    return [replace(file, url=_mirrored(file.url, mirror)) for file in card.files]


def way_out(card: Card | None) -> str:
    """How to get a data set that cannot be fetched."""
    if card is None or (not card.home and not card.by_hand):
        return "it has no public home; give its own path with --data PATH"
    if card.by_hand:
        return f"{card.by_hand} ({card.home})" if card.home else card.by_hand
    return f"get it from {card.home}, and give its path with --data PATH"


def _mirrored(url: str, mirror: str) -> str:
    return f"{mirror}/{url.removeprefix(_HUB)}" if url.startswith(_HUB) else url
