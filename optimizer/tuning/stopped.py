"""Why a search or a run ended: a kind, by which the code decides, and the sentence that people and files have of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

StopKind = Literal[
    "rounds",
    "patience",
    "nothing-wrong",
    "search-calls",
    "budget",
    "running",
    "interrupted",
    "error",
    "fault",
    "own",
]

_DETAIL = "{detail}"

_SENTENCES: Mapping[StopKind, str] = {
    "rounds": "all rounds done",
    "patience": "{detail} rounds in a row brought no better prompts",
    "nothing-wrong": "no wrong answer is left on the train conversations",
    "search-calls": "budget: search.calls: {detail}",
    "budget": "budget: {detail}",
    "running": "running",
    "interrupted": "interrupted",
    "error": "error: {detail}",
    "fault": "fault: {detail}",
    "own": _DETAIL,
}
"""In the order in which a sentence is read."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """Why a search or a run ended; as a text, the sentence.

    Attributes:
        kind: `rounds` and `patience` if all rounds that were wanted are done, `nothing-wrong` if no wrong answer is
            left, `budget` if a budget is spent and `search-calls` if it is that of the search alone. `running`,
            `interrupted`, `error` (of the user's) and `fault` (of ours) are those of a run that did not finish. What an
            optimizer says in words of its own is `own`.
        detail: what the kind does not say: the rounds of `patience`, the error, or the optimizer's words.

    Example:
        >>> str(Stopped("budget", "10 calls are made"))
        'budget: 10 calls are made'
    """

    kind: StopKind
    detail: str = ""

    def __str__(self) -> str:
        return _SENTENCES[self.kind].replace(_DETAIL, self.detail)

    def __add__(self, words: str) -> str:
        """The sentence with words of one's own behind it."""
        return f"{self}{words}"

    @classmethod
    def read(cls, sentence: str) -> Stopped:
        """The reason whose sentence this is, such as that of a file."""
        for kind, pattern in _SENTENCES.items():
            before, has_detail, after = pattern.partition(_DETAIL)
            if has_detail and sentence.startswith(before) and sentence.endswith(after):
                return cls(kind, sentence[len(before) : len(sentence) - len(after)])
            if sentence == pattern:
                return cls(kind)
        raise AssertionError("the last pattern is any sentence")

    @classmethod
    def returned(cls, reason: object) -> Stopped:
        """The reason that an optimizer returned, which may be its sentence; a search that returned has finished.

        Raises:
            TypeError: it is neither, or an empty text.
        """
        if isinstance(reason, str) and reason.strip():
            reason = cls.read(reason)
        if isinstance(reason, Stopped):
            return reason if reason.finished else cls("own", f"ended by itself: {reason}")
        raise TypeError(f"returned a {type(reason).__name__}; return why the search ended, as a Stopped or a text")

    @property
    def by_budget(self) -> bool:
        """Whether a budget ended it, be it that of the search alone."""
        return self.kind in ("budget", "search-calls")

    @property
    def finished(self) -> bool:
        """Whether a run finished, also by a spent budget; False if it is running, was interrupted or failed."""
        return self.kind not in ("running", "interrupted", "error", "fault")

    @property
    def heading(self) -> str:
        """The sentence up to its first colon."""
        return str(self).partition(":")[0]
