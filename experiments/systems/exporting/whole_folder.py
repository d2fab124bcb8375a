"""A folder that appears with everything in it, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracing.errors import RunError


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """An empty folder to write into. When the block ends it becomes `out`; after an error nothing is left of it.

    Raises:
        RunError: `out` holds something already, or cannot be written.
    """
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise RunError(f"{out}: exists already; give --out a new folder, such as {out}-2")
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as scratch:
            folder = Path(scratch) / "whole"
            folder.mkdir()
            yield folder
            if out.exists():
                out.rmdir()
            os.replace(folder, out)
    except OSError as error:
        raise RunError(
            f"{error.filename or out}: cannot be written ({error.strerror}); give --out another folder"
        ) from None
