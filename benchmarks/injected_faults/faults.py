"""A fault of one operation and what it is to spoil. It fires again whenever that operation runs again."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from benchmarks.injected_faults.trail import (
    Content,
    ContentTrail,
    as_words,
    former_of,
    holds,
    near_to,
    needed_by,
)
from benchmarks.injected_faults.wordings import Wordings
from tracing.graph.elements import Variable
from tracing.systems.conversations import Conversation, Question
from tracing.systems.entries import Entry
from tracing.systems.interventions import Change, Intervention, Step

T = TypeVar("T")

_NOTHING = Content(frozenset(), (), ())


@dataclass(frozen=True, slots=True)
class FaultTarget:
    """What a fault is to spoil, from annotation alone.

    Attributes:
        question: one that was answered right.
        conversation: which it is about.
        needed: what its answer rests on.
        former: what held before that; None where nothing did.
        near: what could be taken for it; None where nothing is annotated.
        wrong: a value that is no accepted answer, of another question on the same conversation.
        answers: the accepted answers of the conversation's other questions.
    """

    question: Question
    conversation: Conversation
    needed: Content
    former: Content | None
    near: Content | None
    wrong: str
    answers: tuple[str, ...]

    def with_value(self, text: str, value: str | None = None) -> str:
        """A text with another value in place of every accepted answer."""
        for answer in sorted(self.question.answers, key=len, reverse=True):
            text = as_words(answer).sub(lambda found: value or self.wrong, text)
        return text


def target_of(question: Question, wordings: Wordings, *, seed: int) -> FaultTarget:
    """What to spoil for a question, and with which wrong value."""
    conversation = wordings.conversation
    values = [
        other.answers[0]
        for other in conversation.questions
        if not other.unanswerable
        and not any(holds(other.answers[0], own) or holds(own, other.answers[0]) for own in question.answers)
    ]
    chance = random.Random(f"{seed} {question.id}")  # noqa: S311 - a choice of examples, no secret
    return FaultTarget(
        question,
        conversation,
        needed_by(question, wordings),
        former_of(question, wordings),
        near_to(question, wordings),
        chance.choice(values or ["something else"]),
        tuple(dict.fromkeys(values)),
    )


@dataclass(frozen=True, slots=True)
class Trails:
    """Where the content of one question goes in the run that a fault is part of."""

    needed: ContentTrail
    former: ContentTrail
    near: ContentTrail

    @classmethod
    def of(cls, target: FaultTarget) -> Trails:
        """Those of a question; what is not annotated has an empty one."""
        return cls(
            ContentTrail(target.needed), ContentTrail(target.former or _NOTHING), ContentTrail(target.near or _NOTHING)
        )

    def each(self) -> tuple[ContentTrail, ContentTrail, ContentTrail]:
        """All three."""
        return self.needed, self.former, self.near


class Fault(Intervention):
    """A fault for one question. Its subclasses each say what one kind of operation does wrong, in one of the hooks.

    Where several operations of a system do the same, as in a chain of extractions, it is the fault of the first.

    Attributes:
        trails: where the question's content goes.
        remains: whether the memory held the content elsewhere, unspoilt, when the question was asked.
    """

    def __init__(self, target: FaultTarget, trails: Trails | None = None) -> None:
        self.target = target
        self.trails = trails or Trails.of(target)
        self.remains = False
        self._fired: list[str] = []
        self._operation: str | None = None

    @property
    def fired(self) -> tuple[str, ...]:
        """Ids of the executions that did it."""
        return tuple(dict.fromkeys(self._fired))

    @property
    def builds(self) -> bool:
        """Whether it has changed what a memory is built of; to be asked before a question is."""
        return bool(self._fired)

    # --- what subclasses do wrong ----------------------------------------------------------------------------------

    def misstate(self, statements: Sequence[str], needed: Sequence[int]) -> Mapping[int, str | None]:
        """The statements that are changed (None: left out), by place; `needed` are those the answer needs."""
        return {}

    def misdecide(self, fact: str, shown: Sequence[Entry], change: Change) -> Change:
        """What is decided on a new fact."""
        return change

    def miswrite(self, given: Change, change: Change) -> Change:
        """What is done about a decision."""
        return change

    def misfind(self, entries: Sequence[Entry], found: list[Entry]) -> list[Entry]:
        """What is found for the question."""
        return found

    def mispresent(self, lines: list[str]) -> list[str]:
        """What the answer's model is shown for the question."""
        return lines

    def misanswer(self, context: Sequence[str]) -> str | None:
        """The reply to the question, whose content the context holds; None where nothing goes wrong."""
        return None

    # --- interventions ---------------------------------------------------------------------------------------------

    def extracted(self, step: Step, messages: Sequence[Variable], statements: list[str]) -> list[str]:
        needed = self.trails.needed.among(messages, statements)
        right: Mapping[int, str | None] = {place: statements[place] for place in needed}
        changed = self._done(step, right, lambda: self._misstated(statements, needed))
        for trail in self.trails.each():
            for place in trail.among(messages, statements):
                made = changed.get(place, statements[place])
                trail.follow(statements[place])
                if made != statements[place]:
                    trail.follow(made or "", spoilt=True)
        kept = (changed.get(place, text) for place, text in enumerate(statements))
        return [text for text in kept if text is not None]

    def decided(self, step: Step, fact: str, shown: Sequence[Entry], change: Change) -> Change:
        made = self._done(step, change, lambda: self.misdecide(fact, shown, change))
        self._follow(fact, made, spoilt=made.text != change.text)
        return made

    def stored(self, step: Step, given: Change, change: Change) -> Change:
        made = self._done(step, change, lambda: self.miswrite(given, change))
        self._follow(given.text, made, spoilt=made.text != change.text)
        return made

    def retrieved(self, step: Step, query: Variable, entries: Sequence[Entry], found: list[Entry]) -> list[Entry]:
        if query.name != self.target.question.id:
            return found
        self.remains |= any(self.trails.needed.is_sound_in(entry.text) for entry in entries)
        return self._done(step, found, lambda: self.misfind(entries, found))

    def presented(self, step: Step, query: Variable, lines: list[str]) -> list[str]:
        if query.name != self.target.question.id:
            return lines
        return self._done(step, lines, lambda: self.mispresent(lines))

    def answered(self, step: Step, query: Variable, context: Sequence[str], reply: str) -> str:
        if query.name != self.target.question.id:
            return reply
        self.remains |= any(map(self.trails.needed.is_sound_in, context))
        if not self._is_answered_by(context):
            return reply
        wrong = self.misanswer(context)
        return reply if wrong is None else self._done(step, reply, lambda: wrong)

    def _misstated(self, statements: Sequence[str], needed: Sequence[int]) -> Mapping[int, str | None]:
        """All statements that are needed or changed, as they are made."""
        return {**{place: statements[place] for place in needed}, **self.misstate(statements, needed)}

    def _follow(self, given: str, made: Change, *, spoilt: bool) -> None:
        """Follow what a change stores of a text, on the trails that it is on."""
        for trail in self.trails.each():
            if trail.on(given) and made.event in ("ADD", "UPDATE"):
                trail.follow(made.text, spoilt=spoilt or not trail.is_sound_in(given))

    def _done(self, step: Step, right: T, wrong: Callable[[], T]) -> T:
        """What an execution emits: what is wrong if the fault is its operation's, and makes a difference."""
        if self._operation not in (None, step.operation):
            return right
        made = wrong()
        if made != right:
            self._operation = step.operation
            self._fired.append(step.id)
        return made

    def _is_answered_by(self, context: Sequence[str]) -> bool:
        """Whether a context holds what the answer needs; or, if there is no answer, nothing that seems to be one."""
        tells = any(map(self.trails.needed.on, context))
        if not self.target.question.unanswerable:
            return tells
        return tells or not any(map(self.trails.former.on, context))


