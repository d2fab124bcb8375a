"""What met whole conversations of a search: its score beside the tokens that it takes, and which nothing else beats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from optimizer.evaluation.evaluator import Outcome, tokens_a_question
from optimizer.evaluation.scores import Setting, Settings, Splits, settings_text
from tracing.systems.prompts import Candidate

_Key = tuple[frozenset[tuple[str, str]], frozenset[tuple[str, Setting]]]


@dataclass(frozen=True, slots=True)
class TriedCandidate:
    """A candidate that met conversations of train and validation.

    Attributes:
        change: what of it is not the baseline's, in words.
        score: in the primary metric, mean over the questions that it was asked.
        delta: its score less the baseline's on the same conversations, mean over these.
        tokens: in and out that a question took, the building of its memory included.
        saved: share of the tokens that the baseline took on the same conversations; negative if it takes more.
        conversations: that it met.
        champion: whether it is what the search ended with.
        front: whether nothing that met all validation conversations, as it did, is at least as good with fewer tokens,
            or better with as few (the Pareto front).
    """

    change: str
    score: float
    delta: float
    tokens: float
    saved: float
    conversations: int
    champion: bool = False
    front: bool = False


class Tried:
    """Keeps what a search evaluates.

    Args:
        baseline, settings: what it began with.
        splits: what is met of the test does not count.
    """

    def __init__(self, baseline: Candidate, settings: Settings, splits: Splits) -> None:
        self._baseline, self._settings = dict(baseline), dict(settings)
        self._validation = {conversation.id for conversation in splits.validation}
        self._learned = self._validation | {conversation.id for conversation in splits.train}
        self._outcomes: dict[_Key, dict[str, Outcome]] = {}

    def note(self, candidate: Candidate, settings: Settings, outcomes: Sequence[Outcome]) -> None:
        """Keep the sound outcomes of a candidate under these settings."""
        learned = {
            outcome.conversation.id: outcome
            for outcome in outcomes
            if outcome.tainted is None and outcome.conversation.id in self._learned
        }
        if learned:
            self._outcomes.setdefault(_key(candidate, settings), {}).update(learned)

    def candidates(self, champion: Candidate, settings: Settings) -> tuple[TriedCandidate, ...]:
        """All of them, those that take the fewest tokens first; the baseline is among them.

        Args:
            champion, settings: what the search ended with.
        """
        base, won = self._outcomes.get(_key(self._baseline, self._settings), {}), _key(champion, settings)
        tried = {
            key: replace(self._compared(key, outcomes, base), champion=key == won)
            for key, outcomes in self._outcomes.items()
            if outcomes.keys() & base.keys()
        }
        complete = [candidate for key, candidate in tried.items() if self._validation <= self._outcomes[key].keys()]
        front = [candidate for candidate in complete if not any(_beats(rival, candidate) for rival in complete)]
        marked = (replace(candidate, front=candidate in front) for candidate in tried.values())
        return tuple(sorted(marked, key=lambda candidate: (-candidate.saved, -candidate.delta)))

    def _compared(self, key: _Key, outcomes: Mapping[str, Outcome], base: Mapping[str, Outcome]) -> TriedCandidate:
        both = [name for name in outcomes if name in base]
        old, new = [base[name] for name in both], [outcomes[name] for name in both]
        deltas = [after.score - before.score for before, after in zip(old, new, strict=True)]
        scores = [case.judgement.score for outcome in new for case in outcome.cases]
        tokens, before = tokens_a_question(new), tokens_a_question(old)
        return TriedCandidate(
            change=self._change(dict(key[0]), dict(key[1])),
            score=sum(scores) / len(scores),
            # Shares that cancel out must sum to exactly zero.
            delta=round(sum(deltas) / len(deltas), 9),
            tokens=tokens,
            saved=1 - tokens / before if before else 0.0,
            conversations=len(both),
        )

    def _change(self, candidate: Candidate, settings: Settings) -> str:
        texts = [f"another {name}" for name, text in self._baseline.items() if candidate[name] != text]
        values = settings_text({name: settings[name] for name, own in self._settings.items() if settings[name] != own})
        return ", ".join(filter(None, (*texts, values))) or "the baseline"


def _key(candidate: Candidate, settings: Settings) -> _Key:
    return frozenset(candidate.items()), frozenset(settings.items())


def _beats(rival: TriedCandidate, candidate: TriedCandidate) -> bool:
    at_least = rival.delta >= candidate.delta and rival.saved >= candidate.saved
    return at_least and (rival.delta, rival.saved) != (candidate.delta, candidate.saved)
