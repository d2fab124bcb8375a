"""The closed loop: attribute the champion's failures, rewrite the prompt they point at, keep what passes the gate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from attribution.cases import Attribution
from attribution.signals import Signals, aggregate
from attribution.survival.method import Survival
from optimizer.evaluation.evaluator import Evaluator, Outcome, score_of
from optimizer.evaluation.scores import Score, SplitName, Splits
from optimizer.gating.gate import GateDecision, behind, decide
from optimizer.gating.verdict import NO_CHANGE, Verdict, verdict_of
from optimizer.proposers.proposals import Proposal, ProposalRequest, examples_of
from optimizer.proposers.sources import ProposalSources
from optimizer.search.reserve import TimeReserve
from optimizer.search.results import (
    Attempt,
    BlameShare,
    CallCounts,
    IterationRecord,
    LoopResult,
    LoopSettings,
    Observer,
)
from optimizer.search.screening import SCREENED, drawn, race
from optimizer.search.selection import Choice, Edit, choose
from tracing.errors import BudgetExceededError, RunError
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import Candidate
from tracing.systems.protocol import MemorySystem

if TYPE_CHECKING:
    from optimizer.proposers.examples import Example
    from tracing.llm.access import ModelAccess
    from tracing.systems.prompts import PromptSpec

FINALISTS = 2
"""Proposals of one iteration that meet the validation conversations, best of the screening first."""


class _ChampionUnscoredError(RunError):
    """The champion's prompts fail on a conversation. It ends the search or the test, but not what was reached."""


def optimize(
    *,
    system: MemorySystem,
    evaluator: Evaluator,
    splits: Splits,
    seed_candidate: Candidate,
    settings: LoopSettings,
    access: ModelAccess,
    observer: Observer,
) -> LoopResult:
    """Tune the prompts of a system on the train conversations, gate on validation, and test the champion once.

    A spent budget ends the search cleanly with the best so far, and so does a champion that fails on a conversation.
    Where there is a time budget, as much of it as the test will take is kept back; the other budgets may be used up
    by the search, and there is no verdict then.

    Raises:
        RunError: the seed prompts cannot be scored, since calls fail or are cut short.
        ContractError: the seed candidate breaks a contract.
    """
    return _Loop(system, evaluator, splits, dict(seed_candidate), settings, access, observer).run()


