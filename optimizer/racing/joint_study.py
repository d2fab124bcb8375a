"""The joint choice of a round as an Optuna study: what was combined, and what it gained.

`optuna-dashboard` and `optuna.load_study` show it. The study decides nothing: the gate's paired tests on conversations
stop a combination or accept it, where Optuna has its `WilcoxonPruner`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optuna import Trial

    from optimizer.evaluation.evaluator import Outcome
    from optimizer.racing.study_storage import Studies

Choice = bool | int | float | str
Params = Mapping[str, Choice]
"""One combination: parameter → value."""


class JointStudy:
    """One round's study; every parameter is categorical.

    The value of a trial is its mean gain over what the round began with; its intermediate values are the gains on
    single conversations, at the place that the study's attribute `conversations` gives them.

    Args:
        name: of the study.
        studies: where it is kept.
        choices: parameter → values, the one that the round began with first.
        reference: outcomes of what the round began with, on all conversations of the round.

    Raises:
        RunError: it cannot be written. So do all methods.
    """

    def __init__(
        self,
        name: str,
        studies: Studies,
        choices: Mapping[str, Sequence[Choice]],
        reference: Sequence[Outcome],
    ) -> None:
        import optuna

        self._written = studies.written
        self._space = {key: optuna.distributions.CategoricalDistribution(values) for key, values in choices.items()}
        self._reference = {outcome.conversation.id: (at, outcome.score) for at, outcome in enumerate(reference)}
        self._trials: dict[frozenset[tuple[str, Choice]], Trial] = {}
        self._gains: dict[int, list[float]] = {}
        self._study = studies.create(name)
        with self._written():
            self._study.set_user_attr("conversations", list(self._reference))
            begin = {key: values[0] for key, values in choices.items()}
            self._study.add_trial(optuna.create_trial(params=begin, distributions=self._space, value=0.0))

    def report(self, params: Params, outcomes: Sequence[Outcome]) -> None:
        """A combination met these conversations; a tainted outcome has no gain."""
        with self._written():
            trial = self._trial(params)
            for outcome in outcomes:
                if outcome.tainted is None:
                    at, before = self._reference[outcome.conversation.id]
                    gain = outcome.score - before
                    self._gains.setdefault(trial.number, []).append(gain)
                    trial.report(gain, at)

    def close(self, params: Params, reason: str) -> None:
        """A combination goes no further, for a reason; without any gain it counts as failed."""
        trial = self._trials.pop(frozenset(params.items()), None)
        if trial is None:
            return
        gains = self._gains.get(trial.number)
        with self._written():
            trial.set_user_attr("gate", reason)
            self._tell(trial, sum(gains) / len(gains) if gains else None)

    def end(self) -> None:
        """No further combination is raced; those that were not closed count as failed."""
        with self._written():
            for trial in self._trials.values():
                self._tell(trial, None)
        self._trials.clear()

    def _trial(self, params: Params) -> Trial:
        key = frozenset(params.items())
        if key not in self._trials:
            self._study.enqueue_trial(dict(params))
            self._trials[key] = self._study.ask(self._space)
        return self._trials[key]

    def _tell(self, trial: Trial, value: float | None) -> None:
        from optuna.trial import TrialState

        self._study.tell(trial, value, state=TrialState.FAIL if value is None else TrialState.COMPLETE)
