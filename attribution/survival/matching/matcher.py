"""Matchers: what they decide for survival, replay and local objectives, and how users add their own.

A matcher is named by its factory, which sets it up for one conversation. `docs/extending-loop.md` explains how to write
one, and `attribution.conformance` checks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, cast, runtime_checkable

from tracing.plugins import PluginRegistry

if TYPE_CHECKING:
    from attribution.survival.needs import Need
    from tracing.llm.access import ModelAccess
    from tracing.systems.conversations import Conversation, Question

WORDS, LLM = "words", "llm"

MATCHERS = PluginRegistry(
    "matchers",
    "matcher",
    {
        WORDS: "attribution.survival.matching.word_matcher:by_words",
        LLM: "attribution.survival.matching.model_matcher:by_asking",
    },
    gone={"meaning": f"an embedding model errs more than words do; use {WORDS}, or {LLM} for replies in free words"},
)

Person = Literal["right", "absent", "other"]
Wording = Literal["own", "verbatim", "reply"]


@dataclass(frozen=True, slots=True)
class Claim:
    """What a text is to carry.

    Attributes:
        question: what was asked.
        need: the content that its answer needs: the answer or a part of it, or what some turns say.
        confused: the reply gave the near miss, so a text that leaves the person out did not prevent it.
    """

    question: Question
    need: Need
    confused: bool = False


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that may carry a claim.

    Attributes:
        text: a fact, an entry, a line of a context, or the reply.
        traced: the graph shows that it was made from the need's turns and few others.
        wording: in a model's `own` words, `verbatim` from the conversation, or the `reply` to the question.
        possible: it may have been made from them: they were among what was read, or nobody is known to have made it.
    """

    text: str
    traced: bool = False
    wording: Wording = "own"
    possible: bool = False


@dataclass(frozen=True, slots=True)
class Grade:
    """How well one text carries a need.

    Attributes:
        coverage: part of the need's content in the text, 0 to 1.
        person: whether it is about the person asked about, nobody, or another speaker.
        about: part of the question's subject in the text, 0 to 1.
        relevant: whether person and subject are near enough for the coverage to count.
        carries: whether it is relevant and its coverage is enough.
        traced: whether the graph shows that it was made from the need's turns.
        words: its content words, to see what several texts carry together; empty if a text counts only alone.

    Example:
        >>> Grade(coverage=1.0, person="right", about=0.5, relevant=True, carries=True).carries
        True
    """

    coverage: float
    person: Person
    about: float
    relevant: bool
    carries: bool
    traced: bool = False
    words: frozenset[str] = frozenset()


class Matcher(Protocol):
    """Decides whether texts carry what a question needs; set up for one conversation.

    It is called from several threads.

    Example:
        >>> class Verbatim:
        ...     def may_carry(self, claim, texts):
        ...         return [claim.need.label in text for text in texts]
        ...
        ...     def grades(self, claim, passages):
        ...         carry = self.may_carry(claim, [passage.text for passage in passages])
        ...         return [Grade(float(carries), "right", 1.0, carries, carries) for carries in carry]
    """

    def may_carry(self, claim: Claim, texts: Sequence[str], /) -> Sequence[bool]:
        """Which of many texts are worth grading, in their order; the others carry nothing."""

    def grades(self, claim: Claim, passages: Sequence[Passage], /) -> Sequence[Grade]:
        """How well each passage carries the claim, in their order.

        Raises:
            BudgetExceededError, ModelError: it asks a model, and the call was refused or failed.
        """


@runtime_checkable
class JudgesReplies(Protocol):
    """A `Matcher` that can also tell a right reply in other words from a wrong one."""

    def right(self, question: Question, reply: str, /) -> bool | None:
        """Whether a reply is right in other words; None for no opinion.

        Raises:
            BudgetExceededError, ModelError: it asks a model, and the call was refused or failed.
        """


class MatcherFactory(Protocol):
    """Sets a matcher up for one conversation; a class whose instances are `Matcher`s is one."""

    def __call__(self, conversation: Conversation, access: ModelAccess, /) -> Matcher:
        """The matcher for a conversation. `access` has the models; only `words` is called without."""


def open_matcher(name: str) -> MatcherFactory:
    """The factory of this name or `module:Object`.

    Raises:
        ConfigError: it does not exist, cannot be imported, or does not take a conversation and a model access.
    """
    return cast("MatcherFactory", MATCHERS.open_callable(name, "conversation", "access"))
