"""Candidates tried one after another: measured whole, recorded, and the best on validation becomes the champion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace

from optimizer.evaluation.evaluator import Outcome
from optimizer.gating.gate import GateDecision, GateOutcome
from optimizer.proposers.author import Author
from optimizer.search.rounds import crown_winner
from optimizer.tuning.round import RewriteRecord, Round
from optimizer.tuning.tuning import Tuning
from tracing.systems.conversations import Conversation
from tracing.systems.prompts import Candidate


def author_of(tuning: Tuning, name: str) -> Author:
    """The search's author; a phase of the optimizer `name` tells that it writes."""
    return Author(
        tuning.author, lambda requests: tuning.step(f"{name}: requests to the author", requests, requests + 1)
    )


class CandidateSearch(AbstractContextManager["CandidateSearch"]):
    """The candidates of one search; a context, which ends the last round.

    Each new candidate is a round. One that breaks a contract scores 0 and is never sent; so does one under which
    the system fails. The best so far on all train conversations meets the validation conversations, and the best there,
    if it is better than the baseline, becomes the champion. What is declined or not ahead again is not the best so far.

    Args:
        tuning: the search.
        source: the source of its rewrites.
    """

    def __init__(self, tuning: Tuning, source: str) -> None:
        self._tuning, self._source = tuning, source
        self._open_round = ExitStack()
        self._round: Round | None = None
        self._n = 0
        self._outcomes: dict[tuple[tuple[str, str], ...], dict[str, Outcome | None]] = {}
        for split in ("train", "validation"):
            for outcome in tuning.outcomes(split):
                self._outcomes_of(tuning.champion)[outcome.conversation.id] = outcome
        self._best = {
            "train": self._total(tuning.champion, tuning.train),
            "validation": self._total(tuning.champion, tuning.validation),
        }

    def __exit__(self, *error: object) -> None:
        self._open_round.close()

    def measure(
        self,
        candidate: Candidate,
        conversations: Sequence[Conversation],
        reason: str,
        *,
        problems: Mapping[str, Sequence[str]] | None = None,
    ) -> list[float]:
        """The candidate's score on each of some train or validation conversations.

        Args:
            candidate: a text for each prompt.
            conversations: to measure it on, if that was not done before.
            reason: what was changed, in one line.
            problems: prompt name → what makes its text unusable, besides what its contract says.
        """
        known_outcomes = self._outcomes_of(candidate)
        if not known_outcomes:
            self._begin(candidate, reason)
        broken = self._broken(candidate, problems or {})
        missing = [conversation for conversation in conversations if conversation.id not in known_outcomes]
        if missing and broken:
            known_outcomes.update({conversation.id: None for conversation in missing})
            self._note(candidate, reason, {name: not_tried(what) for name, what in broken.items()})
        elif missing:
            judged = self._has(candidate, self._tuning.validation)
            self._tuning.allow(len(missing))
            for outcome in self._tuning.measure(candidate, missing, f"round {self._n}: {self._source}"):
                known_outcomes[outcome.conversation.id] = outcome
            self._judge(candidate, reason, judged=judged)
        return [_score(known_outcomes[conversation.id]) for conversation in conversations]

    def outcome(self, candidate: Candidate, conversation: Conversation) -> Outcome | None:
        """What was recorded of a measured candidate on a conversation; None if it broke a contract or the system."""
        outcome = self._outcomes_of(candidate).get(conversation.id)
        return None if outcome is None or outcome.tainted is not None else outcome

    def _judge(self, candidate: Candidate, reason: str, *, judged: bool) -> None:
        """Validate the best on train, and crown the best on validation, unless that was judged before."""
        tuning = self._tuning
        gain = self._gain(candidate)
        if gain is not None:
            self._note(candidate, reason, {}, gain)
        if self._is_best(candidate, "train", tuning.train):
            self._best["train"] = self._total(candidate, tuning.train)
            if not self._has(candidate, tuning.validation):
                self.measure(candidate, tuning.validation, reason)
                return
        if judged or not self._has(candidate, tuning.validation):
            return
        size, total = len(tuning.validation), self._total(candidate, tuning.validation)
        best = self._is_best(candidate, "validation", tuning.validation)
        decision = decision_on_validation(total / size, size, best=best)
        keys = self._note(candidate, reason, dict.fromkeys(candidate, decision), gain)
        if best and self._round is not None and crown_winner(tuning, self._round, keys, candidate):
            self._best["validation"] = total

    def _is_best(self, candidate: Candidate, split: str, conversations: Sequence[Conversation]) -> bool:
        """Whether a candidate is sound and the best so far on a whole split."""
        if not self._has(candidate, conversations):
            return False
        sound = all(self.outcome(candidate, conversation) is not None for conversation in conversations)
        return sound and self._total(candidate, conversations) > self._best[split]

    def _begin(self, candidate: Candidate, reason: str) -> None:
        self._open_round.close()
        self._n += 1
        self._round = self._open_round.enter_context(self._tuning.round(self._n))
        self._note(candidate, reason, {})

    def _note(
        self, candidate: Candidate, reason: str, gates: Mapping[str, GateDecision], gain: float | None = None
    ) -> list[str]:
        """Record a rewrite for each prompt that differs from the baseline; returns their keys."""
        if self._round is None:
            return []
        rewrites = self._round.rewrites
        changed = [name for name, text in candidate.items() if text != self._tuning.baseline[name]]
        for name in changed:
            text = candidate[name]
            key = f"{name}\n{text}"
            rewrite = rewrites.get(key) or RewriteRecord(name, self._source, reason, text)
            screening = rewrite.screening if gain is None else gain
            rewrites[key] = replace(rewrite, gate=gates.get(name, rewrite.gate), screening=screening)
        self._round.edits(*changed)
        return [f"{name}\n{candidate[name]}" for name in changed]

    def _broken(self, candidate: Candidate, problems: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        prompts = self._tuning.prompts
        violations = {
            name: [*problems.get(name, ()), *prompts[name].contract.violations(text)]
            for name, text in candidate.items()
            if name in prompts
        }
        return {name: what for name, what in violations.items() if what}

    def _gain(self, candidate: Candidate) -> float | None:
        """The mean gain over the champion on the train conversations that both have met; None if a call failed."""
        pairs = [
            (self.outcome(candidate, conversation), self.outcome(self._tuning.champion, conversation))
            for conversation in self._tuning.train
            if conversation.id in self._outcomes_of(candidate)
        ]
        gains = [ours.score - theirs.score for ours, theirs in pairs if ours is not None and theirs is not None]
        return round(sum(gains) / len(gains), 9) if gains and len(gains) == len(pairs) else None

    def _has(self, candidate: Candidate, conversations: Sequence[Conversation]) -> bool:
        return all(conversation.id in self._outcomes_of(candidate) for conversation in conversations)

    def _total(self, candidate: Candidate, conversations: Sequence[Conversation]) -> float:
        return sum(_score(self._outcomes_of(candidate)[conversation.id]) for conversation in conversations)

    def _outcomes_of(self, candidate: Candidate) -> dict[str, Outcome | None]:
        return self._outcomes.setdefault(tuple(sorted(candidate.items())), {})


def not_tried(problems: Sequence[str]) -> GateDecision:
    """The decision on a text that breaks its contract."""
    return GateDecision(GateOutcome.NOT_TRIED, "; ".join(problems))


def decision_on_validation(mean: float, size: int, *, best: bool) -> GateDecision:
    """The decision on a candidate that scored `mean` on all `size` validation conversations."""
    outcome = GateOutcome.BEST if best else GateOutcome.NOT_BEST
    return GateDecision(outcome, f"{mean:.3f} on {size} validation conversations")


def _score(outcome: Outcome | None) -> float:
    return 0.0 if outcome is None else outcome.score_or_zero
