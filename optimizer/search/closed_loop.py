"""The closed loop: attribute the champion's failures, rewrite the prompt they point to, keep what passes the gate.

A round chooses a prompt, races its rewrites on a few train conversations, and validates the best two. Random search is
the control: prompts and rewrites are drawn; gate and verdict are the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from attribution.cases import Attribution
from attribution.signals import Signal
from optimizer.evaluation.evaluator import Outcome
from optimizer.gating.gate import Comparison, GateDecision, compare, half_then_all
from optimizer.proposers.examples import Example, examples_of
from optimizer.proposers.rewrites import Rewrite, RewriteRequest
from optimizer.search.rounds import PATIENCE, SCREENED, Rounds, crown_winner, drawn
from optimizer.search.selection import Choice, Edit, choose
from optimizer.tuning.failures import unattributed_examples
from optimizer.tuning.round import BlameShare, RewriteRecord, Round, blame_shares
from optimizer.tuning.stopped import Stopped
from optimizer.tuning.tuning import Tuning
from tracing.systems.prompts import Candidate, PromptSpec
from tracing.systems.protocol import stage_of

FINALISTS = 2
"""Rewrites of one round that are validated, best of the screening first."""

Measure = Callable[[RewriteRecord, "Outcome"], "Outcome"]
"""Evaluates a rewrite on the conversation of one of the champion's outcomes."""


def closed_loop(tuning: Tuning) -> Stopped:
    """An `Optimizer` that rewrites, round by round, the prompt with the most loss that a rewrite could fix."""
    return _GatedRounds(tuning, _ByBlame(tuning)).run()


def random_search(tuning: Tuning) -> Stopped:
    """An `Optimizer` without attribution: each round draws a prompt, and rewrites from those all sources offer."""
    return _GatedRounds(tuning, _ByChance(tuning)).run()


