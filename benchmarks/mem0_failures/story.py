"""Conversations whose last answer fails at a certain step, drawn by a seed: what is said, and what a model does.

The plan is complete: which facts each reply extracts, what each decision does, which entries lie nearest to the
question, and what is answered. Nothing in it knows how attribution works.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from attribution.cases import ErrorType
from benchmarks.mem0_failures.matters import IDLE, MATTERS, NAMES, Matter

Failure = Literal[
    "never extracted",
    "extracted otherwise",
    "taken for known",
    "change refused",
    "overwritten",
    "deleted",
    "others found",
    "ignored",
    "none",
]
FAILURES: tuple[Failure, ...] = get_args(Failure)

TRUTH: Mapping[Failure, tuple[ErrorType, str] | None] = {
    "never extracted": ("ExtractionError", "extract_facts"),
    "extracted otherwise": ("ExtractionError", "extract_facts"),
    "taken for known": ("UpdateError", "decide_update"),
    "change refused": ("UpdateError", "decide_update"),
    "overwritten": ("UpdateError", "decide_update"),
    "deleted": ("DeletionError", "decide_update"),
    "others found": ("RetrievalError", "retrieve"),
    "ignored": ("ResponseError", "answer"),
    "none": None,
}
"""Failure → the error type, and the operation at fault as `instrument.mem0` names it; none where the reply is right."""

_SESSIONS = 4
_CHANGES, _MISLEADS, _ECHOES = 0.3, 0.6, 0.5


@dataclass(frozen=True)
class Said:
    """A turn, the facts that the model extracts of it, and what it decides on each; ADD where it is not said.

    Attributes:
        speaker: who says it.
        text: what is said.
        facts: that the reply to the extraction has.
        decision: event, and the entry that it is about, by its text.
    """

    speaker: str
    text: str
    facts: tuple[str, ...] = ()
    decision: tuple[str, str] = ("ADD", "")

    @property
    def spoken(self) -> str:
        """As the memory gets it."""
        return f"{self.speaker}: {self.text}"


@dataclass(frozen=True)
class Story:
    """A conversation with a planned failure.

    Attributes:
        failure: that is planned.
        sessions: the turns, session by session.
        question: asked at the end; answer: the right one; reply: the one that is given.
        needed: session and place of the turn that says the answer.
        echoed: whether the other speaker tells of having the very same.
        fault: session in which the step at fault runs; the number of sessions for search and answer.
        facts: what the memory could say that answers the question.
        near: texts whose vectors are that of the question.
        far: texts whose vectors have nothing in common with it.
    """

    failure: Failure
    sessions: tuple[tuple[Said, ...], ...]
    question: str
    answer: str
    reply: str
    needed: tuple[int, int]
    echoed: bool
    fault: int
    facts: tuple[str, ...]
    near: tuple[str, ...]
    far: tuple[str, ...]


def stories(seed: int, each: int, failures: Sequence[Failure] = FAILURES) -> list[Story]:
    """So many stories of each failure; equal seeds give equal ones."""
    return [_Plan(failure, random.Random(f"{seed} {failure} {n}")).story() for failure in failures for n in range(each)]  # noqa: S311


class _Plan:
    """A story as it is drawn."""

    def __init__(self, failure: Failure, drawn: random.Random) -> None:
        self._failure, self._drawn = failure, drawn
        self._who, self._other = drawn.sample(NAMES, 2)
        self._matter, *self._others = drawn.sample(MATTERS, 6)
        self._value, self._wrong, self._old = drawn.sample(self._matter.values, 3)
        self._fact = self._stored(self._matter, self._who, self._value)
        self._changes = failure == "change refused" or (
            failure in ("never extracted", "none") and drawn.random() < _CHANGES
        )
        self._sessions: list[list[Said]] = [[] for _ in range(_SESSIONS)]
        self._at = drawn.randrange(1, 3) if self._changes else drawn.randrange(0, 2)
        self._later = drawn.randrange(self._at + 1, _SESSIONS)

    def story(self) -> Story:
        """The whole of it."""
        former = self._stored(self._matter, self._who, self._old)
        needed = self._tell(former)
        near: tuple[str, ...] = (self._fact, former)
        far: tuple[str, ...] = ()
        fault = self._at
        if self._failure in ("overwritten", "deleted"):
            near, fault = (self._fact, self._spoil()), self._later
        elif self._failure == "others found":
            near, far, fault = self._crowd(), (self._fact,), _SESSIONS
        elif self._failure in ("ignored", "none"):
            fault = _SESSIONS
            if self._drawn.random() < _MISLEADS:
                self._tell_of_other(self._wrong)
        if echoed := self._drawn.random() < _ECHOES:
            self._tell_of_other(self._value)
        for turns in self._sessions:
            self._drawn.shuffle(turns)
            turns.insert(0, Said(self._other, self._drawn.choice(IDLE)))
            if not any(turn.facts for turn in turns if turn is not needed):
                turns.append(self._said(self._others[0], self._other))
        place = next(place for place, turn in enumerate(self._sessions[self._at]) if turn is needed)
        return Story(
            self._failure,
            tuple(tuple(turns) for turns in self._sessions),
            self._matter.asked.format(who=self._who),
            self._value,
            self._reply(),
            (self._at, place),
            echoed,
            fault,
            tuple(form.format(who=self._who, v=self._value) for form in self._matter.stored),
            near,
            far,
        )

    def _tell(self, former: str) -> Said:
        """Have told what is asked, and other matters; gives the turn that says the answer."""
        spoken = self._matter.changed if self._changes else self._drawn.choice(self._matter.spoken)
        if self._changes:
            before = self._drawn.choice(self._matter.spoken).format(v=self._old)
            self._sessions[self._at - 1].append(Said(self._who, before, (former,)))
        planned = self._planned(former if self._changes else "")
        needed = Said(self._who, spoken.format(v=self._value), *planned)
        self._sessions[self._at].append(needed)
        for number, matter in enumerate(self._others):
            speaker = self._drawn.choice((self._who, self._other))
            self._sessions[number % _SESSIONS].append(self._said(matter, speaker))
        return needed

    def _planned(self, former: str) -> tuple[tuple[str, ...], tuple[str, str]]:
        """What becomes of the turn that says the answer: the facts, and the decision."""
        change = ("UPDATE", former) if former else ("ADD", "")
        if self._failure == "never extracted":
            return (), change
        if self._failure == "extracted otherwise":
            return (self._stored(self._matter, self._who, self._wrong),), change
        refused = self._failure in ("taken for known", "change refused")
        return (self._fact,), ("NONE", "") if refused else change

    def _spoil(self) -> str:
        """Have another matter told later, whose decision takes the fact for its own entry; gives what it stores."""
        matter = self._drawn.choice([each for each in MATTERS if each not in (self._matter, *self._others)])
        value = self._drawn.choice(matter.values)
        text = self._stored(matter, self._who, value)
        event = "UPDATE" if self._failure == "overwritten" else "DELETE"
        spoken = self._drawn.choice(matter.spoken).format(v=value)
        self._sessions[self._later].append(Said(self._who, spoken, (text,), (event, self._fact)))
        return text

    def _crowd(self) -> tuple[str, ...]:
        """Have told what is nearer to the question than its answer, in each session."""
        lines = (
            *self._matter.near,
            f"{{other}} asked {{who}} the question: {self._matter.asked}",
            "{other} has a question about {who}.",
        )
        entries = tuple(line.format(who=self._who, other=self._other) for line in lines)
        for turns, entry in zip(self._sessions, entries, strict=True):
            turns.append(Said(self._other, f"By the way, note this: {entry}", (entry,)))
        return entries

    def _tell_of_other(self, value: str) -> None:
        """Have the other speaker tell a value of the same matter."""
        text = self._stored(self._matter, self._other, value)
        spoken = self._drawn.choice(self._matter.spoken).format(v=value)
        self._sessions[self._later].append(Said(self._other, spoken, (text,)))

    def _said(self, matter: Matter, speaker: str) -> Said:
        value = self._drawn.choice(matter.values)
        spoken = self._drawn.choice(matter.spoken).format(v=value)
        return Said(speaker, spoken, (self._stored(matter, speaker, value),))

    def _stored(self, matter: Matter, who: str, value: str) -> str:
        return self._drawn.choice(matter.stored).format(who=who, v=value)

    def _reply(self) -> str:
        replies: Mapping[Failure, str] = {
            "none": self._value,
            "change refused": self._old,
            "extracted otherwise": self._wrong,
        }
        return replies.get(self._failure) or self._drawn.choice((self._wrong, "unknown", "I do not know."))
