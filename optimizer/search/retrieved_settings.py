"""Other settings of the system, compared by what is retrieved under them, before a chat model is asked anything.

Settings depend on each other: smaller chunks pay if more of them are retrieved. So their combinations are compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from attribution.survival.flow import rewrites
from optimizer.objectives.objectives import Golds
from optimizer.objectives.retrieval import retrieval_of
from tracing.errors import ConfigError

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Evaluator, Outcome
    from optimizer.evaluation.scores import Setting, Settings
    from optimizer.evaluation.variants import Variants
    from optimizer.objectives.retrieval import Retrieval
    from optimizer.tuning.tuning import Tuning

MOST_COMBINED = 32
"""Combinations of values that are all compared; where there are more, the values of each setting alone are."""


class Considered(NamedTuple):
    """Values that differ from the champion's.

    Attributes:
        settings: name → value.
        retrieval: what is retrieved under them; None if that cannot be measured.
        refused: why they are not tried; None if they may be.
    """

    settings: Settings
    retrieval: Retrieval | None
    refused: str | None = None


class RetrievedSettings:
    """Other settings than the champion's, those first that are the most promising to try.

    First come those under which as much is retrieved as under the champion's, in fewer tokens; then those under which
    the most is. Settings are refused if others retrieve as much in fewer tokens, or more in as few, and if the system
    does not take them together.

    Args:
        tuning: of the run.
        variants: its system under other settings.
        phase: what a progress bar shows.
        pool: the champion's outcomes on the conversations whose questions are asked.

    Attributes:
        considered: all of them, the most promising first.
        own: what is retrieved under the champion's; None if that cannot be measured.

    Raises:
        BudgetExceededError: a hard budget does not allow an embedding call.
    """

    def __init__(self, tuning: Tuning, variants: Variants, phase: str, pool: Sequence[Outcome]) -> None:
        self._tuning, self._variants, self._pool = tuning, variants, pool
        self._combined = math.prod(map(len, variants.choices.values())) <= MOST_COMBINED
        own = self._measured({})
        self.own = own.retrieval
        measured: list[Considered] = []
        combinations = self._combinations(variants.choices)
        for count, settings in enumerate(combinations):
            tuning.step(phase, count, len(combinations))
            measured.append(self._measured(settings))
        tuning.step(phase, len(combinations), len(combinations))
        self.considered = sorted(
            (self._compared(option, [own, *measured]) for option in measured), key=lambda option: _rank(option, own)
        )

    def best(self, count: int) -> list[Settings]:
        """The most promising that may be tried; of those that retrieve just the same, the fewest changes alone."""
        chosen: dict[Retrieval, Settings] = {}
        for option in self.considered:
            if option.refused is None and option.retrieval is not None:
                chosen.setdefault(option.retrieval, option.settings)
        return list(chosen.values())[:count]

    def allows(self, settings: Settings) -> bool:
        """Whether these may be tried."""
        allowed = [option.settings for option in self.considered if option.refused is None]
        if self._combined:
            return settings in allowed
        return all({name: value} in allowed for name, value in settings.items()) and not self._refusal(settings)

    def retrieval_under(self, settings: Settings) -> Retrieval | None:
        """What is retrieved under these; None if that was not measured."""
        return next((option.retrieval for option in self.considered if option.settings == settings), None)

    def _combinations(self, choices: Mapping[str, Sequence[Setting]]) -> list[Settings]:
        now = self._tuning.champion_settings
        if self._combined:
            all_values = (dict(zip(choices, values, strict=True)) for values in product(*choices.values()))
        else:
            all_values = ({**now, name: value} for name, values in choices.items() for value in values)
        changed = (
            {name: value for name, value in combination.items() if value != now[name]} for combination in all_values
        )
        return sorted(filter(None, changed), key=len)

    def _measured(self, settings: Settings) -> Considered:
        refusal = self._refusal(settings)
        if refusal is not None:
            return Considered(settings, None, refusal)
        evaluator, recorded = self._under(settings), self._under({})
        golds = Golds(verbatim=not rewrites(evaluator.system.operations))
        conversations = [outcome.conversation for outcome in self._pool]
        return Considered(settings, retrieval_of(evaluator, recorded, self._tuning.champion, conversations, golds))

    def _refusal(self, settings: Settings) -> str | None:
        try:
            self._under(settings)
        except ConfigError as error:
            return str(error)
        return None

    def _under(self, settings: Settings) -> Evaluator:
        return self._variants.under({**self._tuning.champion_settings, **settings})

    def _compared(self, option: Considered, all_measured: Sequence[Considered]) -> Considered:
        retrieval = option.retrieval
        if retrieval is None:
            return option
        # One value alone is no match for another setting's: together they may retrieve more than both.
        rivals = [other for other in all_measured if self._combined or {*other.settings} <= {*option.settings}]
        better = next((other for other in rivals if other.retrieval and retrieval.beaten_by(other.retrieval)), None)
        if better is None:
            return option
        why = f"with {settings_text(better.settings)} as much is retrieved in fewer tokens, or more in as few"
        return option._replace(refused=why)


def settings_text(settings: Settings) -> str:
    """Settings in words."""
    return ", ".join(f"{name} {value}" for name, value in settings.items()) or "the champion's settings"


def _rank(option: Considered, own: Considered) -> tuple[bool, bool, float, float]:
    if option.retrieval is None:
        return True, True, 0.0, 0.0
    saves = own.retrieval is not None and own.retrieval.beaten_by(option.retrieval)
    return False, not saves, -option.retrieval.recall, option.retrieval.tokens
