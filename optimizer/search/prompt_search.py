"""The search of one prompt on its operation's recorded inputs: two generations of texts, raced by successive halving.

The first generation are what proposers make of the champion's text, and the champion with whole demonstrations. The
second are what they make of parents, and the best texts with the best demonstrations. Parents come from the pool of all
rounds: a text that is the best on some recorded inputs has something that others lack, whenever it was found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, islice, product
from typing import TYPE_CHECKING

from optimizer.proposers.demonstrations import DEMONSTRATIONS
from optimizer.proposers.examples import examples_of
from optimizer.proposers.rewrites import HAND, Rewrite, RewriteRequest
from optimizer.racing.halving import Halved, LocalScore, Pool, halved, parents_of
from optimizer.racing.whole_demonstrations import (
    DEMONSTRATED,
    demonstration_sets,
    whole_demonstrations,
    with_demonstrations,
    with_right_replies,
)
from optimizer.tuning.round import RewriteRecord
from tracing.errors import BudgetExceededError
from tracing.systems.protocol import stage_of

if TYPE_CHECKING:
    from attribution.cases import Attribution
    from attribution.signals import Signals
    from optimizer.objectives.local_evaluation import LocalEvaluation
    from optimizer.objectives.objective import Credit, RecordedInput
    from optimizer.proposers.rewrites import Demonstration
    from optimizer.tuning.round import Round
    from optimizer.tuning.tuning import Tuning

FINALISTS = 2
"""Texts of each prompt that meet the whole pipeline."""

REWRITES, FEWEST_REWRITES = 24, 6
"""Texts that the searches of one round begin with, together; and one prompt's search at least."""

DEMONSTRATED_SHARE, SECOND_SHARE = 1 / 3, 1 / 4
"""Parts of them with whole demonstrations, and of the second generation."""

STAKES = ((12.0, 8), (30.0, 3), (100.0, 2))
"""What is at stake, in needs or questions, on the inputs that texts have met at the end of each rung, and how many of
them go on."""

TRIED_TOGETHER = 2
"""Texts with the best scores that are tried with as many of the best sets of demonstrations."""


FEWEST_TEXTS = 4
"""Texts of the first generation that a search begins with however little its budget allows."""

PORTIONS = (1.0, 0.75, 0.5, 0.35, 0.25)
"""Portions of a whole search, in texts and in inputs, of which the largest that the budget allows is made."""

FEWEST_AT_STAKE = 6.0
"""What is at stake at the end of the first rung at least: on less, chance alone chooses who goes on."""

Rungs = Sequence[tuple[int, int]]
"""Inputs that texts have met at the end of each rung, and how many of them go on."""


def most_reruns(inputs: int) -> int:
    """Most calls of one prompt's search in a round over this many recorded inputs, at each of which one need is."""
    return _reruns(
        REWRITES + TRIED_TOGETHER**2, [(min(inputs, round(stake)), survivors) for stake, survivors in STAKES]
    )


def _reruns(texts: int, rungs: Rungs) -> int:
    """Calls for so many texts and the champion."""
    before, calls = 0, 0
    for count, survivors in rungs:
        calls += (texts + 1) * (count - before)
        before, texts = count, min(survivors, texts)
    return calls


