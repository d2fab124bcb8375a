"""The texts of one prompt, and what each is expected to gain on its operation's recorded inputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from attribution.cases import Attribution
from attribution.signals import Signals
from optimizer.objectives.local_evaluation import LocalEvaluation
from optimizer.objectives.objective import Credit, RecordedInput
from optimizer.proposers.rewrites import HAND, Demonstration, Rewrite
from optimizer.proposers.turns import by_turns
from optimizer.racing.beliefs import Belief, Prospect
from optimizer.racing.local_scores import (
    LocalScore,
    Pool,
    alternating,
    compared,
    spread,
    usual_error,
)
from optimizer.search.new_texts import NewTexts
from optimizer.tuning.round import RewriteRecord, Round
from optimizer.tuning.tuning import Tuning

REWRITES, FEWEST_REWRITES = 24, 6
"""Texts that one round has to compare, those of all prompts together; and of one prompt at least."""

UNMEASURED_REWRITES = 2
"""Texts of a prompt of which recorded inputs tell nothing: each meets whole conversations."""

SECOND_SHARE = 1 / 4
"""Part of them that is of the second generation."""

BATCH, TOGETHER = 3, 4
"""Recorded inputs that a text meets first; and new texts that meet them at once, so that requests do not wait."""

MOST_INPUTS, ENOUGH_INPUTS = 30, 24
"""Recorded inputs that one text meets at most; and that the best meet in the last round before one goes on."""

USUAL_ROOM, USUAL_INPUTS = 0.5, 2
"""What a text leaves to gain before it is measured, and the recorded inputs that tell as much. A choice."""

USUAL_DEVIATION = 0.4
"""Standard deviation of what a text gains, as a part of what is left to gain. A choice."""

UNLIKE = 4
"""Texts that would tell as much of the next one as is expected before any is measured. A choice."""

MISSES = 8
"""Texts without a gain that halve the hope in the next one. A choice."""


class Arm(NamedTuple):
    """A text that may be compared further.

    Attributes:
        scored: the text, with what it gained on recorded inputs.
        belief: what it gains there elsewhere.
    """

    scored: LocalScore
    belief: Belief

    @property
    def by_hand(self) -> bool:
        """Whether people wrote it."""
        return self.scored.rewrite.source == HAND


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
        self._tried, self._pool = {tuning.baseline[prompt]}, Pool()
        self._new: list[Rewrite] = []
        """Texts that wait for their first comparison, those of people first."""
        self._scores: list[LocalScore] = []
        """The texts beside the champion, as far as they were measured on what is recorded under it."""
        self._begun_with = tuning.baseline[prompt]
        self._earlier = set[str]()
        """Texts that were measured before that was the champion's."""
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
        waiting = {text: rewrite for text, rewrite in self._unmeasured.items() if not self._decided(text)}
        self._local, self._round, self._measured = local, this_round, measured
        self._objective = local.objectives[name]
        self._inputs = alternating(inputs, self._tuning.settings.seed)
        if measured:
            known = dict(zip((recorded.key for recorded in inputs), credits, strict=True))
            own = [recorded for recorded in self._inputs if recorded.key not in elsewhere]
            others = [recorded for recorded in self._inputs if recorded.key in elsewhere]
            own, others = (spread(some, [known[recorded.key] for recorded in some]) for some in (own, others))
            # Blame may be wrong: each third input is of the others.
            self._inputs = list(by_turns([own[::2], own[1::2], others]))
        self._asked: set[tuple[str, str]] = set()
        champion = self._tuning.champion[name]
        if champion != self._begun_with:
            # What was written of another text may be written again of this one.
            self._tried -= {*waiting, *(rewrite.text for rewrite in self._new)}
            self._new, waiting, self._begun_with = [], {}, champion
            self._earlier = {scored.rewrite.text for scored in self._scores}
        self._new += waiting.values()
        count = count if measured else UNMEASURED_REWRITES
        self._second_count = round(SECOND_SHARE * count) if measured else 0
        self._compare_again()
        self._written = NewTexts(
            self._tuning,
            this_round.n,
            name,
            self._objective,
            self._inputs,
            attributions,
            signals,
            count=count,
            tried=self._tried,
            pool=self._pool,
        )
        first = count - self._second_count - len(self._new)
        self._add(self._written.first(first, self.demonstrations, demonstrates=measured))
        self._offered = {rewrite.source for rewrite in self._new} - {HAND}
        self.fresh = bool(self._new)
        self._unmeasured = {}
        if not measured:
            for rewrite in self._new:
                self._unmeasured[rewrite.text] = rewrite
                this_round.rewrites[rewrite.text] = RewriteRecord.of(rewrite)
            self._new = []

    def _decided(self, text: str) -> bool:
        """Whether the gate decided on the text alone in the last round."""
        decision = self._round.rewrites[text].gate
        return decision is not None and not decision.about

    def arms(self) -> list[Arm]:
        """The texts that are worth asking the whole pipeline about, the best first.

        What people wrote is, whatever it gains on recorded inputs, and so is what nobody measured.
        """
        unmeasured = [Arm(LocalScore(rewrite, 0.0, 0.0, 0, {}), self._usual) for rewrite in self._unmeasured.values()]
        measured = [arm for arm in self._measured_arms() if arm.by_hand or min(arm.scored.gain, arm.belief.mean) > 0]
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
            further = self._further_of(arm.scored)
            if further:
                prospects = arm.belief.measured(usual_error(len(further)), self._lost(further))
                yield LocalStep(prospects, [arm.scored.rewrite], len(further), again=True)

    def _arms_beside(self, shown: Collection[str]) -> list[Arm]:
        """The measured texts that met no whole conversations, the best first."""
        arms = [arm for arm in self._measured_arms() if arm.scored.rewrite.text not in shown]
        return sorted(arms, key=lambda arm: (-arm.belief.mean, -arm.scored.nearer))

    def _short(self, arms: Sequence[Arm]) -> list[Arm]:
        """Those that are to meet more inputs before one goes on that is not clearly ahead.

        The best two meet `ENOUGH_INPUTS`, the next two half of them, and the next four a quarter, as in sequential
        halving (Karnin, Koren and Somekh 2013).
        """
        return [
            arm
            for rank, arm in enumerate(arms)
            if arm.scored.inputs < ENOUGH_INPUTS >> (rank // 2).bit_length() and self._further_of(arm.scored)
        ]

    @property
    def room(self) -> float:
        """What the champion's text leaves to gain on recorded inputs, as far as it was measured."""
        known = [(weight, 1 - credit.value) for weight, credit in self._kept(self._inputs) if credit is not None]
        stake, left = USUAL_INPUTS, USUAL_INPUTS * USUAL_ROOM
        return (left + sum(weight * lost for weight, lost in known)) / (stake + sum(weight for weight, _ in known))

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
        usual, room = self._usual, self.room
        seen = [
            Belief(shown[scored.rewrite.text], 0.0)
            if scored.rewrite.text in shown
            else usual.after(scored.gain, scored.noise)
            for scored in self._counted()
            if scored.rewrite.source == source
        ]
        most = self._lost(self._inputs[:BATCH])
        unlike = usual.measured(usual_error(BATCH), most) if self._measured else [Prospect(usual, 1.0)]
        every = UNLIKE + len(seen)
        prospects = [(belief, UNLIKE / every * chance) for belief, chance in unlike]
        prospects += [(belief, 1 / every) for belief in seen]
        return [
            Prospect(Belief(min(room, parent + belief.mean), belief.deviation), chance) for belief, chance in prospects
        ]

    def _lost(self, inputs: Sequence[RecordedInput]) -> float:
        """What the champion's text lost on inputs, as a part of what was at stake; all where that is not known."""
        kept = self._kept(inputs)
        stake = sum(weight for weight, _ in kept)
        return 1 - sum(weight * credit.value for weight, credit in kept if credit is not None) / stake if stake else 1.0

    def _kept(self, inputs: Sequence[RecordedInput]) -> list[tuple[float, Credit | None]]:
        """The weight of each input, and what the champion's text is credited with there, as far as it was measured."""
        credits = self._local.known_credits(self._spec.name, self._tuning.champion[self._spec.name], inputs)
        return [(self._objective.weight(recorded), credit) for recorded, credit in zip(inputs, credits, strict=True)]

    def take(self, step: LocalStep) -> None:
        """Measure the texts of a step on further recorded inputs, or write the second generation.

        Raises:
            BudgetExceededError: a hard budget does not allow the next call.
        """
        if step.rewrites:
            self._measure(step)
        else:
            count, self._second_count = self._second_count, 0
            self._add(self._written.second(count, self._scores))

    def _measure(self, step: LocalStep) -> None:
        tuning, name = self._tuning, self._spec.name
        tuning.allow(1)
        for rewrite in step.rewrites:
            # Before it is measured: a budget may end this.
            self._round.rewrites.setdefault(rewrite.text, RewriteRecord.of(rewrite))
        phase = f"round {self._round.n}: replies of {name} to recorded inputs"

        def scored(rewrite: Rewrite) -> LocalScore:
            further = self._further(rewrite)[: step.inputs]
            known = [recorded for recorded in self._inputs if (rewrite.text, recorded.key) in self._asked]
            self._asked.update((rewrite.text, recorded.key) for recorded in further)
            measure = partial(self._local.measure, name)
            return compared(rewrite, tuning.champion[name], [*known, *further], measure, self._objective.weight)

        # The champion first: several texts that ask for it at once would count what the cache answers by chance.
        inputs = {recorded.key: recorded for text in step.rewrites for recorded in self._further(text)[: step.inputs]}
        self._local.measure(name, tuning.champion[name], list(inputs.values()))
        for at, score in enumerate(tuning.threads.map(scored, step.rewrites), start=1):
            tuning.step(phase, at, len(step.rewrites))
            self._pool.add([score])
            self.note(score)
            if not score.inputs and score.rewrite.source == HAND:
                self._unmeasured[score.rewrite.text] = score.rewrite
        self._new = [rewrite for rewrite in self._new if rewrite not in step.rewrites]
        self._compare_again()

    def note(self, scored: LocalScore) -> None:
        """Note in the round that a text is tried, and what it gains on recorded inputs."""
        rewrites, text = self._round.rewrites, scored.rewrite.text
        before = rewrites.get(text) or RewriteRecord.of(scored.rewrite)
        rewrites[text] = replace(before, local=scored.gain) if scored.inputs else before

    @property
    def hope(self) -> float:
        """How likely the next text is to gain, as a part of how likely the first was: what blame is multiplied by.

        By Laplace's rule: of a prompt of which many texts gained nothing there may be nothing to mend, whoever is
        blamed. What its recorded inputs lose may have been lost before they were. A text that was compared with an
        earlier champion of this prompt, and gains nothing over what won there, says nothing of that.
        """
        counted = [scored.gain > scored.noise for scored in self._counted()]
        return min(1.0, MISSES * (1 + sum(counted)) / (MISSES + len(counted)))

    def _counted(self) -> list[LocalScore]:
        """The texts that tell of the next one."""
        return [
            scored for scored in self._scores if scored.gain > scored.noise or scored.rewrite.text not in self._earlier
        ]

    @property
    def _usual(self) -> Belief:
        """What a text gains over the champion before it is measured."""
        return Belief(0.0, USUAL_DEVIATION * self.room)

    def _measured_arms(self) -> list[Arm]:
        usual = self._usual
        return [Arm(scored, usual.after(scored.gain, scored.noise)) for scored in self._scores]

    def _compare_again(self) -> None:
        name = self._spec.name
        credits = partial(self._local.known_credits, name)
        self._scores = (
            self._pool.beside(self._tuning.champion[name], self._inputs, credits, self._objective.weight)
            if self._measured
            else []
        )

    def _further(self, rewrite: Rewrite) -> list[RecordedInput]:
        """The inputs that a text has not met, those aside of which it shows anything."""
        credits: Sequence[Credit | None] = self._local.known_credits(self._spec.name, rewrite.text, self._inputs)
        return [
            recorded
            for recorded, credit in zip(self._inputs, credits, strict=True)
            if credit is None
            and (rewrite.text, recorded.key) not in self._asked
            and recorded.conversation.id not in rewrite.shows
        ]

    def _further_of(self, scored: LocalScore) -> list[RecordedInput]:
        """The inputs that a text would meet next."""
        count = min(max(BATCH, scored.inputs // 2), MOST_INPUTS - scored.inputs)
        return self._further(scored.rewrite)[: max(0, count)]

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
