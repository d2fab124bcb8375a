"""The garbage collector pauses while much is loaded that stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the garbage collector from walking through all that was loaded, again and again, while it grows."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():
                # All that came is old now, without a walk through it as through what is young.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
