"""The texts of one prompt as far as they were measured on its operation's recorded inputs, over all rounds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from optimizer.objectives.local_evaluation import LocalEvaluation
from optimizer.objectives.objective import Credit, RecordedInput
from optimizer.proposers.rewrites import HAND, Rewrite
from optimizer.proposers.turns import by_turns
from optimizer.racing.beliefs import Belief
from optimizer.racing.local_scores import LocalScore, Pool, alternating, compared, spread
from optimizer.tuning.tuning import Tuning

BATCH = 3
"""Recorded inputs that a text meets first."""

MOST_INPUTS = 30
"""Recorded inputs that one text meets at most."""

USUAL_ROOM, USUAL_INPUTS = 0.5, 2
"""What a text leaves to gain before it is measured, and the recorded inputs that tell as much. A choice."""

USUAL_DEVIATION = 0.4
"""Standard deviation of what a text gains, as a part of what is left to gain. A choice."""


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


class MeasuredTexts:
    """One prompt's texts beside the champion.

    Args:
        tuning: of the run.
        prompt: its name.

    Attributes:
        inputs: recorded under the champion, in the order in which texts meet them.
        scores: the texts beside the champion, as far as they were measured on these.
        pool: the texts of all rounds.
        measurable: whether gains on recorded inputs predict the answers.
    """

    def __init__(self, tuning: Tuning, prompt: str) -> None:
        self._tuning, self._prompt = tuning, prompt
        self.inputs: list[RecordedInput] = []
        self.scores: list[LocalScore] = []
        self.pool, self.measurable = Pool(), False
        self._champion = tuning.baseline[prompt]
        self._earlier = set[str]()
        """Texts that were measured before that was the champion's."""

    def begin(
        self,
        local: LocalEvaluation,
        inputs: Sequence[RecordedInput],
        credits: Sequence[float | None],
        *,
        measurable: bool,
        elsewhere: Collection[str],
    ) -> bool:
        """Compare with the champion of a new round, on what is recorded under it.

        Args:
            local: measures texts.
            inputs: recorded under the champion.
            credits: of what was recorded, for each of them.
            measurable: whether gains on recorded inputs predict the answers.
            elsewhere: keys of the inputs where others are to blame for what is wrong: few of the first are such.

        Returns:
            Whether the champion's text is another than before.
        """
        self._local, self.measurable = local, measurable
        self.inputs = alternating(inputs, self._tuning.settings.seed)
        if measurable:
            known = dict(zip((recorded.key for recorded in inputs), credits, strict=True))
            own = [recorded for recorded in self.inputs if recorded.key not in elsewhere]
            others = [recorded for recorded in self.inputs if recorded.key in elsewhere]
            own, others = (spread(some, [known[recorded.key] for recorded in some]) for some in (own, others))
            # Blame may be wrong: each third input is of the others.
            self.inputs = list(by_turns([own[::2], own[1::2], others]))
        # Each step of a search asks for them all, and an objective reads whole conversations for one.
        weight_of = local.objectives[self._prompt].weight
        self._weights = {recorded.key: weight_of(recorded) for recorded in self.inputs}
        self._asked: set[tuple[str, str]] = set()
        before, self._champion = self._champion, self._tuning.champion[self._prompt]
        if self._champion != before:
            self._earlier = {scored.rewrite.text for scored in self.scores}
        self._compare_again()
        return self._champion != before

    def measure(self, rewrites: Sequence[Rewrite], count: int, phase: str) -> Iterator[LocalScore]:
        """Measure texts on so many further inputs each.

        Args:
            rewrites: the texts.
            count: of inputs.
            phase: what progress is told of.

        Raises:
            BudgetExceededError: a hard budget does not allow the next call.
        """

        def scored(rewrite: Rewrite) -> LocalScore:
            further = self.further(rewrite)[:count]
            known = [recorded for recorded in self.inputs if (rewrite.text, recorded.key) in self._asked]
            self._asked.update((rewrite.text, recorded.key) for recorded in further)
            measure = partial(self._local.measure, self._prompt)
            return compared(rewrite, self._champion, [*known, *further], measure, self._weight)

        # The champion first: several texts that ask for it at once would count what the cache answers by chance.
        inputs = {recorded.key: recorded for rewrite in rewrites for recorded in self.further(rewrite)[:count]}
        self._local.measure(self._prompt, self._champion, list(inputs.values()))
        for at, score in enumerate(self._tuning.threads.map(scored, rewrites), start=1):
            self._tuning.step(phase, at, len(rewrites))
            self.pool.add([score])
            yield score
        self._compare_again()

    def further(self, rewrite: Rewrite) -> list[RecordedInput]:
        """The inputs that a text has not met, those aside of which it shows anything."""
        credits: Sequence[Credit | None] = self._local.known_credits(self._prompt, rewrite.text, self.inputs)
        return [
            recorded
            for recorded, credit in zip(self.inputs, credits, strict=True)
            if credit is None
            and (rewrite.text, recorded.key) not in self._asked
            and recorded.conversation.id not in rewrite.shows
        ]

    def next_inputs(self, scored: LocalScore) -> list[RecordedInput]:
        """The inputs that a measured text would meet next."""
        count = min(max(BATCH, scored.inputs // 2), MOST_INPUTS - scored.inputs)
        return self.further(scored.rewrite)[: max(0, count)]

    def arms(self) -> list[Arm]:
        """The measured texts, in no order."""
        usual = self.usual
        return [Arm(scored, usual.after(scored.gain, scored.noise)) for scored in self.scores]

    def telling(self) -> list[LocalScore]:
        """The measured texts that tell of the next one.

        A text that was compared with an earlier champion of this prompt, and gains nothing over what won there, says
        nothing of that.
        """
        return [
            scored for scored in self.scores if scored.gain > scored.noise or scored.rewrite.text not in self._earlier
        ]

    @property
    def usual(self) -> Belief:
        """What a text gains over the champion before it is measured."""
        return Belief(0.0, USUAL_DEVIATION * self.room)

    @property
    def room(self) -> float:
        """What the champion's text leaves to gain on recorded inputs, as far as it was measured."""
        known = [(weight, 1 - credit.value) for weight, credit in self._kept(self.inputs) if credit is not None]
        stake, left = USUAL_INPUTS, USUAL_INPUTS * USUAL_ROOM
        return (left + sum(weight * lost for weight, lost in known)) / (stake + sum(weight for weight, _ in known))

    def lost(self, inputs: Sequence[RecordedInput]) -> float:
        """What the champion's text lost on inputs, as a part of what was at stake; all where that is not known."""
        kept = self._kept(inputs)
        stake = sum(weight for weight, _ in kept)
        return 1 - sum(weight * credit.value for weight, credit in kept if credit is not None) / stake if stake else 1.0

    def _kept(self, inputs: Sequence[RecordedInput]) -> list[tuple[float, Credit | None]]:
        """The weight of each input, and what the champion's text is credited with there, as far as it was measured."""
        credits = self._local.known_credits(self._prompt, self._champion, inputs)
        return [(self._weight(recorded), credit) for recorded, credit in zip(inputs, credits, strict=True)]

    def _weight(self, recorded: RecordedInput) -> float:
        return self._weights[recorded.key]

    def _compare_again(self) -> None:
        credits = partial(self._local.known_credits, self._prompt)
        self.scores = self.pool.beside(self._champion, self.inputs, credits, self._weight) if self.measurable else []
