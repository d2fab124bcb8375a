"""The local search: one queue of comparisons, on recorded inputs and on whole conversations, until its budget ends.

A round is what is compared with one champion: its wrong answers are attributed, texts are written, and compared until
one is crowned, new texts promise more, or nothing is worth a call. Train and validation conversations are one pool:
every score on them is of texts that show none of their content. Only the test, which the search never sees, is a claim.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from attribution.cases import Attribution
from attribution.signals import Signals
from optimizer.evaluation.evaluator import Outcome
from optimizer.objectives.alignment import Alignment, Pair, alignment_of
from optimizer.objectives.objective import RecordedInput
from optimizer.proposers.rewrites import conversations_of
from optimizer.search.cheaper import cheaper_search
from optimizer.search.closed_loop import closed_loop
from optimizer.search.comparisons import Comparisons, Order
from optimizer.search.joint_choice import Combination, JointChoice
from optimizer.search.prompt_search import FEWEST_REWRITES, REWRITES, PromptSearch
from optimizer.search.question_faults import QuestionFaults
from optimizer.search.rounds import SCREENED, Rounds, crown_winner
from optimizer.search.selection import LEAST_SHARE, Edit, expected_gains, shares_of
from optimizer.search.settings_choice import choose_settings
from optimizer.tuning.round import Round, blame_shares
from optimizer.tuning.stopped import Stopped
from optimizer.tuning.tuning import Champion, Tuning

FEWEST_INPUTS = 4
"""A prompt whose operation was recorded on fewer inputs is left alone."""

PATIENCE = 1
"""Rounds in a row without a champion that end a search that nothing limits."""


def local_search(tuning: Tuning) -> Stopped:
    """An `Optimizer` that compares texts on recorded inputs and the promising ones end to end, in one queue.

    Settings that may be tuned are chosen first, and where none were, again with each champion that texts make: what is
    retrieved helps no reply whose form is wrong. Where texts can be measured on nothing recorded, `closed_loop`
    tunes the prompts. Fewer tokens are sought by `cheaper_search`.

    Raises:
        BudgetExceededError: a hard budget ended it.
    """
    if tuning.settings.margin is not None:
        return cheaper_search(tuning)
    if tuning.settings.rounds:
        stopped = choose_settings(tuning)
        if not tuning.prompts:
            return stopped
    if _has_recorded_inputs(tuning):
        return _LocalRounds(tuning).run()
    texts, stopped = tuning.champion, closed_loop(tuning)
    if tuning.champion != texts:
        choose_settings(tuning)
    return stopped


def _has_recorded_inputs(tuning: Tuning) -> bool:
    """Whether texts of some prompt can be compared on recorded inputs, and are to be."""
    local, pool = tuning.local, _learned_from(tuning)
    if not tuning.settings.local_objectives:
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
        self.searches = {name: PromptSearch(tuning, name) for name in tuning.prompts}
        self.comparisons = Comparisons(tuning)
        self.pairs: dict[str, list[Pair]] = defaultdict(list)
        """By prompt, what its texts gained on recorded inputs and end to end."""
        self.alignment: dict[str, Alignment] = {}
        """By prompt, how well the first has predicted the second."""

    def run(self) -> Stopped:
        attributed: Champion | None = None
        attributions: list[Attribution] = []
        signals: Signals | None = None
        rounds = Rounds(self.tuning, PATIENCE)
        for n in rounds:
            champion = self.tuning.champion, self.tuning.champion_settings
            if champion != attributed or signals is None:
                attributed = champion
                attributions, signals = self.tuning.attribute(n)
            if signals.failures == 0:
                return Stopped("nothing-wrong")
            self.tuning.allow(SCREENED)
            with self.tuning.round(n) as this_round:
                this_round.blame, this_round.last = blame_shares(signals.signals), rounds.last
                self._go_through(this_round, attributions, signals)
            if self.tuning.champion != champion[0]:
                choose_settings(self.tuning)
        return rounds.stopped

    def _go_through(self, this_round: Round, attributions: Sequence[Attribution], signals: Signals) -> None:
        tuning, n, pool = self.tuning, this_round.n, self._pool()
        local = tuning.local
        recorded = {name: local.inputs(name, pool) for name in local.objectives}
        recorded = {name: inputs for name, inputs in recorded.items() if len(inputs) >= FEWEST_INPUTS}
        credits = {name: local.recorded_credits(name, inputs) for name, inputs in recorded.items()}
        lost = self._lost(recorded, credits, pool) if tuning.settings.blame else {}
        wrong = {
            (outcome.conversation.id, case.question.id) for outcome in pool for case in outcome.cases if not case.passed
        }
        faults = QuestionFaults(tuning.operations, wrong, tuning.known_attributions(pool))
        beside = faults.beside(signals.signals, recorded, credits)
        expected = expected_gains(local.objectives, beside, self.history, lost)
        # What was lost stays; that texts of a prompt gain nothing says that it was lost elsewhere.
        gains = {name: self.searches[name].hope * gain for name, gain in expected.items()}
        # Where nothing is worth a call among the prompts that are blamed, the others have their turn.
        least = 0.0 if self.comparisons.idle else LEAST_SHARE
        shares = shares_of(tuning.settings.selector, gains, n, tuning.seed_of(n), least=least)
        total = sum(expected.values())
        loss: dict[str, float] = {}
        by_hand = [name for name in local.objectives if self.searches[name].by_hand]
        for prompt in dict.fromkeys((*shares, *by_hand)):
            if prompt not in recorded and prompt not in by_hand:
                continue
            # What people wrote is tried of every prompt, whoever is to blame.
            share, inputs = shares.get(prompt, LEAST_SHARE), recorded.get(prompt, [])
            this_round.edits(prompt)
            alignment = self.alignment.get(prompt)
            self.searches[prompt].begin(
                local,
                this_round,
                inputs,
                credits.get(prompt, []),
                attributions,
                signals,
                count=max(FEWEST_REWRITES, round(REWRITES * share)) if prompt in shares and inputs else 0,
                measured=bool(inputs)
                and local.reruns_as_recorded(prompt, tuning.champion[prompt], inputs[0])
                and (alignment is None or not alignment.misleads),
                elsewhere=faults.elsewhere(prompt, inputs),
            )
            loss[prompt] = share * (total or 1.0)
        before, searched = tuning.champion, {name: self.searches[name] for name in loss}
        with JointChoice(tuning, this_round, searched, _learned_from(tuning)) as joint:
            compare = partial(self.comparisons.of_texts, joint, searched, loss, last=this_round.last)
            decided = self._crown_accepted(this_round, joint, compare)
        this_round.alignment = dict(self.alignment)
        self.history += [Edit(name, tuning.champion[name] != before[name]) for name in loss if name in decided]

    def _crown_accepted(
        self, this_round: Round, joint: JointChoice, compare: Callable[[Order], Combination | None]
    ) -> set[str]:
        """Make what a comparison accepts the champion; returns the prompts of which it has decided on texts."""
        tuning, order, winner = self.tuning, self._order(), None
        try:
            winner = compare(order)
        finally:
            met = list(self.comparisons.met.values())
            # The winner last: what became of it is what its texts are remembered for.
            for combination in sorted(met, key=lambda combination: combination.accepted):
                joint.close(combination)
                self._note(this_round, combination, order(combination))
            self.alignment = {
                name: alignment_of(pairs, seed=tuning.settings.seed) for name, pairs in self.pairs.items()
            }
        if winner is not None:
            keys = [scored.rewrite.key for scored in winner.parts.values()]
            if crown_winner(tuning, this_round, keys, winner.candidate(tuning.champion)):
                self.comparisons = Comparisons(tuning)
                for name, scored in winner.parts.items():
                    self.searches[name].demonstrations = scored.rewrite.demonstrations
        return {name for combination in met if combination.decision is not None for name in combination.parts}

    def _lost(
        self,
        recorded: Mapping[str, Sequence[RecordedInput]],
        credits: Mapping[str, Sequence[float | None]],
        pool: Sequence[Outcome],
    ) -> dict[str, float]:
        """Prompt name → how much of what was at stake at its recorded inputs was lost there, for each question.

        As if each had lost one more: few inputs do not say that a prompt is faultless.
        """
        local, questions = self.tuning.local, sum(len(outcome.cases) for outcome in pool)
        return {
            name: (local.lost(name, inputs, credits[name]) + 1) / max(questions, 1) for name, inputs in recorded.items()
        }

    def _pool(self) -> list[Outcome]:
        """The champion's outcomes on the conversations that its texts do not show."""
        shown = (conversations_of(search.demonstrations) for search in self.searches.values())
        return _unseen(_learned_from(self.tuning), shown)

    def _order(self) -> Order:
        """The champion's outcomes, those of validation first: what is crowned must have met all of these."""
        pool, validation = self._pool(), {conversation.id for conversation in self.tuning.validation}
        random.Random(self.tuning.settings.seed).shuffle(pool)  # noqa: S311 (the order of conversations)
        pool.sort(key=lambda outcome: outcome.conversation.id not in validation)
        return lambda combination: _unseen(pool, (scored.rewrite.shows for scored in combination.parts.values()))

    def _note(self, this_round: Round, combination: Combination, order: Sequence[Outcome]) -> None:
        """Note how far a combination got, and what its text gained here and there if it is one text alone."""
        alone, decision = len(combination.parts) == 1, combination.decision
        for prompt, scored in combination.parts.items():
            self.searches[prompt].note(scored)
            rewrite = this_round.rewrites[scored.rewrite.key]
            if decision is not None:
                about = "" if alone else f"{' and '.join(combination.parts)} together"
                rewrite = replace(rewrite, gate=replace(decision, about=about))
            if alone:
                rewrite = replace(rewrite, screening=combination.gain)
            if alone and decision is not None:
                self.pairs[prompt] += [
                    Pair(old.conversation.id, scored.by_conversation[old.conversation.id], new.score - old.score)
                    for old, new in zip(order, combination.outcomes, strict=False)
                    if old.conversation.id in scored.by_conversation and new.tainted is None
                ]
            this_round.rewrites[scored.rewrite.key] = rewrite


def _learned_from(tuning: Tuning) -> list[Outcome]:
    """The champion's outcomes on all conversations of the search."""
    return [*tuning.outcomes("train"), *tuning.outcomes("validation")]


def _unseen(outcomes: Sequence[Outcome], hidden_ids: Iterable[frozenset[str]]) -> list[Outcome]:
    """The outcomes on conversations of which nothing is shown: what a text shows, it need not find."""
    hidden = frozenset().union(*hidden_ids)
    return [outcome for outcome in outcomes if outcome.conversation.id not in hidden]
