"""Replies that are right in other words than the accepted answer, and wrong ones that look much the same.

Two parts: paraphrases and more specific answers, which were written by hand, and dates, durations, numbers, lists and
guarded answers, which are made of pools with a seed. Each right reply has a wrong twin. What rules are developed on
(the known replies, of those written by hand) and what they are measured on have no line, no pool and no seed in common.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from importlib.resources import files
from itertools import chain
from typing import TYPE_CHECKING, Literal

from attribution.survival.matching.known_verdicts import known_replies, read_replies
from benchmarks.english_times import MONTHS, NUMBERS, WEEKDAYS

if TYPE_CHECKING:
    from tracing.systems.conversations import Conversation

Part = Literal["held-out", "development"]

_SEEDS: dict[Part, int] = {"held-out": 1914, "development": 7}
_MADE = 60
_NUMBERS = {
    "held-out": ((12, "a dozen"), (21, "twenty-one"), (7, "seven"), (15, "fifteen"), (40, "forty"), (3, "three")),
    "development": ((11, "eleven"), (30, "thirty"), (6, "six"), (18, "eighteen"), (24, "twenty-four"), (9, "nine")),
}
_THINGS: dict[Part, Sequence[str]] = {
    "held-out": ("hiking", "pottery", "chess", "swimming", "baking", "running", "painting", "sailing", "knitting"),
    "development": ("fishing", "yoga", "tennis", "dancing", "gardening", "skating", "reading", "climbing", "rowing"),
}
_WISHES: dict[Part, Sequence[str]] = {
    "held-out": ("move abroad", "adopt a second child", "vote for the reform", "buy an electric car"),
    "development": ("study law", "enjoy a desert tour", "lend the money", "join the choir"),
}
_EVENTS: dict[Part, Sequence[str]] = {
    "held-out": ("the wedding", "the operation", "the marathon", "the fire"),
    "development": ("the exhibition", "the flood", "the interview", "the reunion"),
}


@dataclass(frozen=True, slots=True)
class JudgedReply:
    """A reply with the truth about it.

    Attributes:
        kind: in what way a right one differs from the accepted answer.
        question, answer: what was asked, and the accepted answer.
        reply: what a system said.
        right: whether that is right.
    """

    kind: str
    question: str
    answer: str
    reply: str
    right: bool


def replies_of(part: Part) -> list[JudgedReply]:
    """The right and wrong replies of one part, the same every time."""
    draw = random.Random(_SEEDS[part])  # noqa: S311
    makers: tuple[tuple[str, _Maker], ...] = (
        ("date", _date),
        ("duration", _duration),
        ("number", _number),
        ("list", _list),
        ("likely", _likely),
    )
    made = ((kind, *maker(part, draw)) for kind, maker in makers for _ in range(_MADE))
    found = dict.fromkeys(
        JudgedReply(kind, question, answer, reply, is_right)
        for kind, question, answer, right, wrong in chain(_written(part), made)
        for reply, is_right in ((right, True), (wrong, False))
    )
    return list(found)


def free_replies(part: Part, conversations: Sequence[Conversation]) -> list[JudgedReply]:
    """Replies to questions of LoCoMo in free words, and near wrong ones; none of questions that are not in this data.

    They were written before any of them was judged. Each conversation is wholly in one part, conv-26 in none.
    """
    questions = {question.id: question for talk in conversations for question in talk.questions}
    judged: list[JudgedReply] = []
    for line in (files("benchmarks.matching") / "free_words.txt").read_text(encoding="utf-8").splitlines():
        line_part, name, kind, right, wrong = line.split("|")
        if line_part == part and name in questions:
            question = questions[name]
            for reply, is_right in ((right, True), (wrong, False)):
                judged.append(JudgedReply(f"free: {kind}", question.question, question.answers[0], reply, is_right))
    return judged


def _written(part: Part) -> Iterator[tuple[str, str, str, str, str]]:
    if part == "development":
        found = known_replies()
    else:
        file = files("benchmarks.matching") / "held_out" / "replies.txt"
        found = list(read_replies(file.read_text(encoding="utf-8")))
    for each in found:
        yield each.kind, each.question, each.answer, each.right, each.wrong


_Made = tuple[str, str, str, str]
_Maker = Callable[[Part, random.Random], _Made]


def _date(part: Part, draw: random.Random) -> _Made:
    day = date(draw.randint(2019, 2024), 1, 1) + timedelta(days=draw.randrange(365))
    other = day + draw.choice((timedelta(days=3), timedelta(days=-9), timedelta(days=31), timedelta(days=365)))
    forms: tuple[Callable[[date], str], ...] = (
        lambda d: d.isoformat(),
        lambda d: f"{MONTHS[d.month - 1]} {d.day}, {d.year}",
        lambda d: f"It was on {d.day} {MONTHS[d.month - 1][:3]} {d.year}.",
        lambda d: f"on the {d.day}{_ending(d.day)} of {MONTHS[d.month - 1]} {d.year}",
        lambda d: f"{WEEKDAYS[d.weekday()]}, {MONTHS[d.month - 1]} {d.day}{_ending(d.day)}, {d.year}",
        lambda d: d.strftime("%d.%m.%Y"),
    )
    form = draw.choice(forms)
    answer = f"{day.day} {MONTHS[day.month - 1]} {day.year}"
    return f"When was {draw.choice(_EVENTS[part])}?", answer, form(day), form(other)


def _duration(part: Part, draw: random.Random) -> _Made:
    count = draw.randint(2, 6)
    answer, right, wrong = draw.choice(
        (
            (f"{_word(count)} years", f"{12 * count} months", f"{10 * count} months"),
            (f"{count} weeks", f"{7 * count} days", f"{7 * count + 7} days"),
            (f"{24 * count} hours", f"{_word(count)} days", f"{_word(count + 1)} days"),
            (f"{12 * count} months", f"for {_word(count)} years", f"for {_word(count + 2)} years"),
            (f"{count} years", f"{count} yrs", f"{count} months"),
            (f"{_word(count)} weeks", f"about {count} weeks", f"about {count + 3} weeks"),
        )
    )
    return f"How long after {draw.choice(_EVENTS[part])} did they wait?", answer, right, wrong


def _number(part: Part, draw: random.Random) -> _Made:
    number, words = draw.choice(_NUMBERS[part])
    thing = draw.choice(_THINGS[part])
    answer, right = draw.choice(((str(number), f"She has taken {words} of them."), (words, str(number))))
    return f"How many {thing} lessons has she taken?", answer, right, str(number + draw.choice((-1, 1, 10)))


def _list(part: Part, draw: random.Random) -> _Made:
    items = draw.sample(_THINGS[part], draw.randint(3, 4))
    listed, other, extra = items[:-1], items[::-1][1:], items[-1]
    answer = ", ".join(listed[:-1]) + f" and {listed[-1]}"
    right = draw.choice((", ".join(other), f"They like {' and also '.join(other)}.", " & ".join(other)))
    wrong = draw.choice((", ".join([*other[1:], extra]), " and ".join(other[1:]), f"{other[0]}, but not {other[1]}"))
    return "What do they do together?", answer, right, wrong


def _likely(part: Part, draw: random.Random) -> _Made:
    yes = draw.random() < 0.5
    wish = draw.choice(_WISHES[part])
    said = {True: ("Likely yes", "Yes, probably", "Most likely she would"), False: ("Likely no", "Probably not")}
    answer = "Yes" if yes else "No"
    if draw.random() < 0.5:
        answer = f"Likely {answer.lower()}"
    right, wrong = (draw.choice([one for one in said[each] if one != answer]) for each in (yes, not yes))
    return f"Would she {wish}?", answer, right, wrong


def _word(number: int) -> str:
    return NUMBERS[number - 1]


def _ending(day: int) -> str:
    return "th" if 10 <= day <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
