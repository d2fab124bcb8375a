"""New texts of one prompt.

The first generation of a round are what proposers make of the champion's text, and the champion with whole
demonstrations. The second are what they make of parents, and the best texts with the best demonstrations. Parents come
from the pool of all rounds: a text that is the best on some recorded inputs has something that others lack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, product

from attribution.cases import Attribution
from attribution.signals import Signals
from optimizer.objectives.objective import Objective, RecordedInput
from optimizer.proposers.demonstrations import DEMONSTRATIONS
from optimizer.proposers.examples import examples_of
from optimizer.proposers.rewrites import HAND, Demonstration, Rewrite, RewriteRequest
from optimizer.proposers.turns import by_turns
from optimizer.racing.local_scores import LocalScore, Pool, parents_of
from optimizer.racing.whole_demonstrations import (
    DEMONSTRATED,
    demonstration_sets,
    whole_demonstrations,
    with_demonstrations,
    with_right_replies,
)
from optimizer.tuning.tuning import Tuning
from tracing.systems.protocol import stage_of

DEMONSTRATED_SHARE = 1 / 3
"""Part of the first generation with whole demonstrations."""

TRIED_TOGETHER = 2
"""Texts with the best scores that are tried with as many of the best sets of demonstrations."""


class NewTexts:
    """What is written of one prompt in one round.

    Args:
        tuning: of the run.
        n: number of the round.
        prompt: its name.
        objective: of its operation.
        inputs: recorded under the champion.
        attributions: whose fault its wrong answers are.
        signals: of the same.
        count: texts to have.
        tried: texts that are not written again, those of later generations included; whoever tries one adds it.
        pool: the texts of all rounds.
    """

    def __init__(
        self,
        tuning: Tuning,
        n: int,
        prompt: str,
        objective: Objective,
        inputs: Sequence[RecordedInput],
        attributions: Sequence[Attribution],
        signals: Signals,
        *,
        count: int,
        tried: set[str],
        pool: Pool,
    ) -> None:
        self._tuning, self._n, self._objective, self._inputs = tuning, n, objective, inputs
        self._tried, self._pool = tried, pool
        spec = tuning.prompts[prompt]
        failed, passed = examples_of(spec, tuning.outcomes("train"), attributions)
        blaming = (signal for signal in signals.signals if signal.prompt == prompt)
        self._request = RewriteRequest(
            prompt=spec,
            stage=stage_of(tuning.operations, prompt),
            text=tuning.champion[prompt],
            candidate=dict(tuning.champion),
            signal=max(blaming, key=lambda signal: signal.loss, default=None),
            failed=with_right_replies(failed, objective, inputs),
            passed=passed,
            count=count,
            seed=tuning.seed_of(n),
            tried=frozenset(tried),
            earlier=pool.earlier(),
        )

    def first(self, count: int, inherited: tuple[Demonstration, ...], *, demonstrates: bool) -> list[Rewrite]:
        """What proposers make of the champion's text, and it with sets of whole demonstrations.

        Args:
            count: texts to have; those by hand come even if they exceed it.
            inherited: demonstrations in the champion's text, which rewrites of it may keep.
            demonstrates: whether whole demonstrations are wanted.

        Raises:
            BudgetExceededError: a hard budget does not allow an author's call.
        """
        sources, request = self._tuning.sources, self._request
        demonstrated_part = round(DEMONSTRATED_SHARE * count) if demonstrates and sources.demonstrates else 0
        offered = sources.propose(self._n, request, max(0, count - demonstrated_part), besides=(DEMONSTRATIONS,))
        # What people wrote stands for itself.
        by_hand = [rewrite for rewrite in offered if rewrite.source == HAND]
        rewrites = [_showing(rewrite, inherited) for rewrite in offered if rewrite.source != HAND]
        learned = {conversation.id for conversation in self._tuning.train}
        demonstrations = [
            demonstration
            for demonstration in whole_demonstrations(self._objective, request.prompt, self._inputs)
            if demonstration.conversation in learned
        ]
        plain = Rewrite(request.prompt.name, request.text, "", "")
        sets = demonstration_sets(demonstrations, request.seed)
        demonstrated = filter(None, (with_demonstrations(plain, chosen) for chosen in sets))
        return [*by_hand, *by_turns([rewrites, islice(filter(self._is_new, demonstrated), max(0, demonstrated_part))])]

    def second(self, count: int, scores: Sequence[LocalScore]) -> list[Rewrite]:
        """The best texts with the best demonstrations, and what proposers make of parents.

        Args:
            count: texts to have of all parents together.
            scores: of the texts beside the champion.

        Raises:
            BudgetExceededError: a hard budget does not allow an author's call.
        """
        scores = sorted(scores, key=lambda scored: (-scored.gain, -scored.nearer))
        rewrites = list(filter(self._is_new, _together(scores)))
        parents = parents_of(scores)
        for parent in parents:
            per_parent = -(-count // len(parents))
            request = replace(
                self._request,
                text=parent.rewrite.text,
                count=per_parent,
                tried=frozenset(self._tried | {rewrite.text for rewrite in rewrites}),
                earlier=self._pool.earlier(),
            )
            offered = self._tuning.sources.propose(self._n + 1, request, per_parent, besides=(DEMONSTRATIONS,))
            rewrites += [
                replace(
                    _showing(rewrite, parent.rewrite.demonstrations),
                    reason=f"{parent.rewrite.reason}; {rewrite.reason}",
                )
                for rewrite in offered
                if rewrite.source != HAND
            ]
        return rewrites

    def _is_new(self, rewrite: Rewrite) -> bool:
        return rewrite.text not in self._tried and not self._request.prompt.contract.violations(rewrite.text)


def _showing(rewrite: Rewrite, inherited: Sequence[Demonstration]) -> Rewrite:
    """The rewrite with what the text it was made of shows, beside what its proposer says that it shows."""
    return replace(rewrite, demonstrations=tuple(dict.fromkeys((*inherited, *rewrite.demonstrations))))


def _together(scored: Sequence[LocalScore]) -> list[Rewrite]:
    """The best texts with the best sets of demonstrations."""
    rewrites = [score.rewrite for score in scored if score.gain > 0]
    texts = [rewrite for rewrite in rewrites if rewrite.source != DEMONSTRATED][:TRIED_TOGETHER]
    sets = [rewrite.demonstrations for rewrite in rewrites if rewrite.source == DEMONSTRATED][:TRIED_TOGETHER]
    together = (with_demonstrations(text, demonstrations) for text, demonstrations in product(texts, sets))
    return [rewrite for rewrite in together if rewrite is not None]
