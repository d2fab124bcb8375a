"""The joint choice of one round: the few best texts of each prompt meet the whole pipeline, alone and together.

Prompts that help only together are found, and so are texts that help their own operation but not the answers. Settings
of the system are tried with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING

from optimizer.gating.gate import GateDecision, GateOutcome, LookSchedule, compare, look_schedule
from optimizer.proposers.rewrites import HAND
from optimizer.racing.joint_study import JointStudy, Params
from optimizer.search.retrieved_settings import RetrievedSettings, settings_text
from optimizer.tuning.round import SettingsRecord

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Outcome
    from optimizer.evaluation.scores import Setting, Settings
    from optimizer.evaluation.variants import Variants
    from optimizer.racing.halving import LocalScore
    from optimizer.tuning.round import Round
    from optimizer.tuning.tuning import Tuning
    from tracing.systems.prompts import Candidate

SURVIVORS = 2
"""Combinations that go on after the first look at a race; after any later one only the best does."""

MOST = 4
"""Combinations that are tried in one round, if the budget allows for them."""

SUPPORT, SUPPORT_OF_ONE = 1.0, 2.0
"""Standard errors that a text must gain to be tried together with others: if these are raced alone too, and if the
budget allows for one combination only. A choice."""


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


def combinations_of(
    finalists: Mapping[str, Sequence[LocalScore]], worth: Mapping[str, float] | None = None, most: int = MOST
) -> list[Combination]:
    """The best of each prompt together, and then texts alone, those first that are expected to fix the most answers.

    Together are only texts that gained more than the standard error of that: with few inputs a text that does harm is
    often the best one by chance, and would spoil the others. Where one combination is all that can be raced, nothing
    would tell that the others do well without it: then it takes twice that error.

    Args:
        finalists: prompt name → its texts, best first.
        worth: prompt name → share of the wrong answers that are its fault; equal shares if not given.
        most: how many can be raced.
    """
    support = SUPPORT if most > 1 else SUPPORT_OF_ONE
    best = {name: scored[0] for name, scored in finalists.items() if scored and _is_supported(scored[0], support)}
    together = [Combination(best)] if len(best) > 1 else []
    ranks = range(max(map(len, finalists.values()), default=0))
    ranked = [entry for rank in ranks for entry in _at(finalists, rank)]
    ranked.sort(key=lambda entry: -entry[1].expected * (1.0 if worth is None else worth.get(entry[0], 0.0)))
    return [*together, *(Combination({name: scored}) for name, scored in ranked)][:most]


def _at(finalists: Mapping[str, Sequence[LocalScore]], rank: int) -> list[tuple[str, LocalScore]]:
    return [(name, scored[rank]) for name, scored in finalists.items() if len(scored) > rank]


def _is_supported(scored: LocalScore, errors: float) -> bool:
    """Whether a gain is more than so many standard errors; what people wrote or nobody measured is not asked."""
    return scored.rewrite.source == HAND or not scored.inputs or scored.gain > errors * scored.error


def raced(combinations: Sequence[Combination], champion: Sequence[Outcome], evaluate: Evaluate) -> list[Combination]:
    """Race combinations over growing numbers of conversations, until the gate has decided on each, or on the best.

    Args:
        combinations: to race.
        champion: the champion's outcomes, in the order in which their conversations are used.
        evaluate: evaluates a combination.

    Returns:
        All combinations as far as they got; the first one won if its decision is to accept it.

    Raises:
        BudgetExceededError: a hard budget does not allow the next evaluation.
    """
    racing, dropped, schedule = list(combinations), list[Combination](), look_schedule(len(champion))
    for number, count in enumerate(schedule.counts):
        ranking = sorted(
            (_further(combination, champion[:count], schedule, evaluate) for combination in racing), key=_rank
        )
        if ranking and ranking[0].accepted:
            return [ranking[0], *map(_beaten, ranking[1:]), *dropped]
        undecided = [combination for combination in ranking if combination.decision is None]
        racing = undecided[: 1 if number else SURVIVORS]
        dropped = [*[combination for combination in ranking if combination not in racing], *dropped]
    return [*racing, *dropped]


def most_evaluations(conversations: int, combinations: int = MOST) -> int:
    """Most evaluations of a conversation that a race of so many combinations over this many conversations makes."""
    before, count, racing = 0, 0, combinations
    for number, reached in enumerate(look_schedule(conversations).counts):
        count += racing * (reached - before)
        before, racing = reached, min(racing, 1 if number else SURVIVORS)
    return count


def affordable_combinations(conversations: int, evaluations: float | None) -> int:
    """How many combinations can race over so many conversations within a number of evaluations; one at least."""
    if evaluations is None:
        return MOST
    return max([1, *(count for count in range(1, MOST + 1) if most_evaluations(conversations, count) <= evaluations)])


def _rank(combination: Combination) -> tuple[bool, float]:
    """What the gate accepts first, then by gain."""
    return not combination.accepted, math.inf if combination.gain is None else -combination.gain


def _beaten(combination: Combination) -> Combination:
    """The combination with the decision that not it was accepted, but a better one."""
    if combination.decision is None or not combination.decision.accepted:
        return combination
    return replace(combination, decision=replace(combination.decision, outcome=GateOutcome.OUTDONE))


def _further(
    combination: Combination, champion: Sequence[Outcome], schedule: LookSchedule, evaluate: Evaluate
) -> Combination:
    """The combination evaluated on those conversations that it has not met, and what the gate says then."""
    before = len(combination.outcomes)
    outcomes = (*combination.outcomes, *evaluate(combination, champion[before:]))
    comparison = compare(champion, outcomes)
    gain = comparison.delta if comparison.unscored is None else None
    return replace(combination, outcomes=outcomes, gain=gain, decision=schedule.decision(comparison))


BEST = 2
"""Settings that are tried because of what they retrieve; the sampler draws what else is tried."""

CHAMPION = "champion"
"""In a study, the text that the round began with."""


class JointChoice(AbstractContextManager["JointChoice"]):
    """The races of one round, recorded in a study. A context manager.

    Args:
        tuning: of the run.
        this_round: notes what settings were tried.
        finalists: prompt name → its texts to choose from, best first.
        reference: outcomes of what the round begins with, on all train and validation conversations.
    """

    def __init__(
        self,
        tuning: Tuning,
        this_round: Round,
        finalists: Mapping[str, Sequence[LocalScore]],
        reference: Sequence[Outcome],
    ) -> None:
        self._tuning, self._round, self._begun = tuning, this_round, dict(tuning.champion)
        self._finalists = {
            prompt: {
                f"{rank}: {local_score.rewrite.source}": local_score for rank, local_score in enumerate(scored, start=1)
            }
            for prompt, scored in finalists.items()
        }
        self._considered: RetrievedSettings | None = None
        choices: dict[str, Sequence[Setting]] = {
            f"prompt {name}": [CHAMPION, *labels] for name, labels in self._finalists.items()
        }
        now = tuning.champion_settings
        for name, values in tuning.variants.choices.items() if tuning.variants is not None else ():
            choices[f"setting {name}"] = [now[name], *(value for value in values if value != now[name])]
        seed = tuning.seed_of(this_round.n)
        self._study = JointStudy(f"round {this_round.n}", tuning.settings.studies, choices, reference, seed)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._study.end()

    def raced(self, combinations: Sequence[Combination], order: Sequence[Outcome]) -> list[Combination]:
        """Race combinations with the champion, as `optimizer.search.joint_choice.raced`.

        Raises:
            BudgetExceededError: a hard budget does not allow the next evaluation.
            RunError: the study cannot be written.
        """
        tuning = self._tuning
        what = "settings" if any(combination.settings for combination in combinations) else "joint choice"
        count = len(combinations)
        phase = f"round {self._round.n}: {what} of {count} combination{'s' * (count != 1)}"

        def evaluate(combination: Combination, against: Sequence[Outcome]) -> Sequence[Outcome]:
            tuning.allow(len(against))
            conversations = [outcome.conversation for outcome in against]
            candidate = combination.candidate(tuning.champion)
            outcomes = tuning.measure(candidate, conversations, phase, settings=combination.settings)
            self._study.report(self._params(combination), outcomes)
            return outcomes

        ranked = raced(combinations, order, evaluate)
        for combination in ranked:
            self._study.close(self._params(combination), str(combination.decision or GateOutcome.OVERTAKEN))
        return ranked

    def with_settings(self, variants: Variants, pool: Sequence[Outcome]) -> list[Combination]:
        """What to race under other settings: the most promising by what they retrieve, and what the sampler draws.

        Args:
            variants: the system under other settings.
            pool: the champion's outcomes on the conversations whose questions are asked.

        Raises:
            BudgetExceededError: a hard budget does not allow an embedding call.
        """
        phase = f"round {self._round.n}: what other settings retrieve"
        self._considered = considered = RetrievedSettings(self._tuning, variants, phase, pool)
        for option in considered.considered:
            if option.refused is not None:
                self._round.settings.append(
                    self._record(option.settings, GateDecision(GateOutcome.NOT_TRIED, option.refused))
                )
        combinations = [Combination({}, settings=settings) for settings in considered.best(BEST)]
        for params in self._study.drawn([self._params(combination) for combination in combinations]):
            drawn = self._combination(params)
            if len(combinations) < MOST and drawn is not None and drawn.settings and considered.allows(drawn.settings):
                combinations.append(drawn)
        return combinations

    def note(self, combination: Combination) -> None:
        """Note how far a combination with other settings got; it comes last among the settings tried."""
        decision = combination.decision
        record = self._record(combination.settings, decision, combination.gain, tuple(combination.parts))
        self._round.settings.append(record)
        if decision is not None and decision.accepted:
            gate = replace(decision, about=f"with {settings_text(combination.settings)}")
            for scored in combination.parts.values():
                before = self._round.rewrites[scored.rewrite.text]
                self._round.rewrites[scored.rewrite.text] = replace(before, gate=gate)

    def _record(
        self,
        settings: Mapping[str, Setting],
        gate: GateDecision | None,
        gain: float | None = None,
        prompts: tuple[str, ...] = (),
    ) -> SettingsRecord:
        retrieval = self._considered.retrieval_under(settings) if self._considered is not None else None
        recall, tokens = (retrieval.recall, retrieval.tokens) if retrieval is not None else (None, None)
        return SettingsRecord(dict(settings), prompts, recall, tokens, gain, gate)

    def _params(self, combination: Combination) -> Params:
        texts = combination.candidate(self._tuning.champion)
        params: dict[str, Setting] = {f"prompt {name}": self._label(name, texts[name]) for name in self._finalists}
        settings = {**self._tuning.champion_settings, **combination.settings}
        return params | {f"setting {name}": value for name, value in settings.items()}

    def _combination(self, params: Params) -> Combination | None:
        """The combination of these parameters; None if it goes back to a text that lost in this round."""
        champion = self._tuning.champion
        parts: dict[str, LocalScore] = {}
        for name, labels in self._finalists.items():
            label = params[f"prompt {name}"]
            if label == self._label(name, champion[name]):
                continue
            if label == CHAMPION:
                return None
            parts[name] = labels[str(label)]
        now = self._tuning.champion_settings
        changed = {name: params[f"setting {name}"] for name, value in now.items() if params[f"setting {name}"] != value}
        return Combination(parts, settings=changed)

    def _label(self, prompt: str, text: str) -> str:
        if text == self._begun[prompt]:
            return CHAMPION
        return next(label for label, local_score in self._finalists[prompt].items() if local_score.rewrite.text == text)
