"""Room reserved on a disk for what must still be written when it is full."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

SIZE = 2 << 20
"""Bytes reserved in each folder: enough for many replies and their entries, and a run's summary and report."""


class SpareRoom:
    """Reserves room in folders until it is released. Its files have no name, so no process leaves one behind.

    Attributes:
        released: whether the room was released.
    """

    def __init__(self, *folders: Path) -> None:
        """Reserve the room.

        Raises:
            OSError: a folder has none.
        """
        self.released = False
        self._held = ExitStack()
        try:
            for folder in folders:
                file = self._held.enter_context(tempfile.TemporaryFile(dir=folder))  # noqa: SIM115
                # Zeros would take no room on a disk that compresses.
                file.write(os.urandom(SIZE))
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            self.close()
            raise

    def release(self) -> None:
        """Release the room for good."""
        self.released = True
        self.close()

    def close(self) -> None:
        """Close the files; closing twice does no harm."""
        self._held.close()
