"""Settings of the system are chosen before texts: by what is retrieved under them, and confirmed by the gate.

So prompts are blamed for what they are given under the settings that they will have, and the report tells what
settings gained from what prompts did.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from optimizer.gating.gate import GateDecision, GateOutcome
from optimizer.objectives.retrieval import Retrieval
from optimizer.search.joint_choice import MOST, Combination, JointChoice
from optimizer.search.race import raced
from optimizer.search.retrieved_settings import Considered, considered_settings, silent
from optimizer.search.rounds import crown_winner, shuffled
from optimizer.tuning.round import Round, blame_shares
from optimizer.tuning.stopped import Stopped
from optimizer.tuning.tuning import Tuning
from tracing.errors import BudgetExceededError

TRIED = 2
"""Settings that meet whole conversations, at most: each takes chat calls that texts then lack."""

SHORTER = 2 / 3
"""Part of the most promising context that another is at most to be a shorter one. A choice."""


def choose_settings(tuning: Tuning) -> Stopped:
    """A round that tries other settings with the champion's texts; those that the gate accepts become the champion's.

    There is none where no setting may be tuned, or other settings are the champion's by now.

    They are chosen by what is retrieved for questions of train, without a chat call. Validation conversations come
    first when they race, since they had no part in that. Settings that change nothing of what is retrieved, but what is
    built or replied, race in a second round.

    Returns:
        Why no further settings are tried.

    Raises:
        BudgetExceededError: a hard budget ended it.
    """
    n, variants = tuning.next_round, tuning.variants
    if variants is None or tuning.champion_settings != variants.own:
        return Stopped("rounds")
    if not _fails(tuning):
        return Stopped("nothing-wrong")
    _, signals = tuning.attribute(n)
    with tuning.round(n) as this_round:
        this_round.blame = blame_shares(signals.signals)
        phase = f"round {n}: what other settings retrieve"
        champion = tuning.champion, tuning.champion_settings
        own, considered = considered_settings(variants, champion, tuning.train, partial(tuning.step, phase))
        this_round.retrieved = own
        untold = silent(own, considered) if own else []
        names = {name for option in untold for name in option.settings}
        told = [option for option in considered if names.isdisjoint(option.settings) or option.retrieval is None]
        is_told = any(option.retrieval for option in told)
        racing = racing_of(own, told)
        this_round.settings += [option.not_tried() for option in told if option not in racing]
        if racing:
            _race(tuning, this_round, racing)
        if untold and not is_told:
            _race_untold(tuning, this_round, untold)
    if untold and is_told and _fails(tuning):
        _, signals = tuning.attribute(n + 1)
        with tuning.round(n + 1) as this_round:
            this_round.blame = blame_shares(signals.signals)
            _race_untold(tuning, this_round, untold)
    return Stopped("rounds")


def racing_of(own: Retrieval | None, considered: Sequence[Considered]) -> list[Considered]:
    """The most promising, and a shorter one, since how much a reader loses in a long text depends on the model.

    The shorter one is no longer than what is read now, or where the most promising is not either, at most two thirds of
    that. Where nothing is that short, what retrieves the most takes its place if the first is longer than now.
    """
    allowed = [(option, option.retrieval) for option in considered if option.refused is None and option.retrieval]
    if own is None or not allowed:
        return []
    (best, retrieval), *others = allowed
    is_longer = retrieval.tokens > own.tokens
    limit = own.tokens if is_longer else SHORTER * retrieval.tokens
    racing = [best, *(option for option, retrieval in others if retrieval.tokens <= limit)][:TRIED]
    if is_longer and others and len(racing) < TRIED:
        racing.append(max(others, key=lambda pair: pair[1].recall)[0])
    return racing


def _fails(tuning: Tuning) -> bool:
    """Whether an answer on train is wrong; blame is told only of a round that is made."""
    return not all(case.passed for outcome in tuning.outcomes("train") for case in outcome.cases)


def _race_untold(tuning: Tuning, this_round: Round, untold: Sequence[Considered]) -> None:
    """Race values that retrieval does not tell apart; what is retrieved under them may be another by now."""
    options = [option._replace(retrieval=None, refused=None) for option in untold]
    beyond = GateDecision(GateOutcome.NOT_TRIED, f"{MOST} others are")
    this_round.settings += [option.record(beyond) for option in options[MOST:]]
    _race(tuning, this_round, options[:MOST])


def _race(tuning: Tuning, this_round: Round, racing: Sequence[Considered]) -> None:
    champion = [*tuning.outcomes("validation"), *tuning.outcomes("train")]
    validation, seed = len(tuning.validation), tuning.settings.seed
    order = shuffled(champion[:validation], seed) + shuffled(champion[validation:], seed)
    try:
        with JointChoice(tuning, this_round, (), champion) as joint:
            ranked = raced([Combination({}, settings=option.settings) for option in racing], order, joint.evaluate)
            for combination in ranked:
                joint.close(combination)
    except BudgetExceededError:
        for option in racing:
            this_round.settings.append(option.record(GateDecision(GateOutcome.OUT_OF_BUDGET)))
        raise
    by_settings = {str(option.settings): option for option in racing}
    # The winner last: whoever overrules it finds it there.
    for combination in reversed(ranked):
        option = by_settings[str(combination.settings)]
        this_round.settings.append(option.record(combination.decision, combination.gain))
    if ranked[0].accepted:
        crown_winner(tuning, this_round, (), tuning.champion, ranked[0].settings)