class SeveralFaults(Intervention):
    """Two faults that share the blame: what the first has spoiled reaches the second, which loses it as well.

    Args:
        target: what both are to spoil.
        first, second: make them, in pipeline order.
    """

    def __init__(
        self,
        target: FaultTarget,
        first: Callable[[FaultTarget, Trails], Fault],
        second: Callable[[FaultTarget, Trails], Fault],
    ) -> None:
        trails = Trails.of(target)
        self._first, self._second = first(target, trails), second(target, trails)

    @property
    def fired(self) -> tuple[str, ...]:
        """Ids of the executions of both; none before both have fired."""
        first, second = self._first.fired, self._second.fired
        return (*first, *second) if first and second else ()

    @property
    def remains(self) -> bool:
        """Whether the memory held the content elsewhere, unspoilt, when the question was asked."""
        return self._first.remains

    @property
    def builds(self) -> bool:
        """Whether either has changed what a memory is built of; to be asked before a question is."""
        return self._first.builds or self._second.builds

    def extracted(self, step: Step, messages: Sequence[Variable], statements: list[str]) -> list[str]:
        return self._second.extracted(step, messages, self._first.extracted(step, messages, statements))

    def decided(self, step: Step, fact: str, shown: Sequence[Entry], change: Change) -> Change:
        return self._second.decided(step, fact, shown, self._first.decided(step, fact, shown, change))

    def stored(self, step: Step, given: Change, change: Change) -> Change:
        return self._second.stored(step, given, self._first.stored(step, given, change))

    def retrieved(self, step: Step, query: Variable, entries: Sequence[Entry], found: list[Entry]) -> list[Entry]:
        return self._second.retrieved(step, query, entries, self._first.retrieved(step, query, entries, found))

    def presented(self, step: Step, query: Variable, lines: list[str]) -> list[str]:
        return self._second.presented(step, query, self._first.presented(step, query, lines))

    def answered(self, step: Step, query: Variable, context: Sequence[str], reply: str) -> str:
        return self._second.answered(step, query, context, self._first.answered(step, query, context, reply))
