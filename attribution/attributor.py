"""What every method of attribution has in common."""

from __future__ import annotations

from typing import Protocol

from attribution.cases import Attribution, Case


class Attributor(Protocol):
    """A method of attribution, set up for one recording."""

    def attribute(self, case: Case) -> Attribution:
        """Whose fault the case is."""
        ...
