"""Files fetched from a data set's public home: continued where a download stopped, and never used unverified.

A file whose SHA-256 is known must have it. Of any other, the first fetch records the hash in `SHA256SUMS` beside it
(trust on first use), and later ones must have the same.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from tracing.errors import DataError
from tracing.files.whole_files import write_whole

SUMS = "SHA256SUMS"

_ANSWER_S = 20
_CHUNK = 1 << 20
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_PARTIAL, _NO_SUCH_RANGE = 206, 416

Arrived = Callable[[str, int, int], None]
"""Called with a file's name, the bytes that have arrived, and its size in bytes; 0 where that is not known."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file at its public home, with size in bytes and SHA-256 where they are known.

    The name is its path below the data set's folder; the URL is of a fixed revision where the home has revisions.
    """

    name: str
    url: str
    size: int | None = None
    sha256: str | None = None


def fetch(file: RemoteFile, folder: Path, *, otherwise: str, arrived: Arrived) -> Path:
    """The file in `folder`, downloaded unless it is there already; what was downloaded before is not asked for again.

    `otherwise` says in messages how else the user may get it, and `arrived` is called as the download advances.

    Raises:
        DataError: the home does not answer, refuses, breaks off, or sends other bytes than were expected; or the
            disk is full. Nothing but verified bytes ever has the file's name.
    """
    target = folder / file.name
    if _is_verified(file, folder):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # The partial file and the sums are one fetch's at a time.
        with FileLock(folder.with_name(f".{folder.name}.lock")):
            if not _is_verified(file, folder):
                _fetch(file, folder, otherwise, arrived)
    except OSError as error:
        if error.errno in _FULL:
            raise DataError(f"{folder}: the disk is full; free some space and start it again to continue") from None
        raise DataError(f"{folder}: cannot be written ({error.strerror}); give --home another folder") from None
    return target


def _is_verified(file: RemoteFile, folder: Path) -> bool:
    """Whether the file is there with the bytes that it must have; one of unknown hash is trusted from now on."""
    target = folder / file.name
    digest = file.sha256 or _recorded_digests(folder).get(file.name)
    if not target.is_file():
        return False
    if digest is None:
        _record(folder, file.name, sha256_of(target))
    elif sha256_of(target) != digest:
        if file.sha256 is None:
            raise DataError(
                f"{target}: differs from what was fetched first, by {folder / SUMS}; delete the file to fetch it again"
            )
        return False
    return True


def _fetch(file: RemoteFile, folder: Path, otherwise: str, arrived: Arrived) -> None:
    target = folder / file.name
    part = target.with_name(f"{target.name}.part")
    expected = file.sha256 or _recorded_digests(folder).get(file.name)
    _download(file, part, otherwise, arrived)
    size, actual = part.stat().st_size, sha256_of(part)
    problem = ""
    if file.size not in (None, size):
        problem = f"sent {size:,} bytes where {file.size:,} are expected"
    elif expected is None:
        _record(folder, file.name, actual)
    elif actual != expected:
        origin = "is expected" if file.sha256 else f"was fetched first ({folder / SUMS})"
        problem = f"wrong bytes: SHA-256 {actual[:16]}… where {expected[:16]}… {origin}"
    if problem:
        part.unlink()
        raise DataError(f"{file.url}: {problem}; nothing was kept; {otherwise}")
    part.replace(target)


def is_here(file: RemoteFile, folder: Path) -> bool:
    """Whether a file was fetched whole; its bytes are not looked at."""
    target = folder / file.name
    return target.is_file() and (file.size is None or target.stat().st_size == file.size)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def http_response(url: str, otherwise: str, *, start: int = 0) -> Any:
    """The answer to a request for `url`, from the byte `start` on."""
    request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})  # noqa: S310 - as below
    try:
        return urllib.request.urlopen(request, timeout=_ANSWER_S)  # noqa: S310 - an address of ours, or the user's mirror
    except urllib.error.HTTPError as error:
        if start and error.code == _NO_SUCH_RANGE:
            return None
        raise DataError(f"{url}: HTTP {error.code} ({error.reason}); {otherwise}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise DataError(f"{url}: unreachable ({error}); {otherwise}") from None


def _download(file: RemoteFile, part: Path, otherwise: str, arrived: Arrived) -> None:
    start = part.stat().st_size if part.is_file() else 0
    if file.size is not None and start > file.size:
        part.unlink()
        start = 0
    if start and start == file.size:
        return
    answer = http_response(file.url, otherwise, start=start)
    if answer is None:  # nothing is left to send
        return
    with answer:
        going_on = answer.status == _PARTIAL and _begins_at(answer) == start
        received = start if going_on else 0
        if answer.status == _PARTIAL and not going_on:
            raise DataError(f"{file.url}: sent another part than was asked for; delete {part} and start it again")
        length = int(answer.headers.get("Content-Length") or 0)
        total = received + length if length else file.size or 0
        with part.open("ab" if going_on else "wb") as out:
            while chunk := _next(answer, file, received, total):
                out.write(chunk)
                received += len(chunk)
                arrived(file.name, received, total)
        if total and received != total:
            raise DataError(_broke_off(file, received, total))


def _next(answer: Any, file: RemoteFile, received: int, total: int) -> bytes:
    try:
        return bytes(answer.read(_CHUNK))
    except (OSError, http.client.HTTPException):
        raise DataError(_broke_off(file, received, total)) from None


def _broke_off(file: RemoteFile, received: int, total: int) -> str:
    return f"{file.url}: broke off after {received:,} of {total:,} bytes; start it again to continue"


def _begins_at(answer: Any) -> int | None:
    match = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range") or "")
    return int(match[1]) if match else None


def _recorded_digests(folder: Path) -> dict[str, str]:
    """Hashes by file name, as `sha256sum` writes them."""
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    matches = (re.fullmatch(r"([0-9a-f]{64})  (.+)", line) for line in lines)
    return {match[2]: match[1] for match in matches if match}


def _record(folder: Path, name: str, digest: str) -> None:
    digests = _recorded_digests(folder) | {name: digest}
    write_whole(folder / SUMS, "".join(f"{digests[file_name]}  {file_name}\n" for file_name in sorted(digests)))
