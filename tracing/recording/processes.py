"""Recording across processes: the parent hands over its place, the child records, the parent adopts.

    def work(given, item):                       # in another process
        with take_over(given) as recorder:
            ...
        return recorder.records()

    with trace(path) as recorder, operation("fan out"), ProcessPoolExecutor() as pool:
        for done in [pool.submit(work, hand_over(), item) for item in items]:
            recorder.adopt(done.result())

What goes from one to the other is plain JSON.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tracing.errors import TraceError
from tracing.recording.recorder import Recorder, current_recorder
from tracing.recording.redaction import Redaction
from tracing.recording.scope import Scope, within


def hand_over() -> dict[str, Any] | None:
    """What another process needs to record as part of this place; None where nothing is recorded.

    Call it once for each piece of work: it holds the prefix of its ids.
    """
    recorder = current_recorder()
    return recorder.hand_over() if recorder is not None else None


@contextlib.contextmanager
def take_over(
    handover: Mapping[str, Any] | None, path: str | Path | None = None, *, redaction: Redaction | None = None
) -> Iterator[Recorder | None]:
    """Record what happens inside as part of the place that `handover` names; nothing if it is None.

    `Recorder.records` has the recording for the parent's `Recorder.adopt`. With a `path` it is also in a file that
    survives this process, for `load_trace`.

    Raises:
        TraceError: `handover` was not made by `hand_over`; the path, as for `trace`.
    """
    if handover is None:
        yield None
        return
    try:
        prefix, parent, session = str(handover["prefix"]), handover["operation"], handover["session"]
        inherited = dict(handover["attributes"])
    except (KeyError, TypeError, ValueError):
        raise TraceError(
            "these are not the values of a hand_over(): give what it returned in the parent process"
        ) from None
    recorder = Recorder(None if path is None else Path(path), prefix, redaction=redaction, parent=parent)
    try:
        with within(Scope(recorder, None, session, inherited)):
            yield recorder
    finally:
        recorder.end()
