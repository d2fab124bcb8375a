"""The conformance suite of `DatasetLoader`: subclass it in a test file, and pytest checks yours.

class TestMine(DatasetConformance):
    def loader(self):
        return my_conversations  # takes (path)

    def path(self):
        return Path("my.data")  # None where it needs none
"""

from __future__ import annotations

from pathlib import Path

from experiments.data.datasets import DatasetLoader, checked
from experiments.data.splits import assign_splits
from tracing.conformance import Conformance, require
from tracing.errors import MemtuneError
from tracing.systems.conversations import Conversation


class DatasetConformance(Conformance):
    """What memtune requires of a data set.

    Example:
        >>> from experiments.data.datasets import sample
        >>> class TestSample(DatasetConformance):
        ...     def loader(self):
        ...         return sample
        >>> TestSample().problems()
        []
    """

    def loader(self) -> DatasetLoader:
        """The data set under test."""
        raise NotImplementedError

    def path(self) -> Path | None:
        """What `data` would name."""
        return None

    def test_it_gives_conversations_with_ids_of_their_own(self) -> None:
        """Verdicts, reports and trace files are named by them."""
        self._conversations()

    def test_it_gives_the_same_at_every_call(self) -> None:
        """A resumed run, and judging its traces again, need the data it began with."""
        require(self._conversations() == self._conversations(), "the second call gave other conversations")

    def test_it_can_be_split_and_asked(self) -> None:
        """Train, validation and test, each with a question; sealed conversations beside them."""
        try:
            assign_splits(self._conversations(), where="the data set")
        except MemtuneError as error:
            raise AssertionError(str(error)) from None

    def _conversations(self) -> list[Conversation]:
        try:
            return checked(self.loader()(self.path()), "the data set")
        except MemtuneError as error:
            raise AssertionError(str(error)) from None
