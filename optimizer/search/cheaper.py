"""Fewer tokens with as good answers: contexts and prompts are cut as long as the answers hold.

A cut meets train and validation conversations beside the baseline, whatever was cut before, so that small losses do not
add up. The gate asks whether its score is lower by less than the margin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from optimizer.evaluation.evaluator import Outcome, tokens_a_question
from optimizer.gating.gate import (
    FIRST_LOOK,
    SLACK,
    Comparison,
    GateDecision,
    GateOutcome,
    Look,
    LookSchedule,
    compare,
    half_then_all,
)
from optimizer.search.cuts import Cut, Cuts
from optimizer.search.retrieved_settings import Considered
from optimizer.search.rounds import Rounds, crown_winner, shuffled
from optimizer.tuning.round import RewriteRecord, Round
from optimizer.tuning.stopped import Stopped
from optimizer.tuning.tuning import Tuning
from tracing.systems.prompts import Candidate

NOTHING_LEFT = "nothing else could be cut"
NO_TOKENS = (
    "no tokens of chat models were recorded, so nothing can be seen to take fewer; let the memory system ask through "
    "`access`, or record its own client with tracing.instrument.openai"
)
NOTHING_TO_LOSE = (
    "the baseline prompts score {score:.3f} on train and validation, and a margin of {margin:g} allows to lose all of "
    "that; start from prompts that answer better, or take another metric or a smaller margin"
)


def cheaper_search(tuning: Tuning) -> Stopped:
    """An `Optimizer` that seeks fewer tokens a question at a score within `tuning.settings.margin` of the baseline's.

    Each round cuts one thing, what saves most first: settings under which as much is retrieved in fewer tokens, and
    other texts of all prompts together, those by hand or shorter alternatives; then pieces of each prompt; then
    settings under which less is retrieved. Texts and pieces are tried where the operation is no worse with or without
    them on recorded inputs; where that is not enough for the gate, halves of them are tried.

    Raises:
        BudgetExceededError: a hard budget ended it.
    """
    return _Cutting(tuning).run()


class _Cutting:
    def __init__(self, tuning: Tuning) -> None:
        self.tuning, self.margin = tuning, tuning.settings.margin or 0.0
        seed = tuning.settings.seed
        self.baseline = [*shuffled(tuning.outcomes("validation"), seed), *shuffled(tuning.outcomes("train"), seed)]
        self.cuts = Cuts(tuning, self.margin, self.baseline)
        self.tried: set[str] = set()

    def run(self) -> Stopped:
        if not tokens_a_question(self.baseline):
            return Stopped("own", NO_TOKENS)
        score = fmean(outcome.score for outcome in self.baseline)
        if score <= self.margin:
            return Stopped("own", NOTHING_TO_LOSE.format(score=score, margin=self.margin))
        rounds = Rounds(self.tuning, 1)
        for n in rounds:
            with self.tuning.round(n) as this_round:
                if not self._go_through(this_round):
                    return Stopped("own", NOTHING_LEFT)
        return rounds.stopped

    def _go_through(self, this_round: Round) -> bool:
        """Whether something was cut."""
        for cut in self.cuts.of_round(this_round):
            waiting = [cut]
            for smaller in waiting:
                if self._is_crowned(this_round, smaller):
                    return True
                waiting += self.cuts.halves(smaller)
        return False

    def _is_crowned(self, this_round: Round, cut: Cut) -> bool:
        """Compare a cut with the baseline, and make it the champion if the gate accepts it."""
        tuning, candidate = self.tuning, self._candidate(cut)
        key = repr((sorted(candidate.items()), sorted({**tuning.champion_settings, **cut.settings}.items())))
        if key in self.tried:
            return False
        self.tried.add(key)
        outcomes: list[Outcome] = []
        phase = f"round {this_round.n}: {cut.what}"

        def met(count: int) -> Comparison:
            further = [outcome.conversation for outcome in self.baseline[len(outcomes) : count]]
            tuning.allow(len(further))
            outcomes.extend(
                tuning.measure(candidate, further, phase, before=outcomes, total=count, settings=cut.settings)
            )
            return replace(compare(self.baseline[:count], outcomes), margin=self.margin)

        this_round.edits(*(rewrite.prompt for rewrite in cut.rewrites))
        for rewrite in cut.rewrites:
            measured = this_round.rewrites.get(rewrite.key)
            local = measured.local if measured is not None else None
            this_round.rewrites[rewrite.key] = RewriteRecord.of(rewrite, local=local)
        decision = self._with_tokens(_looks(len(self.baseline)).first_decision(met), outcomes)
        tuning.progress(phase, outcomes, len(outcomes))
        self._note(this_round, cut, decision)
        keys = [rewrite.key for rewrite in cut.rewrites]
        crowned = decision.accepted and crown_winner(tuning, this_round, keys, candidate, cut.settings)
        self.cuts.note(cut, outcomes, crowned=crowned)
        return crowned

    def _with_tokens(self, decision: GateDecision, outcomes: Sequence[Outcome]) -> GateDecision:
        """The decision, in view of the tokens that the champion took on the same conversations."""
        if decision.outcome is GateOutcome.INCOMPARABLE:
            return decision
        # Both have met the first conversations of one order.
        both = min(len(self.cuts.champion), len(outcomes))
        before, after = tokens_a_question(self.cuts.champion[:both]), tokens_a_question(outcomes[:both])
        outcome = GateOutcome.NOT_FEWER if decision.accepted and after >= before else decision.outcome
        return replace(decision, outcome=outcome, detail=f"{after / before - 1:+.0%} tokens, {decision.detail}")

    def _note(self, this_round: Round, cut: Cut, decision: GateDecision) -> None:
        gain = decision.delta if decision.outcome is not GateOutcome.INCOMPARABLE else None
        for rewrite in cut.rewrites:
            before = this_round.rewrites[rewrite.key]
            this_round.rewrites[rewrite.key] = replace(before, screening=gain, gate=decision)
        if cut.retrieval is not None:
            others = [record for record in this_round.settings if record.settings != cut.settings]
            this_round.settings = [*others, Considered(cut.settings, cut.retrieval).record(decision, gain)]

    def _candidate(self, cut: Cut) -> Candidate:
        return {**self.tuning.champion, **{rewrite.prompt: rewrite.text for rewrite in cut.rewrites}}


def _looks(total: int) -> LookSchedule:
    """Looks that only reject before the last: that few conversations lose nothing says little of the others."""
    later = half_then_all(total)
    return LookSchedule((Look(FIRST_LOOK, slack=SLACK), *later.looks)) if later.counts[0] > FIRST_LOOK else later
