"""Fewer tokens with as good answers: contexts and prompts are cut as long as the answers hold.

A cut meets train and validation conversations beside the baseline, whatever was cut before, so that small losses do not
add up. The gate asks whether its score is lower by less than the margin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean

from optimizer.evaluation.evaluator import Outcome, tokens_a_question
from optimizer.evaluation.scores import Settings, settings_text
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
from optimizer.objectives.objective import RecordedInput
from optimizer.objectives.retrieval import Retrieval
from optimizer.proposers.rewrites import ANOTHER_TEXT, Rewrite
from optimizer.proposers.shortening import removable, without
from optimizer.racing.local_scores import alternating, compared
from optimizer.search.retrieved_settings import Considered, considered_settings
from optimizer.search.rounds import Rounds, crown_winner, shuffled
from optimizer.tuning.round import RewriteRecord, Round
from optimizer.tuning.stopped import Stopped
from optimizer.tuning.tuning import Tuning
from tracing.systems.prompts import Candidate, tokens_of

SHORTER = "shorter"
"""The source of rewrites that only lack something."""

SETTINGS = 3
"""Settings that meet whole conversations in a round, of those that retrieve as much, and of the others. A choice."""

INPUTS = 12
"""Recorded inputs on which a text with one piece less is compared with the champion's. A choice."""

NOTHING_LEFT = "nothing else could be cut"
NOTHING_TO_LOSE = (
    "the baseline prompts score {score:.3f} on train and validation, and a margin of {margin:g} allows to lose all of "
    "that; start from prompts that answer better, or take another metric or a smaller margin"
)


@dataclass(frozen=True, slots=True)
class Cut:
    """What could be cut of the champion: a prompt, or what is retrieved under other settings.

    Attributes:
        rewrite: the shorter text; None if settings change.
        pieces: that it lacks, the longest first; none if it is another text.
        settings: that differ from the champion's.
        retrieval: what is retrieved under them.
    """

    rewrite: Rewrite | None = None
    pieces: tuple[str, ...] = ()
    settings: Settings = field(default_factory=dict)
    retrieval: Retrieval | None = None


def cheaper_search(tuning: Tuning) -> Stopped:
    """An `Optimizer` that seeks fewer tokens a question at a score within `tuning.settings.margin` of the baseline's.

    Each round cuts one thing, what saves most first: settings under which as much is retrieved in fewer tokens, then
    the text of each prompt, then settings under which less is retrieved. For a text, the rewrites by hand come first,
    then its shorter alternatives; then pieces of it are dropped one after the other where the operation is no worse
    without them on recorded inputs; where that is not enough for the gate, halves of them are tried.

    Raises:
        BudgetExceededError: a hard budget ended it.
    """
    return _Cutting(tuning).run()


