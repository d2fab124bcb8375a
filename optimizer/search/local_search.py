"""Rounds that search each prompt on its operation's recorded inputs, and ask the whole pipeline only of the best.

Train and validation conversations are one pool: every score on them is of texts that show none of their content.
Only the test, which the search never sees, is a claim.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, islice, product
from typing import TYPE_CHECKING

from optimizer.objectives.alignment import Pair, alignment_of
from optimizer.proposers.examples import examples_of
from optimizer.proposers.proposals import HAND
from optimizer.racing.arms import DEMONSTRATED, Arm, sets_of, shown_whole, with_shown
from optimizer.racing.halving import Halved, LocalScore, alternating, halved
from optimizer.racing.joint import Combination, combinations_of, raced
from optimizer.search.closed_loop import closed_loop
from optimizer.search.results import Attempt, BlameShare
from optimizer.search.rounds import DONE, NOTHING_WRONG, UNCONFIRMED
from optimizer.search.screening import SCREENED, drawn
from optimizer.search.selection import Edit, expected_gains, shares_of

if TYPE_CHECKING:
    from attribution.cases import Attribution
    from attribution.signals import Signals
    from optimizer.evaluation.evaluator import Outcome
    from optimizer.objectives.local_evaluation import LocalEvaluation
    from optimizer.objectives.objective import Credit, RecordedInput
    from optimizer.search.tuning import Iteration, Tuning

FINALISTS = 2
"""Texts of each prompt that meet the whole pipeline."""

ARMS, FEWEST_ARMS = 24, 6
"""Texts that the searches of one round begin with, together; and one prompt's search at least."""

SHOWN = 1 / 3
"""Part of them with whole demonstrations."""

STAKES = ((12.0, 8), (30.0, 3), (100.0, 2))
"""What is at stake, in needs or questions, on the inputs that arms have met at the end of each rung, and how many of
them go on."""

FEWEST_INPUTS = 4
"""A prompt whose operation was recorded on fewer inputs is left alone."""

TRIED_TOGETHER = 2
"""Texts with the best scores that are tried with as many of the best sets of demonstrations."""


def local_search(tuning: Tuning) -> str:
    """An `Optimizer` that searches each prompt on recorded inputs, round by round, and joins the best end to end.

    A system that cannot rerun its operations is tuned by `closed_loop`, and so are prompts of which nothing was
    recorded that can be measured.

    Raises:
        BudgetExceededError: a hard budget ended it.
    """
    local = tuning.local if tuning.settings.local_objectives else None
    pool = [*tuning.outcomes("train"), *tuning.outcomes("val")]
    if local is None or all(len(local.inputs(prompt, pool)) < FEWEST_INPUTS for prompt in local.objectives):
        return closed_loop(tuning)
    return _LocalRounds(tuning, local).run()


def most_reruns(inputs: int) -> int:
    """Most calls of one prompt's search in a round over this many recorded inputs, at each of which one need is."""
    met, calls, arms = 0, 0, ARMS
    for stake, left in STAKES:
        count = min(inputs, round(stake))
        calls += (arms + 1) * (count - met)
        # After the first rung, the best texts are tried with the best demonstrations too.
        calls += TRIED_TOGETHER**2 * count if not met else 0
        met, arms = count, left + (0 if met else TRIED_TOGETHER**2)
    return calls


