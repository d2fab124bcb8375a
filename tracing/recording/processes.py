"""Recording elsewhere: in another process, or in a branch of the trace beside other work.

Across processes, the parent hands over its place, the child records, the parent adopts:

    def work(handover, item):                       # in another process
        with take_over(handover) as recorder:
            ...
        return recorder.records()

    with trace(path) as recorder, operation("fan out"), ProcessPoolExecutor() as pool:
        for done in [pool.submit(work, hand_over(), item) for item in items]:
            recorder.adopt(done.result())

What goes from one to the other is plain JSON. Work that runs at the same time is recorded as if one piece came after
the other:

    with trace(path) as recorder:
        visible = list(recorder.graph.variables.values())
        branches = [Branch(recorder, visible) for item in items]
        results = pool.map(lambda branch, item: branch.run(work, item), branches, items)
        for branch, result in zip(branches, results):
            branch.join()

A branch knows what its trace has recorded before it was made, and has ids of its own. The branches are joined in the
order that they are to have, so the trace is the same whatever the order in which they ran.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from tracing.errors import TraceError
from tracing.graph.elements import Element, Variable
from tracing.recording.recorder import Recorder, current_recorder
from tracing.recording.redaction import Redaction
from tracing.recording.scope import Scope, within


def hand_over() -> dict[str, Any] | None:
    """What another process needs to record as part of this place; None where nothing is recorded.

    Call it once for each piece of work: it holds the prefix of its ids.

    Example:
        >>> with trace(), operation("fan out") as op:
        ...     hand_over()["operation"] == op.id
        True
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

    Example:
        >>> with trace() as recorder, operation("fan out"):
        ...     with take_over(hand_over()) as elsewhere:  # in another process
        ...         message = variable("I moved to Oslo.", name="D1:1", kind="message")
        ...     recorder.adopt(elsewhere.records())
        >>> message.id in recorder.graph.variables
        True
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


P = ParamSpec("P")
R = TypeVar("R")


class Branch:
    """A recording beside `recorder`, for one piece of work. Make and join branches where the trace is current."""

    def __init__(self, recorder: Recorder, visible: Sequence[Variable]) -> None:
        """`visible` are the variables of the trace that the work may refer to."""
        self._recorder, self._visible = recorder, visible
        self._handover = hand_over()
        self._recording: Recorder | None = None

    def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Do the work, and record it here."""
        with take_over(self._handover, redaction=self._recorder.redaction) as recorder:
            self._recording = recorder
            if recorder is not None:
                for variable in self._visible:
                    recorder.graph.add_variable(variable)
            return work(*args, **kwargs)

    def join(self) -> None:
        """Let the trace take over what was recorded here."""
        if self._recording is None:
            return
        graph, visible_ids = self._recording.graph, {variable.id for variable in self._visible}
        elements: Iterable[Element] = chain(
            graph.sessions.values(), graph.variables.values(), graph.operations.values()
        )
        self._recorder.adopt_elements(element for element in elements if element.id not in visible_ids)
        self._recording = None
