"""The queue of a search's comparisons: whichever is expected to gain the most a call comes next.

A text is measured on more recorded inputs, or a challenger meets more whole conversations, up to the gate's next look,
or a new round begins, with new texts. What is clearly ahead goes on at once. What falls behind waits, and so does
what promises little, since a recorded input takes but one call. What is expected is what a normal belief says; the
gate decides, and counts what recorded inputs showed as evidence beside the conversations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from optimizer.evaluation.evaluator import Outcome
from optimizer.gating.gate import LookSchedule, look_schedule
from optimizer.gating.verdict import SPREAD
from optimizer.racing.beliefs import NOTHING, Belief, Prospect, Venture, rate_of_measuring
from optimizer.search.joint_choice import MOST, Combination, JointChoice, further
from optimizer.search.measured_texts import BATCH, Arm
from optimizer.search.prompt_search import LocalStep, PromptSearch
from optimizer.tuning.tuning import Tuning

MISFIT = 0.03
"""Standard deviation of what a text gains end to end, about what its gain on recorded inputs lets expect. A choice."""

SUPPORT = 1.0
"""Standard errors that texts must have gained to be tried together: one that does harm would spoil the others."""

UNSEEN = 0.03
"""Gain end to end that the gate finds too rarely to be worth a search. A choice."""

WORTHLESS = 1e-5
"""Expected gain a call under which nothing is tried: a hundredth in a thousand calls. A choice."""

WORTHLESS_AGAIN = 1e-4
"""The same of more inputs for a text, where no new texts follow that this could make room for. A choice."""

Order = Callable[[Combination], Sequence["Outcome"]]
"""The champion's outcomes with which a combination is compared, in the order in which their conversations are used."""

_Key = frozenset[tuple[str, object]]


class Challenger(NamedTuple):
    """A combination, what it is expected to gain end to end, and the calls that a conversation takes with it.

    What is `urgent` goes first, since people wrote it.
    """

    combination: Combination
    prior: Belief
    calls: float
    urgent: bool = False

    @property
    def belief(self) -> Belief:
        """What it is expected to gain once it has met conversations."""
        met, gain = len(self.combination.outcomes), self.combination.gain
        return self.prior.after(gain, SPREAD / math.sqrt(met)) if met and gain is not None else self.prior


class _Step(NamedTuple):
    """What could be done next, and the gain that it is expected to bring a call; without `take`, writing new texts.

    New texts are written when the next round begins.
    """

    rate: float
    take: Callable[[], None] | None


