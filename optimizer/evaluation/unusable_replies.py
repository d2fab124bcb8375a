"""Replies that could not be used: how many, why, and what to do where they decide the scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tracing.llm.accounting.meter import Meter

MANY = 0.05
"""Share of an operation's replies above which those that could not be used decide the scores."""

_HELPERS = frozenset({"reflect", "matcher", "report_prose"})
"""Operations that decide no score: they write prompts, attribute, or tell."""

_REMEDIES = {
    "cut short": "raise models.task.max_tokens (for one operation: `max_tokens: {answer: 200}`)",
    "malformed": "take a model that keeps to a form, or ask for the form in the prompt",
    "empty": "see in the traces what the model does instead of answering",
    "refused": "take a model that answers such questions",
    "filtered": "loosen the content filter of the endpoint",
}


@dataclass(frozen=True, slots=True)
class UnusableReplies:
    """Replies that could not be used.

    Attributes:
        counts: operation → reason (`empty`, `cut short`, `refused`, `filtered`, `malformed`) → replies.
        replies: operation → all its replies, of those that have unusable ones.
    """

    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    replies: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, meter: Meter) -> UnusableReplies:
        """Those that a meter has counted."""
        counts, usage = meter.unusable(), meter.snapshot()
        return cls(counts, {name: int(usage[name]["calls_made"] + usage[name]["calls_cached"]) for name in counts})

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(sum(reasons.values()) for reasons in self.counts.values())

    @property
    def by_reason(self) -> dict[str, int]:
        """Reason → how many."""
        return dict(sum((Counter(reasons) for reasons in self.counts.values()), Counter[str]()))

    @property
    def sentence(self) -> str | None:
        """How many there are, of which operations and why; None if there are none."""
        if not self.total:
            return None
        parts = "; ".join(
            f"{name}: {', '.join(f'{count:,} {reason}' for reason, count in reasons.items())}"
            + (f" of {self.replies[name]:,}" if name in self.replies else "")
            for name, reasons in self.counts.items()
        )
        return f"{self.total:,} {'reply' if self.total == 1 else 'replies'} could not be used ({parts})"

    def warning(self, least: int = 1) -> str | None:
        """What to do where so many are unusable that scores say little of the prompts; None where they are few.

        Args:
            least: how many of an operation there must be.
        """
        many = {
            reason
            for name, reasons in self.counts.items()
            if name not in _HELPERS and sum(reasons.values()) >= max(least, MANY * self.replies.get(name, 0) + 1e-9)
            for reason in reasons
        }
        if not many:
            return None
        remedies = "; ".join(remedy for reason, remedy in _REMEDIES.items() if reason in many)
        return f"{self.sentence}: scores measure the form of the replies, not the prompts. To change that: {remedies}"
