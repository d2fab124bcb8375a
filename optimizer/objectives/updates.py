"""The local objective of an update: its decision on a fact, or what the memory keeps where it is written anew."""

from __future__ import annotations

from collections.abc import Sequence

from optimizer.objectives.decisions import DecisionObjective, change_in
from optimizer.objectives.extraction import ExtractionObjective
from optimizer.objectives.objective import Credit, RecordedInput
from optimizer.objectives.objectives import ObjectiveMeans
from tracing.systems.layouts import Item


class UpdateObjective:
    """A decision is measured as that; entries that an operation writes itself, such as a profile, by what they keep.

    An execution that made nothing had to decide if it was given one fact, and to write if it was given several.
    """

    def __init__(self, means: ObjectiveMeans) -> None:
        self._decides, self._writes = DecisionObjective(means.golds), ExtractionObjective(means.golds)

    def weight(self, execution: RecordedInput) -> float:
        """1 for a decision on which a question depends, or the number of needs in what is to be kept."""
        return self._of(execution).weight(execution)

    def credit(self, execution: RecordedInput, outputs: Sequence[Item]) -> Credit:
        """1 for a right decision, or the share of needs kept, less what is made up."""
        return self._of(execution).credit(execution, outputs)

    def right(self, execution: RecordedInput) -> Sequence[Item] | None:
        """The right decision; None if it is not known, or entries are to be written."""
        return self._decides.right(execution) if self._of(execution) is self._decides else None

    def _of(self, execution: RecordedInput) -> DecisionObjective | ExtractionObjective:
        decides = change_in(execution, execution.outputs) is not None or (
            not execution.outputs and len(execution.items("fact")) == 1
        )
        return self._decides if decides else self._writes
