"""Which objective measures which prompt, and how users add their own.

`docs/extending-loop.md` explains how to write one, and `optimizer.conformance` checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

from attribution.judging.words import Judgement
from attribution.survival.flow import rewrites
from attribution.survival.gold import Gold
from attribution.survival.matching.matcher import Matcher, MatcherFactory
from attribution.text.content import Vocabulary
from optimizer.evaluation.evaluator import Evaluator
from optimizer.objectives.objective import OBJECTIVES, Credit, KnowsRightOutputs, Objective, RecordedInput
from tracing.errors import ConfigError, MemtuneError, RunError, in_one_line
from tracing.suggestions import unknown_names
from tracing.systems.conversations import Conversation, Question
from tracing.systems.layouts import Item
from tracing.systems.prompts import PromptSpec
from tracing.systems.protocol import OperationSpec, Stage

_T = TypeVar("_T")

BY_STAGE: Mapping[Stage, str] = {
    "extract": "extraction",
    "update": "update",
    "retrieve": "search",
    "answer": "answer",
}
"""The built-in objective of each stage."""


class Golds:
    """Gold content by conversation.

    Args:
        verbatim: the system stores what was said word for word.
        matching: sets up what decides what a text carries in a conversation; by default its words do.
    """

    def __init__(self, *, verbatim: bool, matching: Callable[[Conversation], Matcher] | None = None) -> None:
        self._verbatim, self._matching = verbatim, matching
        self._conversations: dict[str, tuple[Sequence[Gold], Vocabulary]] = {}

    def of(self, conversation: Conversation) -> Sequence[Gold]:
        """The gold content of each question."""
        return self._both(conversation)[0]

    def vocabulary(self, conversation: Conversation) -> Vocabulary:
        """How informative each word is in the conversation."""
        return self._both(conversation)[1]

    def _both(self, conversation: Conversation) -> tuple[Sequence[Gold], Vocabulary]:
        if conversation.id not in self._conversations:
            vocabulary = Vocabulary(turn.text for turn in conversation.turns())
            matcher = None if self._matching is None else self._matching(conversation)
            golds = [
                Gold(question, conversation.until(question), vocabulary, verbatim=self._verbatim, matcher=matcher)
                for question in conversation.questions
            ]
            self._conversations[conversation.id] = golds, vocabulary
        return self._conversations[conversation.id]


@dataclass(frozen=True, slots=True)
class ObjectiveMeans:
    """What an objective may use.

    Attributes:
        golds: what each question needs, and what of it a text says.
        judged: judges a reply as the run does.
        operation: the operation that the prompt steers.
    """

    golds: Golds
    judged: Callable[[Question, str], Judgement]
    operation: OperationSpec


class ObjectiveFactory(Protocol):
    """Makes the objective of one prompt."""

    def __call__(self, means: ObjectiveMeans, /) -> Objective:
        """The objective."""


def open_objectives(chosen: Mapping[str, str], prompts: Mapping[str, PromptSpec]) -> dict[str, ObjectiveFactory]:
    """The factories of the objectives that a user chose, by prompt; impossible choices are a `ConfigError`."""
    unknown = sorted(chosen.keys() - prompts.keys())
    if unknown:
        raise ConfigError(
            f"search.objectives: no prompt {unknown_names(unknown, prompts)}; choose from {', '.join(prompts)}"
        )
    return {
        prompt: cast("ObjectiveFactory", OBJECTIVES.open_callable(name, "means")) for prompt, name in chosen.items()
    }


def objectives_of(
    evaluator: Evaluator, chosen: Mapping[str, ObjectiveFactory], matcher: MatcherFactory | None = None
) -> dict[str, Objective]:
    """Prompt name → the user's objective, or the built-in one for its operation's stage.

    `matcher` sets up what decides what a text carries; by default its words do.
    """
    matching = None if matcher is None else lambda conversation: matcher(conversation, evaluator.access)
    golds = Golds(verbatim=not rewrites(evaluator.system.operations), matching=matching)
    objectives: dict[str, Objective] = {}
    for operation in evaluator.system.operations:
        if operation.prompt is None:
            continue
        means = ObjectiveMeans(golds, evaluator.judged, operation)
        if operation.prompt in chosen:
            objectives[operation.prompt] = _CheckedObjective(operation.prompt, chosen[operation.prompt], means)
        else:
            objectives[operation.prompt] = OBJECTIVES.open(BY_STAGE[operation.stage])(means)
    return objectives


class _CheckedObjective:
    """A user's objective; what it raises names it."""

    def __init__(self, prompt: str, factory: ObjectiveFactory, means: ObjectiveMeans) -> None:
        self._prompt = prompt
        self._inner = self._call(lambda: factory(means))

    def weight(self, execution: RecordedInput) -> float:
        return self._call(lambda: float(self._inner.weight(execution)))

    def credit(self, execution: RecordedInput, outputs: Sequence[Item]) -> Credit:
        credit = self._call(lambda: self._inner.credit(execution, outputs))
        if not isinstance(credit, Credit) or not 0 <= credit.value <= 1:
            raise RunError(f"search.objectives: that of {self._prompt!r} gave {credit!r}; return a Credit of 0 to 1")
        return credit

    def right(self, execution: RecordedInput) -> Sequence[Item] | None:
        inner = self._inner
        return self._call(lambda: inner.right(execution)) if isinstance(inner, KnowsRightOutputs) else None

    def _call(self, question: Callable[[], _T]) -> _T:
        try:
            return question()
        except MemtuneError:
            raise
        except Exception as error:
            raise RunError(
                f"search.objectives: that of {self._prompt!r} failed: {in_one_line(error)}; fix it and start the run "
                "again (its calls are cached)"
            ) from error
