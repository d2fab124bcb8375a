"""What the rounds of every search share: their numbers, the conversations drawn first, and how a winner is crowned."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from optimizer.evaluation.evaluator import Outcome
from optimizer.evaluation.scores import Settings
from optimizer.gating.gate import GateDecision, GateOutcome
from optimizer.proposers.examples import Example
from optimizer.tuning.round import Change, RewriteRecord, Round
from optimizer.tuning.stopped import Stopped
from optimizer.tuning.tuning import ChampionUnscoredError, Tuning
from tracing.errors import BudgetExceededError
from tracing.systems.prompts import Candidate

PATIENCE, LIMITED_PATIENCE = 3, 60
"""Rounds in a row without a new champion that end an open-ended search: where nothing limits it, and under a budget,
which is there to be used."""

SCREENED = 2
"""Conversations on which the rewrites of a round are screened."""


class Rounds:
    """The numbers of a search's rounds, after those it has made, while there is a reason for another.

    As many as the settings say; or, if that is open, until a number of rounds in a row brought no new champion.

    Args:
        tuning: the search.
        patience: that number where nothing limits the search.

    Attributes:
        stopped: why there is no further one.
        last: whether none follows the present one; unknown, and so not, where their number is open. Of a round that a
            resumed run had made, whether none was to follow then.
    """

    def __init__(self, tuning: Tuning, patience: int) -> None:
        self._tuning = tuning
        settings = tuning.settings
        self._patience = None if not settings.open_ended else LIMITED_PATIENCE if tuning.limited else patience
        self.stopped, self.last = Stopped("rounds"), False

    def __iter__(self) -> Iterator[int]:
        tuning, n, idle = self._tuning, 0, 0
        while n < tuning.settings.rounds if self._patience is None else idle < self._patience:
            before = tuning.champion, tuning.champion_settings
            n += 1
            last = self._patience is None and n == tuning.settings.rounds
            self.last = tuning.settings.made.get(tuning.last_round + 1, last)
            yield tuning.next_round
            idle = idle + 1 if (tuning.champion, tuning.champion_settings) == before else 0
        if self._patience is not None:
            self.stopped = Stopped("patience", str(idle))


def drawn(train: Sequence[Outcome], failed: Sequence[Example], *, seed: int) -> tuple[Outcome, ...]:
    """Outcomes of the champion on conversations drawn at random by `seed` from those where a prompt failed.

    The worst ones would mislead: their scores rise under any other prompt (regression to the mean).
    If the prompt failed on too few conversations, others are added.
    """
    failures = {example.case.conversation for example in failed}
    order = list(train)
    random.Random(seed).shuffle(order)  # noqa: S311 (a draw, not a secret)
    order.sort(key=lambda outcome: outcome.conversation.id not in failures)
    return tuple(order[:SCREENED])


def shuffled(outcomes: Sequence[Outcome], seed: int) -> list[Outcome]:
    """The outcomes in a random order of their conversations."""
    return random.Random(seed).sample(outcomes, len(outcomes))  # noqa: S311 (an order, not a secret)


def crown_winner(
    tuning: Tuning,
    this_round: Round,
    keys: Iterable[str],
    candidate: Candidate,
    settings: Settings | None = None,
    *,
    inherited: Iterable[RewriteRecord] = (),
) -> bool:
    """Make a winner the champion; where it may not be, its rewrites, and the settings noted last, get the reason.

    Args:
        tuning: the search.
        this_round: the one in which it won.
        keys: of its rewrites there, each of which must be approved.
        candidate, settings: what won; settings must be noted, and be approved too.
        inherited: rewrites of earlier rounds in it, which must be approved too.

    Raises:
        BudgetExceededError: a hard budget does not allow it.
    """
    keys = tuple(keys)
    changes: list[Change] = [*(this_round.rewrites[key] for key in keys), *inherited]
    if settings:
        changes += this_round.settings[-1:]
    if not all(map(tuning.approves, changes)):
        overrule(this_round, keys, GateOutcome.DECLINED, settings=bool(settings))
        return False
    try:
        crowned = tuning.crown(candidate, settings)
    except BudgetExceededError:
        overrule(this_round, keys, GateOutcome.OUT_OF_BUDGET, settings=bool(settings))
        raise
    except ChampionUnscoredError:
        # The gate had not met all validation conversations.
        overrule(this_round, keys, GateOutcome.UNSCORED, settings=bool(settings))
        return False
    if not crowned:
        overrule(this_round, keys, GateOutcome.UNCONFIRMED, settings=bool(settings))
    return crowned


def overrule(this_round: Round, keys: Iterable[str], outcome: GateOutcome, *, settings: bool = False) -> None:
    """Take back the decision on rewrites, and on the settings noted last if these won too."""
    for key in keys:
        rewrite = this_round.rewrites[key]
        this_round.rewrites[key] = replace(rewrite, gate=GateDecision(outcome, overruled=rewrite.gate))
    if settings and this_round.settings:
        noted = this_round.settings[-1]
        this_round.settings[-1] = replace(noted, gate=GateDecision(outcome, overruled=noted.gate))
