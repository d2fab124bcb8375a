"""The joint choice of one round: a few texts of the prompts meet the whole pipeline, alone and together.

Prompts that help only together are found, and so are texts that help their own operation but not the answers. All of it
is recorded in a study. Settings of the system meet it in a round of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from statistics import stdev
from typing import TYPE_CHECKING

from optimizer.evaluation.scores import settings_text
from optimizer.gating.gate import GateDecision, GateOutcome, LookSchedule, compare
from optimizer.gating.verdict import SPREAD
from optimizer.racing.joint_study import JointStudy, Params

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Outcome
    from optimizer.evaluation.scores import Setting, Settings
    from optimizer.racing.beliefs import Belief
    from optimizer.racing.local_scores import LocalScore
    from optimizer.tuning.round import Round
    from optimizer.tuning.tuning import Tuning
    from tracing.systems.prompts import Candidate

MOST = 4
"""Combinations of texts that meet whole conversations in one round."""


@dataclass(frozen=True, slots=True)
class Combination:
    """Texts that replace the champion's, and how the system does with them.

    Attributes:
        parts: prompt name → its text with its local score.
        settings: name → value of the system's settings that differ from the champion's.
        outcomes: on the conversations it has met, in order.
        gain: mean paired difference to the champion on them; None if one could not be scored.
        decision: the gate's; None if another combination was ahead before it came to one.
    """

    parts: Mapping[str, LocalScore]
    outcomes: tuple[Outcome, ...] = ()
    gain: float | None = 0.0
    decision: GateDecision | None = None
    settings: Settings = field(default_factory=dict)

    @property
    def accepted(self) -> bool:
        """Whether the gate accepted it."""
        return self.decision is not None and self.decision.accepted

    def candidate(self, champion: Candidate) -> Candidate:
        """The champion with these texts."""
        return {**champion, **{name: scored.rewrite.text for name, scored in self.parts.items()}}


Evaluate = Callable[["Combination", Sequence["Outcome"]], Sequence["Outcome"]]
"""Evaluates a combination on the conversations of some of the champion's outcomes."""


def further(
    combination: Combination,
    champion: Sequence[Outcome],
    schedule: LookSchedule,
    evaluate: Evaluate,
    prior: Belief | None = None,
) -> Combination:
    """The combination evaluated on those conversations that it has not met, and what the gate says then.

    Args:
        combination: to go on with.
        champion: the champion's outcomes until this look, in the order in which their conversations are used.
        schedule: of the gate's looks.
        evaluate: evaluates a combination.
        prior: what it is expected to gain by recorded inputs; None if it met none.

    Raises:
        BudgetExceededError: a hard budget does not allow it.
    """
    before = len(combination.outcomes)
    outcomes = (*combination.outcomes, *evaluate(combination, champion[before:]))
    comparison = compare(champion, outcomes)
    gain = comparison.delta if comparison.unscored is None else None
    if prior is not None and gain is not None and len(outcomes) > 1:
        error = max(SPREAD, stdev(comparison.deltas)) / math.sqrt(len(outcomes))
        comparison = replace(comparison, doubt=prior.after(gain, error).doubt)
    return replace(combination, outcomes=outcomes, gain=gain, decision=schedule.decision(comparison))


CHAMPION = "champion"
"""In a study, the text that the round began with."""


class JointChoice(AbstractContextManager["JointChoice"]):
    """What meets whole conversations in one round, texts or settings, recorded in a study. A context manager.

    Args:
        tuning: of the run.
        this_round: the one whose study it is.
        prompts: names of those whose texts may; where there are none, settings do.
        reference: outcomes of what the round begins with, on all train and validation conversations.
    """

    def __init__(self, tuning: Tuning, this_round: Round, prompts: Iterable[str], reference: Sequence[Outcome]) -> None:
        self._tuning, self._round, self._begun = tuning, this_round, dict(tuning.champion)
        self._texts: dict[str, dict[str, LocalScore]] = {name: {} for name in prompts}
        """By prompt, its texts by their labels in the study: numbers, as they came."""
        choices: dict[str, Sequence[Setting]] = {
            f"prompt {name}": [CHAMPION, *map(str, range(1, MOST + 1))] for name in self._texts
        }
        now = tuning.champion_settings
        for name, values in tuning.variants.choices.items() if tuning.variants and not self._texts else ():
            choices[f"setting {name}"] = [now[name], *(value for value in values if value != now[name])]
        self._study = JointStudy(f"round {this_round.n}", tuning.settings.studies, choices, reference)

    def __exit__(self, *error: object) -> None:
        self._study.end()

    def evaluate(self, combination: Combination, against: Sequence[Outcome]) -> Sequence[Outcome]:
        """Evaluate a combination on the conversations of some of the champion's outcomes.

        Raises:
            BudgetExceededError: a hard budget does not allow it.
            RunError: the study cannot be written.
        """
        tuning = self._tuning
        for name, scored in combination.parts.items():
            if scored.rewrite.text not in (known.rewrite.text for known in self._texts[name].values()):
                self._texts[name][str(len(self._texts[name]) + 1)] = scored
        changed = settings_text(combination.settings) if combination.settings else " and ".join(combination.parts)
        tuning.allow(len(against))
        conversations = [outcome.conversation for outcome in against]
        outcomes = tuning.measure(
            combination.candidate(tuning.champion),
            conversations,
            f"round {self._round.n}: another {changed}",
            settings=combination.settings,
        )
        self._study.report(self._params(combination), outcomes)
        return outcomes

    def close(self, combination: Combination) -> None:
        """Record in the study how far a combination got.

        Raises:
            RunError: the study cannot be written.
        """
        self._study.close(self._params(combination), str(combination.decision or GateOutcome.OVERTAKEN))

    def _params(self, combination: Combination) -> Params:
        params: dict[str, Setting] = {
            f"prompt {name}": self._label(name, text)
            for name, text in combination.candidate(self._tuning.champion).items()
            if name in self._texts
        }
        if params:
            return params
        settings = {**self._tuning.champion_settings, **combination.settings}
        return {f"setting {name}": value for name, value in settings.items()}

    def _label(self, prompt: str, text: str) -> str:
        if text == self._begun[prompt]:
            return CHAMPION
        return next(label for label, local_score in self._texts[prompt].items() if local_score.rewrite.text == text)
