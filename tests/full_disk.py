"""A disk of a few megabytes that a test can fill and empty; it needs the right to mount one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class Disk:
    """A file system in memory, mounted at `path`."""

    def __init__(self, path: Path) -> None:
        self.path, self.full = path, False
        self._filler = path / "filler"

    def fill(self, leave: int = 0) -> None:
        """Take all room but `leave` bytes."""
        self.full = True
        with self._filler.open("ab", buffering=0) as file:
            for size in (1 << 20, 4096):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError:
                    continue
        os.truncate(self._filler, max(0, self._filler.stat().st_size - leave))

    def empty(self) -> None:
        """Give the room back."""
        self.full = False
        self._filler.unlink(missing_ok=True)


@contextmanager
def mounted(path: Path, megabytes: int) -> Iterator[Disk]:
    """Mount a disk at `path`; skips the test where that is not allowed."""
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(path)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("a small disk to fill needs `mount`")
    if done.returncode:
        pytest.skip("a small disk to fill needs the right to mount one")
    try:
        yield Disk(path)
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
