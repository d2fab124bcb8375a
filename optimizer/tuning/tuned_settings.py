"""The memory system under the settings of the run, of the champion and of candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimizer.tuning.results import SettingChange

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Evaluator
    from optimizer.evaluation.scores import Settings
    from optimizer.evaluation.variants import Variants


class TunedSettings:
    """The settings that a search may change, and evaluators under them.

    Args:
        evaluator: under the run's own settings.
        variants: the system under other settings; None if none may be tuned.

    Attributes:
        evaluator: the same.
        own: the run's own values of the settings that may be tuned.
    """

    def __init__(self, evaluator: Evaluator, variants: Variants | None) -> None:
        self.evaluator, self._variants = evaluator, variants
        self.own: Settings = variants.own if variants is not None else {}

    def under(self, settings: Settings) -> Evaluator:
        """The evaluator under these values."""
        return self.evaluator if self._variants is None else self._variants.under(settings)

    def changed(self, now: Settings) -> dict[str, SettingChange]:
        """Those of the values that are not the run's own."""
        return {name: SettingChange(value, now[name]) for name, value in self.own.items() if now[name] != value}
