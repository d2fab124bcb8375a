"""The texts of one prompt: which wait, which are measured next, and what the next one is expected to gain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from attribution.cases import Attribution
from attribution.signals import Signals
from optimizer.objectives.local_evaluation import LocalEvaluation
from optimizer.objectives.objective import RecordedInput
from optimizer.proposers.rewrites import HAND, Demonstration, Rewrite
from optimizer.racing.beliefs import Belief, Prospect
from optimizer.racing.local_scores import LocalScore, usual_error
from optimizer.search.measured_texts import BATCH, Arm, MeasuredTexts
from optimizer.search.new_texts import NewTexts
from optimizer.tuning.round import RewriteRecord, Round
from optimizer.tuning.tuning import Tuning

REWRITES, FEWEST_REWRITES = 24, 6
"""Texts that one round has to compare, those of all prompts together; and of one prompt at least."""

UNMEASURED_REWRITES = 2
"""Texts of a prompt of which recorded inputs tell nothing: each meets whole conversations."""

SECOND_SHARE = 1 / 4
"""Part of them that is of the second generation."""

TOGETHER = 4
"""New texts that are measured at once, so that requests do not wait."""

ENOUGH_INPUTS = 24
"""Recorded inputs that the best meet in the last round before one goes on."""

UNLIKE = 4
"""Texts that would tell as much of the next one as is expected before any is measured. A choice."""

MISSES = 8
"""Texts without a gain that halve the hope in the next one. A choice."""


class LocalStep(NamedTuple):
    """Texts to measure on more recorded inputs each; without texts, some are to be written.

    Attributes:
        prospects: what may be believed of each then.
        rewrites: the texts.
        inputs: for each of them.
        urgent: whether people wrote them.
        again: whether they were measured before.
    """

    prospects: Sequence[Prospect]
    rewrites: Sequence[Rewrite]
    inputs: int
    urgent: bool = False
    again: bool = False


class PromptSearch:
    """One prompt's texts, over all rounds.

    Args:
        tuning: of the run.
        prompt: its name.

    Attributes:
        demonstrations: those in the champion's text.
        fresh: whether the round has texts that were never compared.
    """

    def __init__(self, tuning: Tuning, prompt: str) -> None:
        self._tuning, self._spec = tuning, tuning.prompts[prompt]
        self.demonstrations: tuple[Demonstration, ...] = ()
        self._tried, self._texts = {tuning.baseline[prompt]}, MeasuredTexts(tuning, prompt)
        self._new: list[Rewrite] = []
        """Texts that wait for their first comparison, those of people first."""
        self._unmeasured: dict[str, Rewrite] = {}
        """Texts that wait for whole conversations without being measured."""
        self.fresh = False

    def begin(
        self,
        local: LocalEvaluation,
        this_round: Round,
        inputs: Sequence[RecordedInput],
        credits: Sequence[float | None],
        attributions: Sequence[Attribution],
        signals: Signals,
        *,
        count: int,
        measured: bool,
        elsewhere: Collection[str] = (),
    ) -> None:
        """Begin a round with new texts.

        Args:
            local: measures texts.
            this_round: notes what is tried.
            inputs: recorded under the champion.
            credits: of what was recorded, for each of them.
            attributions: whose fault its wrong answers are.
            signals: of the same.
            count: texts to have; rewrites by hand are tried even if they exceed it.
            measured: whether gains on recorded inputs predict the answers.
            elsewhere: keys of the inputs where others are to blame for what is wrong: few of the first are such.

        Raises:
            BudgetExceededError: a hard budget does not allow an author's call.
        """
        name = self._spec.name
        waiting = {text: rewrite for text, rewrite in self._unmeasured.items() if not self._decided(rewrite)}
        self._round = this_round
        if self._texts.begin(local, inputs, credits, measurable=measured, elsewhere=elsewhere):
            # What was written of another text may be written again of this one.
            self._tried -= {*waiting, *(rewrite.text for rewrite in self._new)}
            self._new, waiting = [], {}
        self._new += waiting.values()
        count = count if measured else min(count, UNMEASURED_REWRITES)
        self._second_count = round(SECOND_SHARE * count) if measured else 0
        self._written = NewTexts(
            self._tuning,
            this_round.n,
            name,
            local.objectives[name],
            self._texts.inputs,
            attributions,
            signals,
            count=count,
            tried=self._tried,
            pool=self._texts.pool,
        )
        first = count - self._second_count - len(self._new)
        self._add(self._written.first(first, self.demonstrations, demonstrates=measured))
        self._offered = {rewrite.source for rewrite in self._new} - {HAND}
        self.fresh = bool(self._new)
        self._unmeasured = {}
        if not measured:
            for rewrite in self._new:
                self._unmeasured[rewrite.text] = rewrite
                this_round.rewrites[rewrite.key] = RewriteRecord.of(rewrite)
            self._new = []

    @property
    def by_hand(self) -> bool:
        """Whether people wrote a text of this prompt that was not tried yet."""
        own = (rewrite.text for rewrite in self._tuning.settings.hand if rewrite.prompt == self._spec.name)
        return any(text not in self._tried for text in own)

    def _decided(self, rewrite: Rewrite) -> bool:
        """Whether the gate decided on the text alone in the last round."""
        decision = self._round.rewrites[rewrite.key].gate
        return decision is not None and not decision.about

    def arms(self) -> list[Arm]:
        """The texts that are worth asking the whole pipeline about, the best first.

        What people wrote is, whatever it gains on recorded inputs, and so is what nobody measured.
        """
        usual = self._texts.usual
        unmeasured = [Arm(LocalScore(rewrite, 0.0, 0.0, 0, {}), usual) for rewrite in self._unmeasured.values()]
        measured = [arm for arm in self._texts.arms() if arm.by_hand or min(arm.scored.gain, arm.belief.mean) > 0]
        return sorted([*measured, *unmeasured], key=lambda arm: (not arm.by_hand, -arm.belief.mean, -arm.scored.nearer))

    def ready(self, least: float, shown: Collection[str]) -> set[str]:
        """The texts that may meet whole conversations.

        All may where a round follows, which a better text may win. In the last round all texts meet recorded inputs
        first, and more of them until one is clearly ahead, or the best have met `ENOUGH_INPUTS`.

        Args:
            least: see `ahead_of_others`.
            shown: the texts that met whole conversations.
        """
        arms = self._arms_beside(shown)
        ready = {arm.scored.rewrite.text for arm in arms}
        if self._round.last:
            ahead = set() if self._new else ahead_of_others(arms, least)
            if self._new or ahead or self._short(arms):
                ready = ahead
        return {*self._unmeasured, *ready}

    def steps(self, least: float, shown: Mapping[str, float]) -> Iterator[LocalStep]:
        """What could be done next.

        Args:
            least: see `ahead_of_others`.
            shown: text that met whole conversations → the gain on recorded inputs that these let expect.
        """
        arms = self._arms_beside(shown)
        new: dict[str, list[Rewrite]] = defaultdict(list)
        for rewrite in self._new:
            new[rewrite.source].append(rewrite)
        for source, rewrites in new.items():
            yield LocalStep(self._of_new(source, shown), rewrites[:TOGETHER], BATCH, source == HAND)
        if self._round.last and self._new:
            return
        if self._second_count and arms:
            # What is made of a text is expected to differ from it as that differs from the champion.
            source, parent = arms[0].scored.rewrite.source, arms[0].belief.mean
            yield LocalStep(self._of_new(source, shown, parent), (), BATCH)
        short = self._short(arms) if self._round.last and not ahead_of_others(arms, least) else []
        for arm in short or arms:
            further = self._texts.next_inputs(arm.scored)
            if further:
                prospects = arm.belief.measured(usual_error(len(further)), self._texts.lost(further))
                yield LocalStep(prospects, [arm.scored.rewrite], len(further), again=True)

    def _arms_beside(self, shown: Collection[str]) -> list[Arm]:
        """The measured texts that met no whole conversations, the best first."""
        arms = [arm for arm in self._texts.arms() if arm.scored.rewrite.text not in shown]
        return sorted(arms, key=lambda arm: (-arm.belief.mean, -arm.scored.nearer))

    def _short(self, arms: Sequence[Arm]) -> list[Arm]:
        """Those that are to meet more inputs before one goes on that is not clearly ahead.

        The best two meet `ENOUGH_INPUTS`, the next two half of them, and the next four a quarter, as in sequential
        halving (Karnin, Koren and Somekh 2013).
        """
        return [
            arm
            for rank, arm in enumerate(arms)
            if arm.scored.inputs < ENOUGH_INPUTS >> (rank // 2).bit_length() and self._texts.next_inputs(arm.scored)
        ]

    @property
    def room(self) -> float:
        """What the champion's text leaves to gain on recorded inputs, as far as it was measured."""
        return self._texts.room

    def of_next(self, shown: Mapping[str, float]) -> list[list[Prospect]]:
        """What may be believed of the next text once it is measured, by each source that still writes some.

        Args:
            shown: as for `steps`.
        """
        return [self._of_new(source, shown) for source in sorted(self._offered)]

    def _of_new(self, source: str, shown: Mapping[str, float], parent: float = 0.0) -> list[Prospect]:
        """What may be believed of a source's next text once it is measured, made of one with this gain.

        It is like one before it or like none, as in the urn of Blackwell and MacQueen (1973): so the more texts gained
        nothing, the less is expected of one more.
        """
        usual, room = self._texts.usual, self.room
        seen = [
            Belief(shown[scored.rewrite.text], 0.0)
            if scored.rewrite.text in shown
            else usual.after(scored.gain, scored.noise)
            for scored in self._texts.telling()
            if scored.rewrite.source == source
        ]
        most = self._texts.lost(self._texts.inputs[:BATCH])
        unlike = usual.measured(usual_error(BATCH), most) if self._texts.measurable else [Prospect(usual, 1.0)]
        every = UNLIKE + len(seen)
        prospects = [(belief, UNLIKE / every * chance) for belief, chance in unlike]
        prospects += [(belief, 1 / every) for belief in seen]
        return [
            Prospect(Belief(min(room, parent + belief.mean), belief.deviation), chance) for belief, chance in prospects
        ]

    def take(self, step: LocalStep) -> None:
        """Measure the texts of a step on further recorded inputs, or write the second generation.

        Raises:
            BudgetExceededError: a hard budget does not allow the next call.
        """
        if step.rewrites:
            self._measure(step)
        else:
            count, self._second_count = self._second_count, 0
            self._add(self._written.second(count, self._texts.scores))

    def _measure(self, step: LocalStep) -> None:
        self._tuning.allow(1)
        for rewrite in step.rewrites:
            # Before it is measured: a budget may end this.
            self._round.rewrites.setdefault(rewrite.key, RewriteRecord.of(rewrite))
        phase = f"round {self._round.n}: replies of {self._spec.name} to recorded inputs"
        for score in self._texts.measure(step.rewrites, step.inputs, phase):
            self.note(score)
            if not score.inputs and score.rewrite.source == HAND:
                self._unmeasured[score.rewrite.text] = score.rewrite
        self._new = [rewrite for rewrite in self._new if rewrite not in step.rewrites]

    def note(self, scored: LocalScore) -> None:
        """Note in the round that a text is tried, and what it gains on recorded inputs."""
        rewrites, key = self._round.rewrites, scored.rewrite.key
        before = rewrites.get(key) or RewriteRecord.of(scored.rewrite)
        rewrites[key] = replace(before, local=scored.gain) if scored.inputs else before

    @property
    def hope(self) -> float:
        """How likely the next text is to gain, as a part of how likely the first was: what blame is multiplied by.

        By Laplace's rule: of a prompt of which many texts gained nothing there may be nothing to mend, whoever is
        blamed. What its recorded inputs lose may have been lost before they were.
        """
        counted = [scored.gain > scored.noise for scored in self._texts.telling()]
        return min(1.0, MISSES * (1 + sum(counted)) / (MISSES + len(counted)))

    def _add(self, rewrites: Sequence[Rewrite]) -> None:
        by_text = {rewrite.text: rewrite for rewrite in rewrites if rewrite.text not in self._tried}
        self._tried.update(by_text)
        self._new += by_text.values()


def ahead_of_others(arms: Sequence[Arm], least: float) -> set[str]:
    """The texts than which no other is expected to be better by more than `least`, a gain on recorded inputs.

    There are many others, and each may be: what is expected of them adds up.
    """
    return {
        arm.scored.rewrite.text
        for arm in arms
        if sum(other.belief.lead(arm.belief) for other in arms if other is not arm) <= least
    }
