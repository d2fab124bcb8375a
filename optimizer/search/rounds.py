"""Rounds of rewrites that must pass the gate: choose a prompt, race its rewrites, validate the best two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from optimizer.gating.gate import Comparison, compare, half_then_all
from optimizer.proposers.rewrites import Rewrite, RewriteRequest
from optimizer.search.crowning import crown_winner
from optimizer.search.screening import SCREENED, drawn, race
from optimizer.search.selection import Choice, Edit
from optimizer.tuning.results import BlameShare, RewriteRecord
from optimizer.tuning.stopped import Stopped

if TYPE_CHECKING:
    from optimizer.evaluation.evaluator import Outcome
    from optimizer.gating.decision import GateDecision
    from optimizer.proposers.examples import Example
    from optimizer.tuning.round import Round
    from optimizer.tuning.tuning import Tuning
    from tracing.systems.prompts import Candidate, PromptSpec

FINALISTS = 2
"""Rewrites of one round that are validated, best of the screening first."""

PATIENCE, LIMITED_PATIENCE = 3, 10
"""Rounds in a row without a new champion that end an open-ended search: where nothing limits it, and under a budget,
which is there to be used."""


class Rounds:
    """The numbers of a search's rounds, from 1 on, while there is a reason for another.

    As many as the settings say; or, if that is open, until a number of rounds in a row brought no new champion.

    Args:
        tuning: the search.
        patience: that number where nothing limits the search; None if the rounds of the settings are enough then.

    Attributes:
        stopped: why there is no further one.
    """

    def __init__(self, tuning: Tuning, patience: int | None) -> None:
        self._tuning = tuning
        settings = tuning.settings
        self._patience = None if not settings.open_ended else LIMITED_PATIENCE if tuning.limited else patience
        self.stopped = Stopped("rounds")

    def __iter__(self) -> Iterator[int]:
        tuning, n, idle = self._tuning, 0, 0
        while n < tuning.settings.rounds if self._patience is None else idle < self._patience:
            before = tuning.champion, tuning.champion_settings
            n += 1
            yield n
            idle = idle + 1 if (tuning.champion, tuning.champion_settings) == before else 0
        if self._patience is not None:
            self.stopped = Stopped("patience", str(idle))


class Guide(Protocol):
    """Decides where rounds look for an improvement."""

    def look(self, n: int) -> bool:
        """Examine what the champion of round `n` does on train; False if nothing is left to improve."""
        ...

    def blame(self) -> Mapping[str, BlameShare]:
        """Each operation's share of the failures, as far as known."""
        ...

    def choose(self, prompts: Mapping[str, PromptSpec], history: Sequence[Edit], seed: int) -> Choice | None:
        """The prompt to rewrite."""
        ...

    def examples(self, spec: PromptSpec) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
        """Executions of the prompt's operation that are blamed, and those behind right answers."""
        ...

    def propose(self, n: int, request: RewriteRequest, most: int) -> list[Rewrite]:
        """At most `most` rewrites, plus those by hand."""
        ...


def gated_rounds(tuning: Tuning, guide: Guide) -> Stopped:
    """Go through `Rounds`, as `guide` says; returns why they ended.

    Raises:
        BudgetExceededError: a hard budget ended them.
    """
    return _Rounds(tuning, guide).run()


class _Rounds:
    def __init__(self, tuning: Tuning, guide: Guide) -> None:
        self.tuning, self.guide = tuning, guide
        self.history: list[Edit] = []
        self.tried: dict[str, set[str]] = {name: {text} for name, text in tuning.baseline.items()}

    def run(self) -> Stopped:
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
        this_round.edited = (choice.prompt,)
        failed, passed = self.guide.examples(tuning.prompts[choice.prompt])
        batch = drawn(tuning.outcomes("train"), failed, seed=tuning.seed_of(n))
        for rewrite in self._propose(n, choice, failed, passed, batch):
            rewrites[rewrite.text] = RewriteRecord(rewrite.prompt, rewrite.source, rewrite.reason, rewrite.text)
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
        self, n: int, choice: Choice, failed: tuple[Example, ...], passed: tuple[Example, ...], batch: Sequence[Outcome]
    ) -> list[Rewrite]:
        """Rewrites of the chosen prompt that were not tried before."""
        tuning, most = self.tuning, self.tuning.settings.proposals
        request = tuning.request(
            choice.prompt,
            signal=choice.signal,
            examples=(failed, passed),
            minibatch=batch,
            count=max(1, -(-most // 2)),
            seed=tuning.seed_of(n),
            tried=self.tried[choice.prompt],
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