class _Loop:
    def __init__(
        self,
        system: MemorySystem,
        evaluator: Evaluator,
        splits: Splits,
        seed: Candidate,
        settings: LoopSettings,
        access: ModelAccess,
        observer: Observer,
    ) -> None:
        self.system, self.evaluator, self.splits, self.seed = system, evaluator, splits, seed
        self.settings, self.access, self.observer = settings, access, observer
        self.champion: Candidate = seed
        self.baseline: dict[SplitName, Score] = {}
        self.scores: dict[SplitName, Score] = {}
        self.iterations: list[IterationRecord] = []
        self.history: list[Edit] = []
        self.tried: dict[str, set[str]] = {name: {text} for name, text in seed.items()}
        self.verdict: Verdict | None = None
        self.tokens: dict[Literal["baseline", "champion"], float] = {}
        self.reserve = TimeReserve(access.budget, len(splits.test), access.concurrency)
        self.sources = ProposalSources(evaluator, access, splits.train, settings.hand)

    def run(self) -> LoopResult:
        stopped = self._until_stopped(self._search) or "all rounds done"
        stopped = self._until_stopped(self._test) or stopped
        return self._result(stopped)

    @staticmethod
    def _until_stopped(part: Callable[[], str | None]) -> str | None:
        """Why a part of the run ended early; None where it was done to the end."""
        try:
            return part()
        except BudgetExceededError as error:
            return f"budget: {error}"
        except _ChampionUnscoredError as error:
            return str(error)

    def _search(self) -> str | None:
        train = self._score("train", self.seed, self.baseline)
        attributions, signals = self._attribute(train, 1)
        validation = seed_validation = self._score("val", self.seed, self.baseline)
        for n in range(1, self.settings.rounds + 1):
            if not signals.failures:
                return "no wrong answer is left on the train conversations"
            self.reserve.allow(SCREENED)
            before = self.champion
            validation = self._iterate(n, train, attributions, signals, validation, seed_validation)
            if self.champion != before and n < self.settings.rounds:
                self.reserve.allow(len(self.splits.train))
                train = self._score("train", self.champion, self.scores)
                attributions, signals = self._attribute(train, n + 1)
        return None

    def _score(self, split: SplitName, candidate: Candidate, into: dict[SplitName, Score]) -> list[Outcome]:
        """Outcomes on a split that must be scored, its score noted in `into` and told where it is the baseline's."""
        whose = "baseline" if candidate == self.seed else "champion"
        phase = f"{whose} {'validation' if split == 'val' else split}"
        outcomes = self._evaluate(phase, candidate, self.splits.named()[split])
        for outcome in outcomes:
            if outcome.tainted is not None:
                raise (RunError if candidate == self.seed else _ChampionUnscoredError)(
                    f"{outcome.conversation.id}: cannot be scored with the {whose}'s prompts: {outcome.tainted}; "
                    "mend the cause and start the run again (finished calls are cached)"
                )
        into[split] = score_of(outcomes, seed=self.settings.seed)
        if into is self.baseline:
            self.observer.baseline(split, into[split])
            if self.champion == self.seed:
                self.scores[split] = into[split]
        return outcomes

    def _evaluate(
        self,
        phase: str,
        candidate: Candidate,
        conversations: Sequence[Conversation],
        *,
        before: Sequence[Outcome] = (),
        total: int | None = None,
    ) -> list[Outcome]:
        """Outcomes of conversations that follow those `before` in a phase of `total`, with its progress reported."""
        failed_before = _failed(before)
        done_before = len(before) - failed_before

        def progress(done: int, _: int, failed: int) -> None:
            self.observer.progress(phase, done_before + done, total or len(conversations), failed_before + failed)

        progress(0, 0, 0)
        with self.reserve.timed(len(conversations)):
            return self.evaluator.evaluate(candidate, conversations, progress=progress)

    def _attribute(self, train: Sequence[Outcome], iteration: int) -> tuple[list[Attribution], Signals]:
        attributions: list[Attribution] = []
        for outcome in train:
            survival = Survival(outcome.graph, outcome.conversation, self.system.operations)
            attributions += [survival.attribute(case) for case in outcome.cases if not case.passed]
        total = sum(len(outcome.cases) for outcome in train)
        signals = aggregate(attributions, self.system.operations, total_cases=total, seed=self.settings.seed)
        self.observer.blame(iteration, signals.signals)
        return attributions, signals

    def _iterate(
        self,
        n: int,
        train: Sequence[Outcome],
        attributions: Sequence[Attribution],
        signals: Signals,
        validation: list[Outcome],
        seed_validation: list[Outcome],
    ) -> list[Outcome]:
        """One turn of the loop; returns the (new) champion's validation outcomes."""
        before = self.access.meter.totals()
        choice = choose(self._editable(), signals.signals, self.history, seed=self.settings.seed + n)
        attempts: dict[str, Attempt] = {}
        accepted = False
        try:
            if choice is not None:
                spec = self.system.prompts[choice.prompt]
                failed, passed = examples_of(spec, train, attributions)
                batch = drawn(train, failed, seed=self._seed_of(n))
                for each in self._propose(n, choice, failed, passed, batch):
                    attempts[each.text] = Attempt(each.prompt, each.source, each.reason, each.text)
                for finalist in self._screen(n, attempts, batch)[:FINALISTS]:
                    challenger = {**self.champion, finalist.prompt: finalist.text}
                    decision, outcomes = self._validate(n, challenger, validation, seed_validation)
                    attempts[finalist.text] = replace(finalist, gate=decision.reason)
                    if decision.accepted and not self._approved(attempts[finalist.text]):
                        attempts[finalist.text] = replace(finalist, gate=f"declined by hand, though {decision.reason}")
                    elif decision.accepted:
                        self.champion, validation, accepted = challenger, outcomes, True
                        # Known again only where another round scores the new champion.
                        self.scores.pop("train", None)
                        break
                self.history.append(Edit(choice.prompt, accepted))
        finally:
            self.scores["val"] = score_of(validation, seed=self.settings.seed)
            self._record(n, signals, choice, accepted, attempts, before)
        return validation

    def _record(
        self,
        n: int,
        signals: Signals,
        choice: Choice | None,
        accepted: bool,
        attempts: Mapping[str, Attempt],
        before: Mapping[str, float],
    ) -> None:
        """Keep and tell what an iteration did; `before` are the meter's totals at its start."""
        after = self.access.meter.totals()
        record = IterationRecord(
            n=n,
            blame={s.operation: BlameShare(s.share, s.share_ci) for s in signals.signals},
            edited=(choice.prompt,) if choice else (),
            proposals=len(attempts),
            accepted=accepted,
            val_score=self.scores["val"].score,
            calls_made=int(after["calls_made"] - before["calls_made"]),
            calls_cached=int(after["calls_cached"] - before["calls_cached"]),
            tokens=int(_tokens(after) - _tokens(before)),
            champion=dict(self.champion),
            attempts=tuple(attempts.values()),
        )
        self.iterations.append(record)
        self.observer.iteration(record)

    def _editable(self) -> Mapping[str, PromptSpec]:
        """The prompts to choose from: those with rewrites by hand that were not tried, where there are any."""
        prompts = self.system.prompts
        waiting = {
            each.prompt
            for each in self.settings.hand
            if each.text not in self.tried[each.prompt] and not prompts[each.prompt].contract.violations(each.text)
        }
        return {name: prompts[name] for name in waiting} or prompts

    def _approved(self, attempt: Attempt) -> bool:
        return self.settings.approve is None or self.settings.approve(attempt, self.champion[attempt.prompt])

    def _seed_of(self, n: int) -> int:
        return self.settings.seed * 1000 + n

    def _propose(
        self, n: int, choice: Choice, failed: tuple[Example, ...], passed: tuple[Example, ...], batch: Sequence[Outcome]
    ) -> list[Proposal]:
        """Rewrites of the chosen prompt that were not tried before."""
        request = ProposalRequest(
            prompt=self.system.prompts[choice.prompt],
            stage=next(each.stage for each in self.system.operations if each.prompt == choice.prompt),
            text=self.champion[choice.prompt],
            candidate=dict(self.champion),
            signal=choice.signal,
            failed=failed,
            passed=passed,
            minibatch=tuple(outcome.conversation for outcome in batch),
            count=max(1, math.ceil(self.settings.proposals / 2)),
            seed=self._seed_of(n),
            tried=frozenset(self.tried[choice.prompt]),
        )
        proposals = self.sources.propose(n, request, self.settings.proposals)
        self.tried[choice.prompt].update(each.text for each in proposals)
        return proposals

    def _screen(self, n: int, attempts: dict[str, Attempt], batch: Sequence[Outcome]) -> list[Attempt]:
        """Note each attempt's gain on the screening conversations.

        Returns:
            Those that beat the champion there, best first.
        """
        phase = f"iteration {n}: screening of {len(attempts)} proposals"
        total = len(attempts) * len(batch)
        measured: list[Outcome] = []

        def measure(attempt: Attempt, reference: Outcome) -> Outcome:
            self.reserve.allow(1)
            challenger = {**self.champion, attempt.prompt: attempt.text}
            measured.extend(self._evaluate(phase, challenger, [reference.conversation], before=measured, total=total))
            return measured[-1]

        attempts.update(race(attempts, batch, measure))
        failed = _failed(measured)
        self.observer.progress(phase, total - failed, total, failed)
        better = [each for each in attempts.values() if each.screening is not None and each.screening > 0]
        return sorted(better, key=lambda each: -(each.screening or 0.0))

    def _validate(
        self, n: int, challenger: Candidate, champion: Sequence[Outcome], seed: Sequence[Outcome]
    ) -> tuple[GateDecision, list[Outcome]]:
        """The gate's decision on a challenger; one that is behind after half of the conversations meets no more."""
        phase, half, total = f"iteration {n}: validation", len(champion) // 2, len(champion)
        conversations = self.splits.validation
        self.reserve.allow(total)
        outcomes = self._evaluate(phase, challenger, conversations[:half], total=total) if half else []
        decision = behind(champion[:half], outcomes) if half else None
        if decision is None:
            outcomes += self._evaluate(phase, challenger, conversations[half:], before=outcomes, total=total)
            decision = decide(champion, outcomes, seed)
        failed = _failed(outcomes)
        self.observer.progress(phase, total - failed, total, failed)
        return decision, outcomes

    def _test(self) -> None:
        """Seed and champion meet the test conversations, once."""
        base = self._score("test", self.seed, self.baseline)
        self.tokens["baseline"] = _tokens_a_question(base)
        if self.champion == self.seed:
            self.tokens["champion"] = self.tokens["baseline"]
            self.verdict = NO_CHANGE
        else:
            best = self._score("test", self.champion, self.scores)
            self.tokens["champion"] = _tokens_a_question(best)
            self.verdict = verdict_of(base, best, seed=self.settings.seed)
        self.observer.verdict(self.verdict)

    def _result(self, stopped: str) -> LoopResult:
        said = self.verdict
        totals = self.access.meter.totals()
        made, cached = int(totals["calls_made"]), int(totals["calls_cached"])
        spent = self.evaluator.spent
        outside = made + cached - spent.made - spent.cached
        return LoopResult(
            baseline=self.baseline,
            champion=self.scores,
            champion_candidate=self.champion,
            verdict=said.verdict if said else None,
            delta=said.delta if said else None,
            delta_ci=said.delta_ci if said else None,
            p_value=said.p_value if said else None,
            power=said.power if said else None,
            iterations=self.iterations,
            stopped=stopped,
            calls=CallCounts(made=made, cached=cached, without_reuse=spent.plain + outside),
            tokens_per_question=self.tokens,
        )


def _failed(outcomes: Sequence[Outcome]) -> int:
    return sum(outcome.tainted is not None for outcome in outcomes)


def _tokens(totals: Mapping[str, float]) -> float:
    return totals["prompt_tokens"] + totals["completion_tokens"]


def _tokens_a_question(outcomes: Sequence[Outcome]) -> float:
    return sum(outcome.tokens for outcome in outcomes) / sum(len(outcome.cases) for outcome in outcomes)