class _GatedRounds:
    def __init__(self, tuning: Tuning, guide: _ByBlame) -> None:
        self.tuning, self.guide = tuning, guide
        self.history: list[Edit] = []
        self.tried: dict[str, set[str]] = {name: {text} for name, text in tuning.baseline.items()}

    def run(self) -> Stopped:
        """Go through `Rounds`; returns why they ended.

        Raises:
            BudgetExceededError: a hard budget ended them.
        """
        examined, improvable = None, True
        rounds = Rounds(self.tuning, PATIENCE)
        for n in rounds:
            if self.tuning.champion != examined:
                examined, improvable = self.tuning.champion, self.guide.look(n)
            if not improvable:
                return Stopped("nothing-wrong")
            self.tuning.allow(SCREENED)
            with self.tuning.round(n) as this_round:
                this_round.blame = self.guide.blame()
                self._go_through(this_round)
        return rounds.stopped

    def _go_through(self, this_round: Round) -> None:
        tuning, n, rewrites = self.tuning, this_round.n, this_round.rewrites
        choice = self.guide.choose(self._editable(), self.history, tuning.settings.seed + n)
        if choice is None:
            return
        this_round.edits(choice.prompt)
        failed, passed = self.guide.examples(tuning.prompts[choice.prompt])
        batch = drawn(tuning.outcomes("train"), failed, seed=tuning.seed_of(n))
        for rewrite in self._propose(n, choice, failed, passed):
            rewrites[rewrite.text] = RewriteRecord.of(rewrite)
        accepted = False
        for finalist in self._screen(n, rewrites, batch)[:FINALISTS]:
            challenger = {**tuning.champion, finalist.prompt: finalist.text}
            decision = self._validate(n, challenger)
            rewrites[finalist.text] = replace(finalist, gate=decision)
            accepted = decision.accepted and crown_winner(tuning, this_round, [finalist.text], challenger)
            if accepted:
                break
        self.history.append(Edit(choice.prompt, accepted))

    def _editable(self) -> Mapping[str, PromptSpec]:
        """The prompts to choose from: those with untried rewrites by hand, if there are any."""
        prompts = self.tuning.prompts
        waiting = {
            by_hand.prompt
            for by_hand in self.tuning.settings.hand
            if by_hand.text not in self.tried[by_hand.prompt]
            and not prompts[by_hand.prompt].contract.violations(by_hand.text)
        }
        return {name: spec for name, spec in prompts.items() if name in waiting} or prompts

    def _propose(
        self, n: int, choice: Choice, failed: tuple[Example, ...], passed: tuple[Example, ...]
    ) -> list[Rewrite]:
        """Rewrites of the chosen prompt that were not tried before."""
        tuning, most = self.tuning, self.tuning.settings.proposals
        request = RewriteRequest(
            prompt=tuning.prompts[choice.prompt],
            stage=stage_of(tuning.operations, choice.prompt),
            text=tuning.champion[choice.prompt],
            candidate=dict(tuning.champion),
            signal=choice.signal,
            failed=failed,
            passed=passed,
            count=max(1, -(-most // 2)),
            seed=tuning.seed_of(n),
            tried=frozenset(self.tried[choice.prompt]),
        )
        rewrites = self.guide.propose(n, request, most)
        self.tried[choice.prompt].update(rewrite.text for rewrite in rewrites)
        return rewrites

    def _screen(self, n: int, rewrites: dict[str, RewriteRecord], batch: Sequence[Outcome]) -> list[RewriteRecord]:
        """Note each rewrite's gain on the screening conversations.

        Returns:
            Those that beat the champion there, best first.
        """
        tuning, phase = self.tuning, f"round {n}: screening of {len(rewrites)} rewrites"
        total = len(rewrites) * len(batch)
        measured: list[Outcome] = []

        def measure(rewrite: RewriteRecord, reference: Outcome) -> Outcome:
            tuning.allow(1)
            challenger = {**tuning.champion, rewrite.prompt: rewrite.text}
            measured.extend(tuning.measure(challenger, [reference.conversation], phase, before=measured, total=total))
            return measured[-1]

        rewrites.update(race(rewrites, batch, measure))
        tuning.progress(phase, measured, total)
        better = [rewrite for rewrite in rewrites.values() if rewrite.screening is not None and rewrite.screening > 0]
        return sorted(better, key=lambda rewrite: -(rewrite.screening or 0.0))

    def _validate(self, n: int, challenger: Candidate) -> GateDecision:
        """The gate's decision on a challenger; one that is behind after half of the conversations stops there."""
        tuning, champion, conversations = self.tuning, self.tuning.outcomes("validation"), self.tuning.validation
        phase, total = f"round {n}: validation", len(champion)
        outcomes: list[Outcome] = []

        def compared(count: int) -> Comparison:
            further = conversations[len(outcomes) : count]
            outcomes.extend(tuning.measure(challenger, further, phase, before=outcomes, total=total))
            # What the baseline answers matters where the gate can accept.
            return compare(champion[:count], outcomes, tuning.baseline_validation if count == total else None)

        tuning.allow(total)
        decision = half_then_all(total).first_decision(compared)
        tuning.progress(phase, outcomes, total)
        return decision


class _ByBlame:
    """Decides where rounds look for an improvement: where the loss is that a rewrite could fix."""

    def __init__(self, tuning: Tuning) -> None:
        self._tuning = tuning
        self._attributions: list[Attribution] = []
        self._signals: Sequence[Signal] = ()

    def look(self, n: int) -> bool:
        """Examine what the champion of round `n` does on train; False if nothing is left to improve."""
        self._attributions, signals = self._tuning.attribute(n)
        self._signals = signals.signals
        return signals.failures > 0

    def blame(self) -> Mapping[str, BlameShare]:
        """Each operation's share of the failures, as far as known."""
        return blame_shares(self._signals)

    def choose(self, prompts: Mapping[str, PromptSpec], history: Sequence[Edit], seed: int) -> Choice | None:
        """The prompt to rewrite."""
        return choose(prompts, self._signals, history, selector=self._tuning.settings.selector, seed=seed)

    def examples(self, spec: PromptSpec) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
        """Executions of the prompt's operation that are blamed, and those behind right answers."""
        return examples_of(spec, self._tuning.outcomes("train"), self._attributions)

    def propose(self, n: int, request: RewriteRequest, most: int) -> list[Rewrite]:
        """At most `most` rewrites, plus those by hand."""
        return self._tuning.sources.propose(n, request, most)


class _ByChance(_ByBlame):
    """The same without attribution: prompts and rewrites are drawn."""

    def look(self, n: int) -> bool:
        return any(not case.passed for outcome in self._tuning.outcomes("train") for case in outcome.cases)

    def choose(self, prompts: Mapping[str, PromptSpec], history: Sequence[Edit], seed: int) -> Choice | None:
        if not prompts:
            return None
        drawn_name = random.Random(seed).choice(sorted(prompts))  # noqa: S311 (a draw, not a secret)
        return Choice(drawn_name, None, 0.0, "drawn at random")

    def examples(self, spec: PromptSpec) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
        return unattributed_examples(spec, self._tuning.operations, self._tuning.outcomes("train"))

    def propose(self, n: int, request: RewriteRequest, most: int) -> list[Rewrite]:
        return self._tuning.sources.draw(request, most)


def race(rewrites: Mapping[str, RewriteRecord], batch: Sequence[Outcome], measure: Measure) -> dict[str, RewriteRecord]:
    """Run rewrites on the conversations of `batch` one by one, dropping those that fall behind the champion.

    Returns:
        The rewrites in order, with the mean gain over the conversations they ran on as `screening`; it stays None if
        one could not be scored.
    """
    gains: dict[str, list[float]] = {text: [] for text in rewrites}
    racing = list(rewrites)
    for reference in batch:
        for text in tuple(racing):
            outcome = measure(rewrites[text], reference)
            if outcome.tainted is not None:
                gains[text].clear()
            else:
                gains[text].append(outcome.score - reference.score)
            if not gains[text] or _mean(gains[text]) < 0:
                racing.remove(text)
    return {
        text: replace(rewrite, screening=_mean(gains[text])) if gains[text] else rewrite
        for text, rewrite in rewrites.items()
    }


def _mean(gains: Sequence[float]) -> float:
    # Rounding must not make a zero gain look like a real one.
    return round(sum(gains) / len(gains), 9)
