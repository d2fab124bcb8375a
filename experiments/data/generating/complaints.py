"""Complaints: what a user asked, the reply that the user objected to, and what the conversation says instead."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from attribution.text.content import content_of
from attribution.text.languages.language_data import LANGUAGES
from attribution.text.languages.reading_language import reading
from attribution.text.phrases import says_unknown
from attribution.text.tokens import contains, word_count
from experiments.data.generating.filters import Trial, points_outside
from tracing.package_data import packaged_tables
from tracing.systems.conversations import Question

if TYPE_CHECKING:
    from experiments.data.generating.author import QuestionAuthor
    from experiments.data.generating.dialogue import Dialogue

KIND = "complaint"
_LONGEST_ANSWER = 12
_NEAREST = 5


@dataclass(frozen=True, slots=True)
class Objection:
    """A question as a user asked it, the reply objected to, and what would have been right, if the user said so.

    `turns` are those that ask, reply and object where they are turns of the conversation; else there are none, and
    `after` is the session in which the last turn before it is, if that is known.
    """

    question: str
    reply: str
    turns: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    after: str | None = None


def complaints_within(dialogue: Dialogue) -> Iterator[Objection]:
    """The complaints of a conversation: a question, another's reply to it, and an objection by who asked."""
    turns = list(dialogue.turns.values())
    for asks, replies, objects in zip(turns, turns[1:], turns[2:], strict=False):
        sessions = {dialogue.session[turn.id] for turn in (asks, replies, objects)}
        same = asks.speaker == objects.speaker != replies.speaker and len(sessions) == 1
        if same and "?" in asks.text + "?" * ("？" in asks.text) and objects_to_reply(objects.text):
            yield Objection(asks.text, replies.text, (asks.id, replies.id, objects.id))


def objects_to_reply(text: str) -> bool:
    """Whether a text says that the reply before it was wrong, in any of the languages that are read.

    Example:
        >>> objects_to_reply("No, that's wrong. I already told you that I moved."), objects_to_reply("That's right!")
        (True, False)
    """
    return any(pattern.search(text) for pattern in _patterns())


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    table = packaged_tables("experiments", "data/generating/complaints.toml")
    return tuple(re.compile(table[name], re.IGNORECASE | re.VERBOSE) for name in LANGUAGES if name in table)


def row_of(dialogue: Dialogue, complaint: Objection, author: QuestionAuthor, number: int) -> Question | str:
    """The question of a complaint, with its answer from what was said before it or in it; or why there is none.

    It is asked in the user's own words, after the last session in which its evidence is.

    Raises:
        CallFailedError, BudgetExceededError: of the author.
    """
    with reading(dialogue.language):
        if points_outside(complaint.question):
            return "a complaint: the question does not name its subject"
        evidence = _before(dialogue, complaint)
        shown = dialogue.in_order((*evidence, *complaint.turns[2:]))
        answers = complaint.answers
        if not answers:
            reply = author.answer(dialogue, complaint.question, shown, dated=True) if shown else ""
            if not reply or says_unknown(reply) or word_count(reply) > _LONGEST_ANSWER:
                return "a complaint: the conversation does not tell what would be right"
            answers = (reply,)
        if contains(complaint.reply, answers[0]):
            return "a complaint: the answer is what was objected to"
        saying = [turn for turn in shown if content_of(answers[0]) <= content_of(dialogue.turns[turn].text)]
        if not saying and not complaint.answers:
            return "a complaint: the answer is not in the turns before it"
        own = [turn for turn in saying if turn not in complaint.turns][:1] or saying[:1]
        draft = _asked(dialogue, complaint, answers, own, number)
        if (
            own
            and not complaint.answers
            and not Trial(dialogue, draft, author).is_right(author.answer(dialogue, draft.question, own, dated=True))
        ):
            return "a complaint: asked with the cited turns alone, the answer is another"
        return draft


def _before(dialogue: Dialogue, complaint: Objection) -> Sequence[str]:
    """Of the turns before a question the likeliest to answer it, and those that who asks said last, in any words."""
    order = dialogue.in_order(dialogue.turns)
    before = order[: order.index(complaint.turns[0])] if complaint.turns else order
    if complaint.after is not None:
        sessions = [session.id for session in dialogue.conversation.sessions]
        earlier = {*sessions[: sessions.index(complaint.after) + 1]}
        before = [turn for turn in before if dialogue.session[turn] in earlier]
    asking = dialogue.turns[complaint.turns[0]].speaker if complaint.turns else None
    own = [turn for turn in before if asking in (None, dialogue.turns[turn].speaker)]
    found = [turn for turn in dialogue.found(complaint.question, len(order)) if turn in set(before)]
    return [*found[:_NEAREST], *own[-_NEAREST:]]


def _asked(
    dialogue: Dialogue, complaint: Objection, answers: tuple[str, ...], evidence: Sequence[str], number: int
) -> Question:
    sessions = [session.id for session in dialogue.conversation.sessions]
    after = complaint.after
    if complaint.turns:
        asked_in = sessions.index(dialogue.session[complaint.turns[0]])
        told_in = max((sessions.index(dialogue.session[turn]) for turn in evidence), default=asked_in)
        # The session that holds the wrong reply is part of the memory only where the answer is told in it too.
        after = sessions[max(told_in, asked_in - 1)]
    return Question(
        id=f"{dialogue.conversation.id}/{KIND}/{complaint.turns[2] if len(complaint.turns) > 2 else number}",
        question=complaint.question,
        answers=answers,
        kind=KIND,
        evidence=tuple(evidence),
        objected=complaint.reply or None,
        after_session=after,
        source="generated",
    )


def rows_of_complaints(
    dialogue: Dialogue, complaints: Sequence[Objection], author: QuestionAuthor
) -> tuple[list[Question], Counter[str]]:
    """The questions of complaints, and how many became none, by reason; raises as `row_of`."""
    outcomes = [row_of(dialogue, complaint, author, number) for number, complaint in enumerate(complaints, start=1)]
    rows = [outcome for outcome in outcomes if isinstance(outcome, Question)]
    return rows, Counter(outcome for outcome in outcomes if isinstance(outcome, str))