class Comparisons:
    """The comparisons with one champion; those without a decision go on in the next round.

    Args:
        tuning: of the run.

    Attributes:
        met: the combinations that have met whole conversations in this round.
        idle: whether nothing was compared in this round.
    """

    def __init__(self, tuning: Tuning) -> None:
        self._tuning = tuning
        self._known: dict[_Key, Combination] = {}
        self.met: dict[_Key, Combination] = {}
        self.idle = False

    def of_texts(
        self,
        joint: JointChoice,
        searches: Mapping[str, PromptSearch],
        loss: Mapping[str, float],
        order: Order,
        *,
        last: bool = False,
    ) -> Combination | None:
        """Compare texts while anything is expected to be gained.

        Args:
            joint: evaluates combinations.
            searches: prompt name → its texts.
            loss: prompt name → what is expected to be gained end to end where nothing is left to gain on its
                recorded inputs.
            order: whom a combination is compared with.
            last: whether no round follows, with new texts.

        Returns:
            What the gate has accepted.

        Raises:
            BudgetExceededError: a hard budget does not allow the next call.
        """
        calls = {name: self._tuning.calls_with([name]) for name in searches}
        self.met = {}

        # Where nothing new is left to try, or nothing was worth a call, a budget is there to be used.
        dry = self.idle or not any(search.fresh for search in searches.values())
        renewed = self._tuning.limited and not dry and not last
        least = 0.0 if self._tuning.limited and dry else WORTHLESS
        least_again = least if renewed or not least else WORTHLESS_AGAIN

        def steps() -> Iterator[_Step]:
            if len(self.met) >= MOST and all(combination.decision for combination in self.met.values()):
                return
            worth = {name: loss[name] / search.room for name, search in searches.items()}
            challengers = [self._so_far(challenger) for challenger in _challengers(searches, worth, calls)]
            shown = {name: _shown(name, challengers, worth[name]) for name in searches}
            ventures = [(challenger, self._venture(challenger, order)) for challenger in challengers]
            ready: dict[str, Collection[str]] = {}
            for name, search in searches.items():
                alone = _alone(name, ventures)
                rate_of = partial(_rate_of_text, worth[name], calls[name] * len(self._tuning.validation))
                if renewed:
                    rival = next(iter(alone.values()), NOTHING)
                    promised = (rate_of(prospects, 1 + BATCH, rival) for prospects in search.of_next(shown[name]))
                    yield _Step(max(promised, default=0.0), None)
                measuring: list[_Step] = []
                for step in search.steps(UNSEEN / worth[name], shown[name]):
                    own = {rewrite.text for rewrite in step.rewrites}
                    rival = next((venture for text, venture in alone.items() if text not in own), NOTHING)
                    rate = math.inf if step.urgent else rate_of(step.prospects, step.inputs + (not own), rival)
                    if rate > least_again or not step.again:
                        measuring.append(_Step(rate, partial(self._take, search, step)))
                yield from measuring
                # No text waits for inputs that are worth nothing.
                ready[name] = search.ready(UNSEEN / worth[name], shown[name]) if measuring else alone.keys()
            yield from self._steps(joint, ventures, ready, order)

        self.idle = True
        return self._accepted(steps, least)

    def _accepted(self, steps: Callable[[], Iterator[_Step]], least: float) -> Combination | None:
        while (step := max(steps(), key=lambda step: step.rate, default=None)) is not None and step.rate > least:
            if step.take is None:
                return None
            step.take()
            accepted = next((combination for combination in self.met.values() if combination.accepted), None)
            if accepted is not None:
                return accepted
        return None

    def _so_far(self, challenger: Challenger) -> Challenger:
        """The challenger as far as its combination has come."""
        combination = challenger.combination
        known = self._known.get(_key(combination), combination)
        return challenger._replace(
            combination=replace(combination, outcomes=known.outcomes, gain=known.gain, decision=known.decision)
        )

    def _steps(
        self,
        joint: JointChoice,
        ventures: Sequence[tuple[Challenger, Venture]],
        ready: Mapping[str, Collection[str]],
        order: Order,
    ) -> Iterator[_Step]:
        """What whole conversations the challengers could meet next; `ready` are the texts that may begin with them."""
        for challenger, venture in ventures:
            combination, key = challenger.combination, _key(challenger.combination)
            champion = order(combination)
            if combination.decision is not None or not champion or (key not in self.met and len(self.met) >= MOST):
                continue
            begins = not (challenger.urgent or combination.outcomes)
            if begins and any(scored.rewrite.text not in ready[name] for name, scored in combination.parts.items()):
                continue
            schedule = look_schedule(len(champion))
            take = partial(self._meet, joint, challenger, champion[: _look(schedule, combination)], schedule)
            yield _Step(math.inf if challenger.urgent else venture.rate, take)

    def _venture(self, challenger: Challenger, order: Order) -> Venture:
        """To go on with a challenger until it may be crowned."""
        combination, champion = challenger.combination, order(challenger.combination)
        if combination.decision is not None or not champion:
            return NOTHING
        look = _look(look_schedule(len(champion)), combination)
        # Nothing is crowned before it has met those of validation.
        until = max(look, min(len(self._tuning.validation), len(champion)))
        return Venture(challenger.belief.improvement(UNSEEN), challenger.calls * (until - len(combination.outcomes)))

    def _take(self, search: PromptSearch, step: LocalStep) -> None:
        search.take(step)
        if step.rewrites:
            self.idle = False

    def _meet(
        self, joint: JointChoice, challenger: Challenger, champion: Sequence[Outcome], schedule: LookSchedule
    ) -> None:
        """Evaluate a challenger up to the gate's next look."""
        combination = challenger.combination
        measured = all(scored.inputs for scored in combination.parts.values())
        prior = challenger.prior if measured else None
        combination = further(combination, champion, schedule, joint.evaluate, prior)
        self.idle = False
        self.met[_key(combination)] = self._known[_key(combination)] = combination


