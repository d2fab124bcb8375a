"""MemTraceBench, the public suite of annotated graphs: fetched from its hub once, then read from the home.

Its files are smartcomment graphs with annotations, one folder per split; nothing in them is executed.
"""

from __future__ import annotations

import http.client
import urllib.request
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, TypeAdapter, ValidationError

from tracing.errors import DataError
from tracing.llm.serving.weights import hub_address

NAME = "memtracebench"
REPOSITORY = "zjunlp/MemTraceBench"

_LISTING = "files.list"
_ANSWER_S = 20
_CHUNK = 1 << 20


class _Entry(BaseModel):
    """One entry of the hub's listing of a repository."""

    type: str
    path: str
    size: int = 0


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
    listing = folder / _LISTING
    files = _files(listing.read_bytes(), str(listing)) if listing.is_file() else None
    if files is None:
        url = f"{hub_address()}/api/datasets/{REPOSITORY}/tree/main?recursive=true"
        with _opened(url) as reply:
            listed = reply.read()
        files = _files(listed, url)
        folder.mkdir(parents=True, exist_ok=True)
    else:
        listed = b""
    for done, file in enumerate(files):
        progress(f"download of {NAME}", done, len(files))
        target = folder / file.path
        if not target.is_file() or target.stat().st_size != file.size:
            _download(file, target)
    if listed:
        listing.write_bytes(listed)
    return folder


def _files(listed: bytes, where: str) -> list[_Entry]:
    """The graphs of a listing; paths that lead out of the folder are skipped."""
    try:
        entries = _LISTED.validate_json(listed)
    except ValidationError:
        raise DataError(f"{where}: is not a listing of files; {_ELSEWHERE}") from None
    found = [one for one in entries if one.type == "file" and one.path.endswith(".json") and _inside(one.path)]
    if not found:
        raise DataError(f"{where}: lists no graphs; {_ELSEWHERE}")
    return found


_ELSEWHERE = f"download {REPOSITORY} by other means, and give --suite its folder"


def _inside(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return "\\" not in path and not path.startswith("/") and ".." not in parts


def _download(file: _Entry, target: Path) -> None:
    url = f"{hub_address()}/datasets/{REPOSITORY}/resolve/main/{quote(file.path)}"
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.part")
    with _opened(url) as reply, partial.open("wb") as out:
        try:
            while chunk := reply.read(_CHUNK):
                out.write(chunk)
        except (OSError, http.client.HTTPException) as error:
            raise DataError(f"{url}: broke off ({error}); start again to continue") from None
    if partial.stat().st_size != file.size:
        size = partial.stat().st_size
        partial.unlink()
        raise DataError(f"{url}: sent {size} bytes where {file.size} are listed; start again, or {_ELSEWHERE}")
    partial.replace(target)


def _opened(url: str) -> Any:
    try:
        return urllib.request.urlopen(url, timeout=_ANSWER_S)  # noqa: S310 - a fixed https address, or the user's own
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise DataError(f"{url}: unreachable ({error}); {_ELSEWHERE}") from None