class _LocalRounds:
    def __init__(self, tuning: Tuning, local: LocalEvaluation) -> None:
        self.tuning, self.local = tuning, local
        self.history: list[Edit] = []
        self.tried: dict[str, set[str]] = {name: {text} for name, text in tuning.seed.items()}
        self.met: dict[str, list[Pair]] = defaultdict(list)
        """By prompt, what its texts gained on recorded inputs and end to end."""
        self.shown: dict[str, frozenset[str]] = {}
        """By prompt, the conversations whose content the champion's text shows."""

    def run(self) -> str:
        seen: Mapping[str, str] | None = None
        attributions: list[Attribution] = []
        signals: Signals | None = None
        for n in range(1, self.tuning.settings.rounds + 1):
            if self.tuning.champion != seen or signals is None:
                seen = self.tuning.champion
                attributions, signals = self.tuning.attribute(n)
            if signals.failures == 0:
                return NOTHING_WRONG
            self.tuning.allow(SCREENED)
            with self.tuning.iteration(n) as iteration:
                iteration.blame = {each.operation: BlameShare(each.share, each.share_ci) for each in signals.signals}
                self._iterate(iteration, attributions, signals)
        return DONE

    def _iterate(self, iteration: Iteration, attributions: Sequence[Attribution], signals: Signals) -> None:
        tuning, finalists = self.tuning, dict[str, list[LocalScore]]()
        pool = self._unseen([*tuning.outcomes("train"), *tuning.outcomes("val")], self.shown.values())
        gains = expected_gains(self.local.objectives, signals.signals, self.history)
        shares = shares_of(tuning.settings.selector, gains, iteration.n, tuning.seed_of(iteration.n))
        for prompt, share in shares.items():
            inputs = alternating(self.local.inputs(prompt, pool), tuning.seed_of(iteration.n))
            if len(inputs) < FEWEST_INPUTS:
                continue
            count = max(FEWEST_ARMS, round(ARMS * share))
            arms = self._arms(iteration.n, prompt, count, inputs, attributions, signals)
            finalists[prompt] = self._finalists(iteration, prompt, arms, inputs)
        iteration.edited = tuple(name for name, scored in finalists.items() if scored)
        before = tuning.champion
        self._join(iteration, finalists, pool)
        self.history += [Edit(name, tuning.champion[name] != before[name]) for name in finalists]

    def _unseen(self, outcomes: Sequence[Outcome], shown: Iterable[frozenset[str]]) -> list[Outcome]:
        """The outcomes on conversations of which nothing is shown: what a text shows, it need not find."""
        hidden = frozenset().union(*shown)
        return [outcome for outcome in outcomes if outcome.conversation.id not in hidden]

    def _finalists(
        self, iteration: Iteration, prompt: str, arms: Sequence[Arm], inputs: Sequence[RecordedInput]
    ) -> list[LocalScore]:
        """The arms that meet the whole pipeline: the best on recorded inputs, if those predict the answers."""
        written = [arm for arm in arms if arm.source == HAND]
        if alignment_of(self.met[prompt]).misleads:
            self.tried[prompt].update(arm.text for arm in arms)
            scored = [LocalScore(arm, 0.0, 0.0, 0, {}) for arm in arms]
            for each in scored:
                iteration.attempts[each.arm.text] = _attempt(prompt, each.arm)
            return [each for each in scored if each.arm in written] or scored[:FINALISTS]
        best, dropped = self._search(iteration, prompt, arms, inputs)
        for each in (*best, *dropped):
            iteration.attempts[each.arm.text] = replace(_attempt(prompt, each.arm), local=each.gain)
        better = [each for each in best if each.gain > 0 and each.arm.source != HAND]
        # What people wrote meets the whole pipeline, whatever it gains on recorded inputs.
        return [each for each in best if each.arm in written] or better[:FINALISTS]

    def _arms(
        self,
        n: int,
        prompt: str,
        count: int,
        inputs: Sequence[RecordedInput],
        attributions: Sequence[Attribution],
        signals: Signals,
    ) -> list[Arm]:
        """What proposers offer, and sets of whole demonstrations, `count` together."""
        tuning, spec = self.tuning, self.tuning.prompts[prompt]
        shown_part = round(SHOWN * count) if tuning.sources.demonstrates else 0
        train = tuning.outcomes("train")
        examples = examples_of(spec, train, attributions)
        blaming = (each for each in signals.signals if each.prompt == prompt)
        request = tuning.request(
            prompt,
            signal=max(blaming, key=lambda each: each.loss, default=None),
            examples=examples,
            minibatch=drawn(train, examples[0], seed=tuning.seed_of(n)) if tuning.sources.own_author else (),
            count=count,
            seed=tuning.seed_of(n),
            tried=self.tried[prompt],
        )
        offered = tuning.sources.propose(n, request, count - shown_part)
        arms = [Arm(each.text, each.source, each.reason) for each in offered]
        learned = {conversation.id for conversation in tuning.train}
        shown = [
            each
            for each in shown_whole(self.local.objectives[prompt], spec, inputs)
            if each.given.conversation.id in learned
        ]
        plain = Arm(tuning.champion[prompt], "", "")
        demonstrated = filter(None, (with_shown(plain, chosen) for chosen in sets_of(shown, tuning.seed_of(n))))
        return [*arms, *islice((arm for arm in demonstrated if self._is_new(prompt, arm)), shown_part)]

    def _is_new(self, prompt: str, arm: Arm) -> bool:
        return arm.text not in self.tried[prompt] and not self.tuning.prompts[prompt].contract.violations(arm.text)

    def _search(
        self, iteration: Iteration, prompt: str, arms: Sequence[Arm], inputs: Sequence[RecordedInput]
    ) -> Halved:
        """A race of a prompt's arms on its recorded inputs."""
        tuning, weight = self.tuning, self.local.objectives[prompt].weight
        phase = f"iteration {iteration.n}: {prompt} on recorded inputs"
        rungs = [(_reaching(inputs, weight, stake), left) for stake, left in STAKES]

        def measure(text: str, given: Sequence[RecordedInput]) -> Sequence[Credit | None]:
            tuning.allow(1)
            return self.local.measure(prompt, text, given, progress=lambda done, total: tuning.step(phase, done, total))

        champion = tuning.champion[prompt]
        first = halved(arms, champion, inputs, measure, weight, rungs[:1], spared=(HAND,))
        left = [each.arm for each in first.best]
        together = [arm for arm in _together(first.best) if self._is_new(prompt, arm)]
        self.tried[prompt].update(arm.text for arm in (*arms, *together))
        then = halved([*left, *together], champion, inputs, measure, weight, rungs[1:], spared=(HAND,))
        return Halved(then.best, [*then.dropped, *first.dropped])

    def _join(
        self, iteration: Iteration, finalists: Mapping[str, Sequence[LocalScore]], pool: Sequence[Outcome]
    ) -> None:
        tuning, n = self.tuning, iteration.n
        combinations = combinations_of(finalists)
        racing = {scored.arm for each in combinations for scored in each.parts.values()}
        order = self._unseen(pool, [arm.shows for arm in racing])
        if not combinations or not order:
            return
        random.Random(tuning.seed_of(n)).shuffle(order)  # noqa: S311 (the order of conversations)
        phase = f"iteration {n}: joint choice of {len(combinations)} combinations"

        def evaluate(combination: Combination, against: Sequence[Outcome]) -> Sequence[Outcome]:
            tuning.allow(len(against))
            conversations = [outcome.conversation for outcome in against]
            return tuning.measure(combination.candidate(tuning.champion), conversations, phase)

        ranked = raced(combinations, order, evaluate)
        for each in ranked:
            self._note(iteration, each, order)
        iteration.alignment = {name: alignment_of(pairs, seed=tuning.settings.seed) for name, pairs in self.met.items()}
        winner = ranked[0]
        if winner.decision is None or not winner.decision.accepted:
            return
        for scored in winner.parts.values():
            attempt = iteration.attempts[scored.arm.text]
            if not tuning.approves(attempt):
                declined = replace(attempt, gate=f"declined by hand, though {attempt.gate}")
                iteration.attempts[scored.arm.text] = declined
                return
        if not tuning.crown(winner.candidate(tuning.champion)):
            for scored in winner.parts.values():
                attempt = iteration.attempts[scored.arm.text]
                iteration.attempts[scored.arm.text] = replace(attempt, gate=f"{UNCONFIRMED}, though {attempt.gate}")
            return
        self.shown |= {name: scored.arm.shows for name, scored in winner.parts.items()}

    def _note(self, iteration: Iteration, combination: Combination, order: Sequence[Outcome]) -> None:
        """Note how far a combination got, and what its text gained here and there if it is one text alone."""
        together = " and ".join(combination.parts) if len(combination.parts) > 1 else ""
        for prompt, scored in combination.parts.items():
            attempt = iteration.attempts[scored.arm.text]
            if combination.decision is not None and not (together and attempt.gate):
                said = (
                    f"{together} together: {combination.decision.reason}" if together else combination.decision.reason
                )
                attempt = replace(attempt, gate=said)
            if not together:
                attempt = replace(attempt, screening=combination.gain)
                if combination.gain is not None:
                    self.met[prompt] += [
                        Pair(old.conversation.id, scored.by_conversation[old.conversation.id], new.score - old.score)
                        for old, new in zip(order, combination.outcomes, strict=False)
                        if old.conversation.id in scored.by_conversation
                    ]
            iteration.attempts[scored.arm.text] = attempt


def _attempt(prompt: str, arm: Arm) -> Attempt:
    return Attempt(prompt, arm.source, arm.reason, arm.text)


def _together(scored: Sequence[LocalScore]) -> list[Arm]:
    """The best texts with the best sets of demonstrations."""
    texts = [each.arm for each in scored if each.arm.source != DEMONSTRATED][:TRIED_TOGETHER]
    shown = [each.arm.demonstrations for each in scored if each.arm.source == DEMONSTRATED][:TRIED_TOGETHER]
    return [arm for text, chosen in product(texts, shown) if (arm := with_shown(text, chosen)) is not None]


def _reaching(inputs: Sequence[RecordedInput], weight: Callable[[RecordedInput], float], stake: float) -> int:
    """How many inputs it takes until this much is at stake; all of them if there is less."""
    sums = accumulate(map(weight, inputs))
    return next((number for number, reached in enumerate(sums, start=1) if reached >= stake), len(inputs))