class PromptSearch:
    """One prompt's search in one round.

    Args:
        tuning, local: of the run.
        this_round: notes what is tried.
        prompt: its name.
        inputs: recorded inputs of its operation, in the order in which they are used.
        demonstrations: those in the champion's text.
        tried: texts tried before; grows.
        pool: those that were measured, in any round; grows.
    """

    def __init__(
        self,
        tuning: Tuning,
        local: LocalEvaluation,
        this_round: Round,
        prompt: str,
        inputs: Sequence[RecordedInput],
        demonstrations: tuple[Demonstration, ...],
        tried: set[str],
        pool: Pool,
    ) -> None:
        self._tuning, self._local, self._round = tuning, local, this_round
        self._spec, self._objective = tuning.prompts[prompt], local.objectives[prompt]
        self._inputs, self._demonstrations, self._tried, self._pool = inputs, demonstrations, tried, pool
        self._seed = tuning.seed_of(this_round.n)

    def finalists(
        self,
        count: int,
        attributions: Sequence[Attribution],
        signals: Signals,
        *,
        measured: bool,
        calls: float | None = None,
    ) -> list[LocalScore]:
        """The texts that are worth asking the whole pipeline about.

        Args:
            count: texts to try; rewrites by hand are tried even if they exceed it.
            attributions: whose fault the champion's wrong answers are.
            signals: of the same.
            measured: whether gains on recorded inputs predict the answers, so that the best there are chosen.
            calls: that the search should get by with, by trying fewer texts on fewer inputs; None for any number.

        Raises:
            BudgetExceededError: a hard budget does not allow the next call.
        """
        rungs: Rungs = ()
        if measured:
            count, rungs = self._portioned(count, math.inf if calls is None else calls)
        else:
            # What nobody measures would be used up untried.
            count = FINALISTS
        request = self._request(count, attributions, signals)
        second = round(SECOND_SHARE * count) if measured else 0
        first = self._first(request, count - second)
        if not measured:
            self._tried.update(rewrite.text for rewrite in first)
            for rewrite in first:
                self._note(rewrite)
            written = [rewrite for rewrite in first if rewrite.source == HAND]
            return [LocalScore(rewrite, 0.0, 0.0, 0, {}) for rewrite in (written or first[:FINALISTS])]
        best, dropped = self._raced(first, request, second, rungs)
        for scored in (*best, *dropped):
            self._note(scored.rewrite, scored.gain)
        # What people wrote meets the whole pipeline, whatever it gains on recorded inputs.
        by_hand = [scored for scored in best if scored.rewrite.source == HAND]
        return by_hand or [scored for scored in best if scored.gain > 0][:FINALISTS]

    def _portioned(self, count: int, calls: float) -> tuple[int, Rungs]:
        """Number of texts and rungs of the largest portion of a search that makes no more than `calls`.

        If the smallest is too much, the last rungs are left out, but for the first.
        """
        texts = [min(count, max(FEWEST_TEXTS, round(portion * count))) for portion in PORTIONS]
        rungs = [self._reaching(portion) for portion in PORTIONS]
        ways = [*zip(texts, rungs, strict=True), *((texts[-1], rungs[-1][:depth]) for depth in (2, 1))]
        fitting = (way for way in ways if _reruns(way[0] + TRIED_TOGETHER**2, way[1]) <= calls)
        return next(fitting, ways[-1])

    def _reaching(self, portion: float) -> Rungs:
        """The rungs of a search with this portion of the usual stakes; all inputs if there is less at stake."""
        stakes = [(max(FEWEST_AT_STAKE, portion * stake), survivors) for stake, survivors in STAKES]
        sums = list(accumulate(map(self._objective.weight, self._inputs)))
        return [
            (next((number for number, sum_ in enumerate(sums, start=1) if sum_ >= stake), len(sums)), survivors)
            for stake, survivors in stakes
        ]

    def _request(self, count: int, attributions: Sequence[Attribution], signals: Signals) -> RewriteRequest:
        tuning, name = self._tuning, self._spec.name
        train = tuning.outcomes("train")
        failed, passed = examples_of(self._spec, train, attributions)
        blaming = (signal for signal in signals.signals if signal.prompt == name)
        return RewriteRequest(
            prompt=self._spec,
            stage=stage_of(tuning.operations, name),
            text=tuning.champion[name],
            candidate=dict(tuning.champion),
            signal=max(blaming, key=lambda signal: signal.loss, default=None),
            failed=with_right_replies(failed, self._objective, self._inputs),
            passed=passed,
            count=count,
            seed=self._seed,
            tried=frozenset(self._tried),
            earlier=self._pool.earlier(),
        )

    def _first(self, request: RewriteRequest, count: int) -> list[Rewrite]:
        """What proposers make of the champion's text, and it with sets of whole demonstrations."""
        sources, n = self._tuning.sources, self._round.n
        demonstrated_part = round(DEMONSTRATED_SHARE * count) if sources.demonstrates else 0
        offered = sources.propose(n, request, count - demonstrated_part, besides=(DEMONSTRATIONS,))
        # A rewrite of a text may keep what that shows; what people wrote stands for itself.
        inherited = self._demonstrations
        rewrites = [
            rewrite if rewrite.source == HAND else replace(rewrite, demonstrations=inherited) for rewrite in offered
        ]
        learned = {conversation.id for conversation in self._tuning.train}
        demonstrations = [
            demonstration
            for demonstration in whole_demonstrations(self._objective, self._spec, self._inputs)
            if demonstration.conversation in learned
        ]
        plain = Rewrite(self._spec.name, request.text, "", "")
        sets = demonstration_sets(demonstrations, self._seed)
        demonstrated = filter(None, (with_demonstrations(plain, chosen) for chosen in sets))
        return [*rewrites, *islice(filter(self._is_new, demonstrated), demonstrated_part)]

    def _second(
        self, scored: Sequence[LocalScore], measured: Sequence[RecordedInput], request: RewriteRequest, count: int
    ) -> list[Rewrite]:
        """What proposers make of parents, and the best texts with the best demonstrations.

        Args:
            scored: the best of the first generation.
            measured: the inputs that it has met, on which parents of all rounds are compared.
            request: for rewrites of the champion.
            count: rewrites of parents to ask for.
        """
        rewrites = list(filter(self._is_new, _together(scored)))
        known_credits = partial(self._local.known_credits, self._spec.name)
        parents = parents_of(self._pool.beside(request.text, measured, known_credits, self._objective.weight))
        for parent in parents if count else ():
            per_parent = -(-count // len(parents))
            tried = self._tried | {rewrite.text for rewrite in rewrites}
            parent_request = replace(
                request,
                text=parent.rewrite.text,
                count=per_parent,
                tried=frozenset(tried),
                earlier=self._pool.earlier(),
            )
            offered = self._tuning.sources.propose(
                self._round.n + 1, parent_request, per_parent, besides=(DEMONSTRATIONS,)
            )
            rewrites += [
                replace(
                    rewrite,
                    reason=f"{parent.rewrite.reason}; {rewrite.reason}",
                    demonstrations=parent.rewrite.demonstrations,
                )
                for rewrite in offered
                if rewrite.source != HAND
            ]
        return rewrites

    def _raced(self, first: Sequence[Rewrite], request: RewriteRequest, second: int, rungs: Rungs) -> Halved:
        tuning, weight = self._tuning, self._objective.weight
        phase = f"round {self._round.n}: replies of {self._spec.name} to recorded inputs"
        most = _reruns(len(first) + second + TRIED_TOGETHER**2, rungs)
        measured: set[tuple[str, str]] = set()
        reached = 0

        def measure(text: str, inputs: Sequence[RecordedInput]) -> Sequence[Credit | None]:
            tuning.allow(1)
            new = [recorded for recorded in inputs if (text, recorded.key) not in measured]
            before = len(measured)
            measured.update((text, recorded.key) for recorded in new)

            def progress(count: int, total: int) -> None:
                nonlocal reached
                reached = before + max(0, count - (total - len(new)))
                tuning.step(phase, reached, max(most, reached))

            return self._local.measure(self._spec.name, text, inputs, progress=progress)

        def race(rewrites: Sequence[Rewrite], rungs: Sequence[tuple[int, int]]) -> Halved:
            self._tried.update(rewrite.text for rewrite in rewrites)
            for rewrite in rewrites:
                # Before it is measured: a budget may end the race.
                if rewrite.text not in self._round.rewrites:
                    self._note(rewrite)
            try:
                race_result = halved(rewrites, request.text, self._inputs, measure, weight, rungs, spared=(HAND,))
            except BudgetExceededError as error:
                extent = f"{reached} of at most {most} replies to recorded inputs of {self._spec.name} were measured"
                # A share that is spent ends this optimizer alone.
                raise type(error)(f"{error}; {extent}, too few to choose a rewrite") from error
            self._pool.add((*race_result.dropped, *race_result.best))
            return race_result

        opening = race(first, rungs[:1])
        surviving = [scored.rewrite for scored in opening.best]
        # What the first generation was measured on is known, so that it costs nothing here.
        second_generation = self._second(opening.best, self._inputs[: rungs[0][0]], request, second)
        rest = race([*surviving, *second_generation], rungs)
        return Halved(rest.best, [*rest.dropped, *opening.dropped])

    def _is_new(self, rewrite: Rewrite) -> bool:
        return rewrite.text not in self._tried and not self._spec.contract.violations(rewrite.text)

    def _note(self, rewrite: Rewrite, gain: float | None = None) -> None:
        self._round.rewrites[rewrite.text] = RewriteRecord.of(rewrite, local=gain)


def _together(scored: Sequence[LocalScore]) -> list[Rewrite]:
    """The best texts with the best sets of demonstrations."""
    rewrites = [score.rewrite for score in scored]
    texts = [rewrite for rewrite in rewrites if rewrite.source != DEMONSTRATED][:TRIED_TOGETHER]
    sets = [rewrite.demonstrations for rewrite in rewrites if rewrite.source == DEMONSTRATED][:TRIED_TOGETHER]
    together = (with_demonstrations(text, demonstrations) for text, demonstrations in product(texts, sets))
    return [rewrite for rewrite in together if rewrite is not None]
