"""Changes in place, and connections that no recorded step shows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tracing.recording.operations import ActiveOperation, operation


@contextlib.contextmanager
def change(
    thing: Any, *, name: str = "state", kind: str = "value", by: str = "change", **attributes: Any
) -> Iterator[ActiveOperation]:
    """Record what happens to `thing` inside as one operation: its state before is the input, that after the output.

        with change(store, name="store", kind="memory_entry", by="update_memory"):
            store["city"] = "Oslo"

    The output is a new version of the input, and the latest variable of the object from then on. Where nothing has
    changed there is no output. An exception is recorded, with what had changed by then, and raised again.

    Args:
        thing: an object that can change in place.
        name: of the variable, if the object was not recorded before.
        kind: likewise.
        by: name of the operation.
        attributes: of the operation.
    """
    with operation(by, kind="change", **attributes) as op:
        recorder = op.recorder
        if recorder is None:
            yield op
            return
        before = recorder.state(op, thing, name, kind)
        op.use("before", before)
        try:
            yield op
        finally:
            if not recorder.ended:
                after = recorder.state(op, thing, name, kind)
                if after is not before:
                    op.output("after", after)


def link(source: Any, target: Any, name: str = "link", **attributes: Any) -> None:
    """Record that `target` comes from `source`, where no recorded step shows it.

    Args:
        source, target: variables, or objects that were recorded as such; others become variables.
        name: of the operation, of kind "link", between the two.
        attributes: of that operation.
    """
    with operation(name, kind="link", inputs={"source": source}, **attributes) as op:
        if op.recorder is not None:
            op.output("target", op.recorder.state(op, target, "target", "value"))