def _challengers(
    searches: Mapping[str, PromptSearch], worth: Mapping[str, float], calls: Mapping[str, float]
) -> Iterator[Challenger]:
    """The best text of each prompt together, and each text alone."""
    arms = {name: search.arms() for name, search in searches.items()}
    best = {name: own[0] for name, own in arms.items() if own and _is_supported(own[0])}
    if len(best) > 1:
        yield _challenger(best, worth, calls)
    for name, own in arms.items():
        yield from (_challenger({name: arm}, worth, calls) for arm in own)


def _challenger(arms: Mapping[str, Arm], worth: Mapping[str, float], calls: Mapping[str, float]) -> Challenger:
    mean = sum(worth[name] * arm.belief.mean for name, arm in arms.items())
    deviation = math.hypot(*(worth[name] * arm.belief.deviation for name, arm in arms.items()))
    combination = Combination({name: arm.scored for name, arm in arms.items()})
    urgent = all(arm.by_hand for arm in arms.values())
    return Challenger(combination, _end_to_end(mean, deviation), max(calls[name] for name in arms), urgent)


def _look(schedule: LookSchedule, combination: Combination) -> int:
    """The conversations that a combination has met at the gate's next look."""
    return next(count for count in schedule.counts if count > len(combination.outcomes))


def _alone(prompt: str, ventures: Sequence[tuple[Challenger, Venture]]) -> dict[str, Venture]:
    """To go on with a prompt's texts, each alone: what brings the most a call first."""
    alone = {
        challenger.combination.parts[prompt].rewrite.text: venture
        for challenger, venture in ventures
        if challenger.combination.parts.keys() == {prompt} and not challenger.urgent
    }
    return dict(sorted(alone.items(), key=lambda item: -item[1].rate))


def _shown(prompt: str, challengers: Sequence[Challenger], worth: float) -> dict[str, float]:
    """The prompt's texts that met whole conversations, with the gain on recorded inputs that these let expect."""
    # What the gate rejected is no better than the champion.
    return {
        challenger.combination.parts[prompt].rewrite.text: 0.0
        if challenger.combination.decision is not None
        else challenger.belief.mean / worth
        for challenger in challengers
        if challenger.combination.outcomes and challenger.combination.parts.keys() == {prompt}
    }


def _is_supported(arm: Arm) -> bool:
    """Whether a gain is more than chance makes; what people wrote or nobody measured is not asked."""
    return arm.by_hand or not arm.scored.inputs or arm.scored.gain > SUPPORT * arm.scored.noise


def _key(combination: Combination) -> _Key:
    return frozenset((name, scored.rewrite.text) for name, scored in combination.parts.items())


def _rate_of_text(worth: float, calls: float, prospects: Iterable[Prospect], inputs: int, rival: Venture) -> float:
    """The expected gain a call of measuring a text on recorded inputs, and of crowning it if it does well there.

    Args:
        worth: the gain end to end of one on recorded inputs.
        calls: until it is crowned.
        prospects: what may be believed of it once it was measured.
        inputs: to measure it on.
        rival: to go on with another text instead.
    """

    def venture(belief: Belief) -> Venture:
        return Venture(_end_to_end(worth * belief.mean, worth * belief.deviation).improvement(UNSEEN), calls)

    return rate_of_measuring(prospects, inputs, venture, rival)


def _end_to_end(mean: float, deviation: float) -> Belief:
    """What is believed of a gain that recorded inputs let expect."""
    return Belief(mean, math.hypot(MISFIT, deviation))
