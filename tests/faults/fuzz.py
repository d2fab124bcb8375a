"""Damages files and reads them, until something other than what they hold or an error that names them comes out.

    python tests/faults/fuzz.py --seconds 60 --seed 7 --kind otlp

`test_damaged_files.py` runs a part of it. An input that fails is written to the current folder, to be looked at.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

if __name__ == "__main__":
    _TESTS = Path(__file__).resolve().parent.parent
    sys.path[:0] = [str(_TESTS.parent), str(_TESTS), *(str(_TESTS / name) for name in ("experiments", "tracing"))]

from readers import READERS, Reader, sound

from tracing.errors import MemtuneError

SLOWEST_S = 5.0
"""Of computing that no file of this size may take."""

MOST_MORE_KB = 600_000
"""Of memory that no kind of file may come to take, however many are read."""


def fuzz(name: str, seed: int, going_on: Callable[[int], bool]) -> tuple[int, int]:
    """Damage and read files of a kind while `going_on(number so far)`; how many there were, and how many were sound."""
    reader, draw = READERS[name], random.Random(f"{name} {seed}")  # noqa: S311
    tried = readable = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        while going_on(tried):
            content = reader.damage(draw.choice(sound(name)), draw)
            try:
                readable += check(reader, content, Path(folder))
            except BaseException:
                Path(f"fuzz-{name.replace(' ', '-')}-{seed}-{tried}").write_bytes(content)
                raise
            tried += 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MORE_KB
    return tried, readable


def check(reader: Reader, content: bytes, folder: Path) -> bool:
    """Whether a file can be read; what is wrong with one that cannot is told with its name on one line."""
    path = folder / reader.file
    path.write_bytes(content)
    begun = time.process_time()
    try:
        return reader.read(path)
    except MemtuneError as error:
        if str(folder) not in str(error):
            raise AssertionError("the error does not name the file") from error
        return False
    finally:
        assert time.process_time() - begun < SLOWEST_S


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Damage files and read them.")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=tuple(READERS))
    given = parser.parse_args()
    for kind in (given.kind,) if given.kind else READERS:
        until = time.monotonic() + given.seconds
        count, readable = fuzz(kind, given.seed, lambda _, t=until: time.monotonic() < t)  # type: ignore[misc]
        print(f"{kind}: {count} files, {readable} of them sound")
