"""Data sets: the source of conversations, and the extension point for users' own; what is known of each (`cards.json`).

`docs/extending-loop.md` teaches writing one, and `experiments.data.conformance` checks it.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Literal, Protocol, cast

import msgspec

from experiments.data.dataset_reader import Reading, Reports
from experiments.data.file_download import RemoteFile
from tracing.errors import DataError, MemtuneError, in_one_line
from tracing.files.loading import collector_paused
from tracing.plugins import PluginRegistry
from tracing.systems.conversations import Conversation, read_conversations

SAMPLE, JSONL, LOCOMO = "sample", "jsonl", "locomo"

DATASETS = PluginRegistry(
    "datasets",
    "dataset",
    {
        SAMPLE: "experiments.data.datasets:sample",
        "agent-traces": "experiments.data.datasets:agent_traces",
        JSONL: "experiments.data.own.own_format:JSONL_READER",
        "csv": "experiments.data.own.own_format:CSV_READER",
        "openai-chats": "experiments.data.own.openai_chats:READER",
        "sharegpt": "experiments.data.own.sharegpt:READER",
        "traces": "experiments.data.own.traces:READER",
        LOCOMO: "experiments.data.published.locomo:READER",
        "longmemeval": "experiments.data.published.longmemeval:READER",
        "realmem": "experiments.data.published.realmem:READER",
        "halumem": "experiments.data.published.halumem:READER",
        "mobilemem": "experiments.data.published.mobilemem:READER",
        "beam": "experiments.data.published.beam:READER",
        "benchd": "experiments.data.published.benchd:READER",
        "memeval": "experiments.data.published.memtracebench:MEMEVAL_READER",
        "memtracebench": "experiments.data.published.memtracebench:MEMTRACEBENCH_READER",
    },
)

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
"""By the names of the data sets that memtune ships, in the order of the registry.

Nothing of a data set comes with memtune but the samples. Hashes are those of files that were seen (the persona of
RealMem), or that many independent projects publish for the revision in the address (LoCoMo, LongMemEval). Where no hash
is known, the first fetch records it, and later ones are checked against it.
"""


def files_of(card: Card, folder: Path) -> Sequence[RemoteFile]:
    """The files of a data set at its home, or at the mirror of the hub in $HF_ENDPOINT."""
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


class DatasetLoader(Protocol):
    """Gives the conversations of a data set, each with its questions."""

    def __call__(self, path: Path | None, /) -> Iterable[Conversation]:
        """All conversations, the same on every call; ids of conversations and of questions are unique.

        Either all have a `split`, or none: then memtune splits them. Runs do not use those of the split `sealed`.

        Args:
            path: what `data` (`--data`) names, if anything: an existing file or folder.
        """


def card_of(name: str) -> Card | None:
    """What is known of a data set without reading it: its own `card`; None for a user's own without one.

    Raises:
        ConfigError: there is no such data set, or it cannot be imported.
    """
    if name in CARDS:
        return CARDS[name]
    card = getattr(DATASETS.open(name), "card", None)
    return card if isinstance(card, Card) else None


def conversations_of(name: str, path: Path | None, reading: Reading | None = None) -> list[Conversation]:
    """Every conversation of the data set of this name or `module:function`, the sealed ones included.

    Args:
        name: of the data set.
        path: what `--data` names.
        reading: receives what was left out, and how far the reading is.

    Raises:
        ConfigError: there is no such data set, it cannot be imported, or it does not take a path.
        DataError: it fails, or gives anything but conversations with unique ids.
    """
    load = cast("DatasetLoader", DATASETS.open_callable(name, "path"))
    where = f"dataset: {name!r}"
    try:
        with collector_paused():  # a large file is half a million objects, and all of them are kept
            loaded = load.read(path, reading or Reading()) if isinstance(load, Reports) else load(path)
            rows: list[object] = list(loaded)
    except MemtuneError:
        raise
    except Exception as error:
        raise DataError(f"{where} failed: {in_one_line(error)}") from error
    return checked(rows, where)


def checked(conversations: Iterable[object], where: str) -> list[Conversation]:
    """The conversations that a data set gave, checked to have unique ids.

    Raises:
        DataError: it is something else; `where` names the data set.
    """
    checked_conversations: list[Conversation] = []
    ids: dict[str, set[str]] = {"conversation": set(), "question": set()}
    for place, conversation in enumerate(conversations, start=1):
        if not isinstance(conversation, Conversation):
            raise DataError(
                f"{where} gives a {type(conversation).__name__} at place {place}; give "
                "`tracing.systems.conversations.Conversation`s"
            )
        for kind, element_id in (
            ("conversation", conversation.id),
            *(("question", question.id) for question in conversation.questions),
        ):
            if element_id in ids[kind]:
                raise DataError(f"{where} gives two {kind}s with the id {element_id!r}; give each its own")
            ids[kind].add(element_id)
        checked_conversations.append(conversation)
    if not checked_conversations:
        raise DataError(f"{where} gives no conversation")
    return checked_conversations


def sample(path: Path | None) -> list[Conversation]:
    """The bundled sample."""
    with resources.as_file(resources.files("experiments") / "sample") as folder:
        files = [folder / f"{name}.jsonl" for name in ("train", "validation", "test", "sealed")]
        return [conversation for file in files for conversation in read_conversations(file)]


def agent_traces(path: Path | None) -> list[Conversation]:
    """What agents did in twelve small projects, written by hand, with questions about it."""
    with resources.as_file(resources.files("experiments") / "sample" / "agent_traces.jsonl") as file:
        return read_conversations(file)
