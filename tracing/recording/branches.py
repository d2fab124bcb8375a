"""Recording work that runs at the same time as if one piece came after the other.

    with trace(path) as recorder:
        known = list(recorder.graph.variables.values())
        branches = [Branch(recorder, known) for item in items]
        results = pool.map(lambda branch, item: branch.run(work, item), branches, items)
        for branch, result in zip(branches, results):
            branch.join()

A branch knows what its trace has recorded before it was made, and has ids of its own. The branches are joined in the
order that they are to have, so the trace is the same whatever the order in which they ran.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import ParamSpec, TypeVar

from tracing.graph.elements import Element, Variable
from tracing.recording.processes import hand_over, take_over
from tracing.recording.recorder import Recorder

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
