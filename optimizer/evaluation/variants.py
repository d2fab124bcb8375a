"""One memory system under other settings, and the evaluators of it that a search needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from optimizer.evaluation.evaluator import Evaluator
from optimizer.evaluation.memories import digest
from optimizer.evaluation.scores import Setting, Settings
from tracing.systems.description import describe
from tracing.systems.protocol import MemorySystem

SystemOpener = Callable[[Settings], "MemorySystem"]
"""Opens the system with these settings beside its others."""


class Variants:
    """A system whose settings may be tuned.

    Args:
        base: evaluates it under the run's own settings.
        allowed: name of a setting → values that may be tried, the run's own among them or not.
        open_system: opens the system under other values.

    Attributes:
        own: the run's own value of each of these settings.
        choices: name → all values to choose from, the run's own first.
    """

    def __init__(self, base: Evaluator, allowed: Mapping[str, Sequence[Setting]], open_system: SystemOpener) -> None:
        settings = describe(base.system).settings
        self.own: Settings = {name: settings[name] for name in allowed}
        self.choices: Mapping[str, Sequence[Setting]] = {
            name: tuple(dict.fromkeys((self.own[name], *values))) for name, values in allowed.items()
        }
        self._open_system = open_system
        self._evaluators = {digest(self.own): base}
        self._base = base

    def under(self, settings: Settings) -> Evaluator:
        """The evaluator under these values of the settings that may be tuned.

        What one evaluator knows and spends, all do: settings are part of what an outcome is known by.
        """
        key = digest({**self.own, **settings})
        if key not in self._evaluators:
            self._evaluators[key] = self._base.of(self._open_system({**self.own, **settings}))
        return self._evaluators[key]