class _Cutting:
    def __init__(self, tuning: Tuning) -> None:
        self.tuning, self.margin = tuning, tuning.settings.margin or 0.0
        seed = tuning.settings.seed
        self.baseline = [*shuffled(tuning.outcomes("validation"), seed), *shuffled(tuning.outcomes("train"), seed)]
        self.champion: Sequence[Outcome] = self.baseline
        """The champion's outcomes, as far as it has met the conversations of the baseline's."""
        self.tried: set[str] = set()
        self.tried_texts: set[tuple[str, str]] = set()
        """Prompts and their other texts, of people or of the system, that were compared."""

    def run(self) -> Stopped:
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
        for cut in self._cuts(this_round):
            waiting = [cut]
            for smaller in waiting:
                if self._is_crowned(this_round, smaller):
                    return True
                waiting += self._halves(smaller)
        return False

    def _cuts(self, this_round: Round) -> Iterator[Cut]:
        settings = self._settings(this_round)
        as_much = [cut for cut, holds in settings if holds]
        yield from as_much[:SETTINGS]
        for name in sorted(self.tuning.prompts, key=self._spent_on, reverse=True):
            this_round.edited = (*this_round.edited, name)
            yield from self._other_texts(this_round, name)
            cut = self._shortened(this_round, name)
            if cut is not None:
                yield cut
        yield from [cut for cut, holds in settings if not holds][:SETTINGS]

    def _settings(self, this_round: Round) -> list[tuple[Cut, bool]]:
        """Settings under which fewer tokens are retrieved, and whether as much of what is needed is, best first."""
        tuning, variants = self.tuning, self.tuning.variants
        if variants is None:
            return []
        phase = f"round {this_round.n}: what other settings retrieve"
        champion = tuning.champion, tuning.champion_settings
        conversations = [outcome.conversation for outcome in self.baseline]
        own, considered = considered_settings(variants, champion, conversations, partial(tuning.step, phase))
        this_round.retrieved = own
        if own is not None or this_round.n == 1:
            this_round.settings += map(Considered.not_tried, considered)
        retrieved = {option.retrieval: option for option in reversed(considered) if option.retrieval}
        fewer = [
            (option, retrieval)
            for retrieval, option in retrieved.items()
            if own
            and retrieval.tokens < own.tokens
            and not any(other.covers(retrieval) for other in retrieved if other != retrieval)
        ]
        least = own.recall - self.margin if own else 0.0
        ranked = sorted(
            ((Cut(settings=option.settings, retrieval=retrieval), retrieval) for option, retrieval in fewer),
            key=lambda pair: (pair[1].recall < least, pair[1].tokens if pair[1].recall >= least else -pair[1].recall),
        )
        return [(cut, retrieval.recall >= least) for cut, retrieval in ranked]

    def _other_texts(self, this_round: Round, name: str) -> Iterator[Cut]:
        """Rewrites by hand, and the prompt's shorter alternatives, with which its operation is no worse."""
        tuning, spec, text = self.tuning, self.tuning.prompts[name], self.tuning.champion[name]
        by_hand = [rewrite for rewrite in tuning.settings.hand if rewrite.prompt == name]
        shorter = [
            Rewrite(name, other, SHORTER, ANOTHER_TEXT)
            for other in sorted(spec.alternatives, key=tokens_of)
            if tokens_of(other) < tokens_of(text) and not spec.contract.violations(other)
        ]
        for rewrite in (*by_hand, *shorter):
            if (name, rewrite.text) in self.tried_texts:
                continue
            self.tried_texts.add((name, rewrite.text))
            if self._is_no_worse(this_round, rewrite, self._inputs(name)):
                yield Cut(rewrite)

    def _shortened(self, this_round: Round, name: str) -> Cut | None:
        """The prompt without the pieces that its operation is no worse without; None if it needs them all."""
        tuning, spec, text = self.tuning, self.tuning.prompts[name], self.tuning.champion[name]
        pieces: list[str] = []
        inputs = self._inputs(name)
        for number, piece in enumerate(candidates := removable(text, spec.contract.markers)):
            tuning.step(f"round {this_round.n}: {name} without single lines", number, len(candidates))
            shorter = without(text, [*pieces, piece])
            if shorter is None or spec.contract.violations(shorter):
                continue
            rewrite = Rewrite(name, shorter, SHORTER, f"without: {piece}")
            if self._is_no_worse(this_round, rewrite, inputs):
                pieces.append(piece)
        return self._without(name, pieces)

    def _is_no_worse(self, this_round: Round, rewrite: Rewrite, inputs: Sequence[RecordedInput]) -> bool:
        """Whether the operation loses no more than the margin on recorded inputs; true if there are none."""
        if not inputs:
            return True
        local, name = self.tuning.local, rewrite.prompt
        measure, weight = partial(local.measure, name), local.objectives[name].weight
        gain = compared(rewrite, self.tuning.champion[name], inputs, measure, weight).gain
        this_round.rewrites[rewrite.text] = RewriteRecord.of(rewrite, local=gain)
        return gain >= -self.margin

    def _without(self, name: str, pieces: Sequence[str]) -> Cut | None:
        shorter = without(self.tuning.champion[name], pieces)
        if not pieces or shorter is None or self.tuning.prompts[name].contract.violations(shorter):
            return None
        reason = f"without {len(pieces)} lines" if len(pieces) > 1 else f"without: {pieces[0]}"
        return Cut(Rewrite(name, shorter, SHORTER, reason), tuple(pieces))

    def _halves(self, cut: Cut) -> list[Cut]:
        """What is tried after a text that lacks too much."""
        if cut.rewrite is None or len(cut.pieces) < 2:
            return []
        middle = len(cut.pieces) // 2
        halves = cut.pieces[:middle], cut.pieces[middle:]
        return [half for pieces in halves if (half := self._without(cut.rewrite.prompt, pieces)) is not None]

    def _inputs(self, name: str) -> list[RecordedInput]:
        """Recorded inputs of a prompt's operation on which a text may be measured; none if that tells nothing."""
        local = self.tuning.local
        if name not in local.objectives or not self.tuning.settings.local_objectives:
            return []
        inputs = alternating(local.inputs(name, self.champion), self.tuning.settings.seed)[:INPUTS]
        is_rerun = inputs and local.reruns_as_recorded(name, self.tuning.champion[name], inputs[0])
        return inputs if is_rerun else []

    def _is_crowned(self, this_round: Round, cut: Cut) -> bool:
        """Compare a cut with the baseline, and make it the champion if the gate accepts it."""
        tuning, candidate = self.tuning, self._candidate(cut)
        key = repr((sorted(candidate.items()), sorted({**tuning.champion_settings, **cut.settings}.items())))
        if key in self.tried:
            return False
        self.tried.add(key)
        outcomes: list[Outcome] = []
        what = settings_text(cut.settings) if cut.settings else f"a shorter {cut.rewrite and cut.rewrite.prompt}"
        phase = f"round {this_round.n}: {what}"

        def met(count: int) -> Comparison:
            further = [outcome.conversation for outcome in self.baseline[len(outcomes) : count]]
            tuning.allow(len(further))
            outcomes.extend(
                tuning.measure(candidate, further, phase, before=outcomes, total=count, settings=cut.settings)
            )
            return replace(compare(self.baseline[:count], outcomes), margin=self.margin)

        if cut.rewrite is not None:
            measured = this_round.rewrites.get(cut.rewrite.text)
            local = measured.local if measured is not None else None
            this_round.rewrites[cut.rewrite.text] = RewriteRecord.of(cut.rewrite, local=local)
        decision = self._with_tokens(_looks(len(self.baseline)).first_decision(met), outcomes)
        tuning.progress(phase, outcomes, len(outcomes))
        self._note(this_round, cut, decision)
        texts = [cut.rewrite.text] if cut.rewrite is not None else []
        if not decision.accepted or not crown_winner(tuning, this_round, texts, candidate, cut.settings):
            return False
        self.champion = outcomes
        return True

    def _with_tokens(self, decision: GateDecision, outcomes: Sequence[Outcome]) -> GateDecision:
        """The decision, in view of the tokens that the champion took on the same conversations."""
        if decision.outcome is GateOutcome.INCOMPARABLE:
            return decision
        # Both have met the first conversations of one order.
        both = min(len(self.champion), len(outcomes))
        before, after = tokens_a_question(self.champion[:both]), tokens_a_question(outcomes[:both])
        outcome = GateOutcome.NOT_FEWER if decision.accepted and after >= before else decision.outcome
        return replace(decision, outcome=outcome, detail=f"{after / before - 1:+.0%} tokens, {decision.detail}")

    def _note(self, this_round: Round, cut: Cut, decision: GateDecision) -> None:
        gain = decision.delta if decision.outcome is not GateOutcome.INCOMPARABLE else None
        if cut.rewrite is not None:
            before = this_round.rewrites[cut.rewrite.text]
            this_round.rewrites[cut.rewrite.text] = replace(before, screening=gain, gate=decision)
        elif cut.retrieval is not None:
            others = [record for record in this_round.settings if record.settings != cut.settings]
            this_round.settings = [*others, Considered(cut.settings, cut.retrieval).record(decision, gain)]

    def _candidate(self, cut: Cut) -> Candidate:
        texts = {cut.rewrite.prompt: cut.rewrite.text} if cut.rewrite is not None else {}
        return {**self.tuning.champion, **texts}

    def _spent_on(self, name: str) -> int:
        """Tokens of a prompt's text over all executions of its operation."""
        operation = self.tuning.prompts[name].operation
        executions = sum(len(outcome.graph.find_operations(name=operation)) for outcome in self.champion)
        return executions * tokens_of(self.tuning.champion[name])


def _looks(total: int) -> LookSchedule:
    """Looks that only reject before the last: that few conversations lose nothing says little of the others."""
    later = half_then_all(total)
    return LookSchedule((Look(FIRST_LOOK, slack=SLACK), *later.looks)) if later.counts[0] > FIRST_LOOK else later
