"""MemTraceBench, the public suite of annotated graphs: fetched from its hub once, then read from the home.

Its files are smartcomment graphs with annotations, one folder per split; nothing in them is executed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter, ValidationError

from experiments.data.fetching import RemoteFile, fetch, http_response, is_here
from tracing.errors import DataError
from tracing.llm.serving.weights import hub_address

NAME = "memtracebench"
REPOSITORY = "zjunlp/MemTraceBench"

_LISTING = "files.list"


class _Stored(BaseModel):
    """Where the hub keeps a large file: its SHA-256."""

    oid: str


class _Entry(BaseModel):
    """One entry of the hub's listing of a repository."""

    type: str
    path: str
    size: int = 0
    lfs: _Stored | None = None


_LISTED = TypeAdapter(list[_Entry])


def fetched(home: Path, progress: Callable[[str, int, int], None]) -> Path:
    """The folder of the suite; missing files are downloaded, and a stopped download is continued.

    Args:
        home: its folder `data` holds the suite.
        progress: called with a phase, what is done of it and its total.

    Raises:
        DataError: the hub does not answer, or sends something else.
    """
    folder = home / "data" / NAME
    files = remote_files(folder)
    for count, file in enumerate(files):
        progress(f"download of {NAME}", count, len(files))
        if not is_here(file, folder):
            fetch(file, folder, otherwise=_ELSEWHERE, arrived=_ignored)
    return folder


def remote_files(folder: Path) -> tuple[RemoteFile, ...]:
    """The files of the suite, as the hub lists them; the list is kept in `folder` and asked for once.

    Raises:
        DataError: the hub does not answer, or sends something else.
    """
    listing = folder / _LISTING
    if listing.is_file():
        return _files(listing.read_bytes(), str(listing))
    url = f"{hub_address()}/api/datasets/{REPOSITORY}/tree/main?recursive=true"
    with http_response(url, _ELSEWHERE) as reply:
        listed = reply.read()
    files = _files(listed, url)
    folder.mkdir(parents=True, exist_ok=True)
    new = listing.with_name(f".{_LISTING}.{os.getpid()}")
    new.write_bytes(listed)
    new.replace(listing)
    return files


def _ignored(name: str, received: int, total: int) -> None:
    """The suite counts files, not bytes."""


def _files(listed: bytes, where: str) -> tuple[RemoteFile, ...]:
    """The graphs of a listing; paths that lead out of the folder are skipped."""
    try:
        entries = _LISTED.validate_json(listed)
    except ValidationError:
        raise DataError(f"{where}: is not a listing of files; {_ELSEWHERE}") from None
    entries_of_graphs = [
        entry for entry in entries if entry.type == "file" and entry.path.endswith(".json") and _inside(entry.path)
    ]
    if not entries_of_graphs:
        raise DataError(f"{where}: lists no graphs; {_ELSEWHERE}")
    return tuple(
        RemoteFile(
            entry.path,
            f"{hub_address()}/datasets/{REPOSITORY}/resolve/main/{quote(entry.path)}",
            entry.size,
            entry.lfs.oid if entry.lfs is not None else None,
        )
        for entry in entries_of_graphs
    )


_ELSEWHERE = f"download {REPOSITORY} by other means, and give --suite its folder (or --data)"


def _inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return "\\" not in path and not path.startswith("/") and ".." not in parts
