"""Rounds that search each prompt on its operation's recorded inputs, and ask the whole pipeline only of the best.

Train and validation conversations are one pool: every score on them is of texts that show none of their content.
Only the test, which the search never sees, is a claim.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from optimizer.objectives.alignment import Alignment, Pair, alignment_of
from optimizer.proposers.rewrites import conversations_of
from optimizer.racing.halving import LocalScore, Pool, alternating
from optimizer.search.closed_loop import closed_loop
from optimizer.search.joint_choice import Combination, JointChoice, combinations_of
from optimizer.search.portion import Portion
from optimizer.search.prompt_search import FEWEST_REWRITES, REWRITES, PromptSearch
from optimizer.search.rounds import SCREENED, Rounds, crown_winner
from optimizer.search.selection import Edit, expected_gains, shares_of
from optimizer.tuning.round import blame_shares
from optimizer.tuning.stopped import Stopped

if TYPE_CHECKING:
    from attribution.cases import Attribution
    from attribution.signals import Signals
    from optimizer.evaluation.evaluator import Outcome
    from optimizer.objectives.local_evaluation import LocalEvaluation
    from optimizer.proposers.rewrites import Demonstration
    from optimizer.tuning.round import Round
    from optimizer.tuning.tuning import Champion, Tuning

FEWEST_INPUTS = 4
"""A prompt whose operation was recorded on fewer inputs is left alone."""


def local_search(tuning: Tuning) -> Stopped:
    """An `Optimizer` that searches each prompt on recorded inputs, round by round, and joins the best end to end.

    A system that cannot rerun its operations is tuned by `closed_loop`, and so are prompts of which nothing was
    recorded that can be measured. Where no prompt may be rewritten, rounds choose settings alone.

    Raises:
        BudgetExceededError: a hard budget ended it.
    """
    if tuning.prompts and not _has_recorded_inputs(tuning):
        stopped = closed_loop(tuning)
        if tuning.variants is not None and stopped.kind != "nothing-wrong" and tuning.settings.rounds:
            _LocalRounds(tuning).choose_settings(tuning.next_round)
        return stopped
    return _LocalRounds(tuning).run()


def _has_recorded_inputs(tuning: Tuning) -> bool:
    """Whether texts of some prompt can be compared on recorded inputs, and are to be."""
    local, pool = tuning.local, _learned_from(tuning)
    if local is None or not tuning.settings.local_objectives:
        return False
    for prompt in local.objectives:
        inputs = local.inputs(prompt, pool)
        if len(inputs) >= FEWEST_INPUTS and local.reruns_as_recorded(prompt, tuning.champion[prompt], inputs[0]):
            return True
    return False


class _LocalRounds:
    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning
        self.history: list[Edit] = []
        self.tried: dict[str, set[str]] = {name: {text} for name, text in tuning.baseline.items()}
        self.pool: dict[str, Pool] = defaultdict(Pool)
        """By prompt, the texts measured on recorded inputs in any round."""
        self.met: dict[str, list[Pair]] = defaultdict(list)
        """By prompt, what its texts gained on recorded inputs and end to end."""
        self.alignment: dict[str, Alignment] = {}
        """By prompt, how well the first has predicted the second."""
        self.demonstrations: dict[str, tuple[Demonstration, ...]] = {}
        """By prompt, the demonstrations in the champion's text."""

    def run(self) -> Stopped:
        attributed: Champion | None = None
        attributions: list[Attribution] = []
        signals: Signals | None = None
        rounds = Rounds(self.tuning, None)
        for n in rounds:
            champion = self.tuning.champion, self.tuning.champion_settings
            if champion != attributed or signals is None:
                attributed = champion
                attributions, signals = self.tuning.attribute(n)
            if signals.failures == 0:
                return Stopped("nothing-wrong")
            self.tuning.allow(SCREENED)
            with self.tuning.round(n) as this_round:
                this_round.blame = blame_shares(signals.signals)
                self._go_through(this_round, attributions, signals)
        return rounds.stopped

    def choose_settings(self, n: int) -> None:
        """A round that tries other settings with the champion's texts.

        Raises:
            BudgetExceededError: a hard budget ended it.
        """
        tuning = self.tuning
        with tuning.round(n) as this_round:
            pool = _learned_from(tuning)
            self._choose(this_round, {}, pool, {}, Portion(tuning, n, len(pool), tuning.prompts))

    def _go_through(self, this_round: Round, attributions: Sequence[Attribution], signals: Signals) -> None:
        tuning, n, finalists = self.tuning, this_round.n, dict[str, list[LocalScore]]()
        pool = self._pool()
        # Other settings of the system may have given it a new one. Where settings alone are tuned, it may have none.
        local = cast("LocalEvaluation", tuning.local)
        gains = expected_gains(local.objectives if tuning.prompts else (), signals.signals, self.history)
        portion = Portion(tuning, n, len(pool), gains)
        gains = {name: gain for name, gain in gains.items() if name in portion.prompts}
        shares = shares_of(tuning.settings.selector, gains, n, tuning.seed_of(n))
        for prompt, share in shares.items():
            inputs = alternating(local.inputs(prompt, pool), tuning.seed_of(n))
            if len(inputs) < FEWEST_INPUTS:
                continue
            this_round.edited = (*this_round.edited, prompt)
            search = PromptSearch(
                tuning,
                local,
                this_round,
                prompt,
                inputs,
                self.demonstrations.get(prompt, ()),
                self.tried[prompt],
                self.pool[prompt],
            )
            count = max(FEWEST_REWRITES, round(REWRITES * share))
            alignment = self.alignment.get(prompt)
            faithful = local.reruns_as_recorded(prompt, tuning.champion[prompt], inputs[0])
            measured = faithful and (alignment is None or not alignment.misleads)
            calls = portion.executions(tuning.prompts[prompt].operation, share / sum(shares.values()))
            finalists[prompt] = search.finalists(count, attributions, signals, measured=measured, calls=calls)
        before = tuning.champion
        self._choose(this_round, finalists, pool, gains, portion)
        this_round.alignment = dict(self.alignment)
        self.history += [Edit(name, tuning.champion[name] != before[name]) for name in finalists]

    def _choose(
        self,
        this_round: Round,
        finalists: Mapping[str, Sequence[LocalScore]],
        pool: Sequence[Outcome],
        gains: Mapping[str, float],
        portion: Portion,
    ) -> None:
        """The texts that go on, those of prompts with great expected gains first, and then settings with them."""
        tuning = self.tuning
        with JointChoice(tuning, this_round, finalists, _learned_from(tuning)) as joint:
            racing = [name for name, texts in finalists.items() if texts]
            combinations = combinations_of(finalists, gains, portion.race(pool, racing).combinations)
            self._join(this_round, joint, combinations, pool, portion)
            if tuning.variants is not None:
                pool = self._pool()
                combinations = joint.with_settings(tuning.variants, pool)[
                    : portion.race(pool, tuning.prompts).combinations
                ]
                self._join(this_round, joint, combinations, pool, portion)

    def _pool(self) -> list[Outcome]:
        """The champion's outcomes on the conversations that its texts do not show."""
        return _unseen(_learned_from(self.tuning), map(conversations_of, self.demonstrations.values()))

    def _join(
        self,
        this_round: Round,
        joint: JointChoice,
        combinations: Sequence[Combination],
        pool: Sequence[Outcome],
        portion: Portion,
    ) -> None:
        tuning, n = self.tuning, this_round.n
        if not combinations:
            return
        racing = {scored.rewrite for combination in combinations for scored in combination.parts.values()}
        unseen = _unseen(pool, [rewrite.shows for rewrite in racing])
        random.Random(tuning.seed_of(n)).shuffle(unseen)  # noqa: S311 (the order of conversations)
        order, most = portion.race(unseen, {name for combination in combinations for name in combination.parts})
        if not order:
            return
        ranked = joint.raced(combinations[:most], order)
        # The best last: what became of it is what its texts are remembered for.
        for combination in reversed(ranked):
            if combination.settings:
                joint.note(combination)
            else:
                self._note(this_round, combination, order)
        self.alignment = {name: alignment_of(pairs, seed=tuning.settings.seed) for name, pairs in self.met.items()}
        winner = ranked[0]
        if not winner.accepted:
            return
        texts = [scored.rewrite.text for scored in winner.parts.values()]
        if crown_winner(tuning, this_round, texts, winner.candidate(tuning.champion), winner.settings):
            self.demonstrations |= {name: scored.rewrite.demonstrations for name, scored in winner.parts.items()}

    def _note(self, this_round: Round, combination: Combination, order: Sequence[Outcome]) -> None:
        """Note how far a combination got, and what its text gained here and there if it is one text alone."""
        alone = len(combination.parts) == 1
        for prompt, scored in combination.parts.items():
            rewrite = this_round.rewrites[scored.rewrite.text]
            if combination.decision is not None:
                about = "" if alone else f"{' and '.join(combination.parts)} together"
                rewrite = replace(rewrite, gate=replace(combination.decision, about=about))
            if alone and combination.gain is not None:
                rewrite = replace(rewrite, screening=combination.gain)
                self.met[prompt] += [
                    Pair(old.conversation.id, scored.by_conversation[old.conversation.id], new.score - old.score)
                    for old, new in zip(order, combination.outcomes, strict=False)
                    if old.conversation.id in scored.by_conversation
                ]
            this_round.rewrites[scored.rewrite.text] = rewrite


def _learned_from(tuning: Tuning) -> list[Outcome]:
    """The champion's outcomes on all conversations of the search."""
    return [*tuning.outcomes("train"), *tuning.outcomes("validation")]


def _unseen(outcomes: Sequence[Outcome], hidden_ids: Iterable[frozenset[str]]) -> list[Outcome]:
    """The outcomes on conversations of which nothing is shown: what a text shows, it need not find."""
    hidden = frozenset().union(*hidden_ids)
    return [outcome for outcome in outcomes if outcome.conversation.id not in hidden]
