"""Room on a disk, held back for what must still be written when it is full."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

SIZE = 2 << 20
"""Bytes held in each folder: many replies of a model and their entries, and a run's summary and report."""


class SpareRoom:
    """Holds room in folders until it is released. The files that hold it have no name, so that no process leaves one.

    Attributes:
        released: whether it was given up.
    """

    def __init__(self, *folders: Path) -> None:
        """Take the room.

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
        """Give the room up, for good."""
        self.released = True
        self.close()

    def close(self) -> None:
        """Close the files; closing twice does no harm."""
        self._held.close()
