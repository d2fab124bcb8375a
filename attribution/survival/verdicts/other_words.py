"""Right replies in other words, which a judge by words calls wrong."""

from __future__ import annotations

from collections.abc import Sequence

from attribution.judging.normal_forms import same_form_as_any
from attribution.survival.case_view import CaseView
from attribution.survival.matching.matcher import JudgesReplies
from attribution.survival.outdated import is_unknowable
from attribution.text.content import content_of, is_date
from attribution.text.dates import spans_of
from attribution.text.phrases import denies, says_unknown
from tracing.systems.conversations import Question


def is_right(view: CaseView) -> bool:
    """Whether a reply is an accepted answer in other words.

    Dates, lengths of time, numbers, lists, and yes or no are compared by their values. Otherwise a matcher that reads
    replies has the last word. Where there is none, or it has no opinion, the reply has to have the answer's words and
    no others.
    """
    return said_right(
        view.case.question, view.case.reply, view.matcher if isinstance(view.matcher, JudgesReplies) else None
    )


def said_right(question: Question, reply: str, judge: JudgesReplies | None) -> bool:
    """The same of a question and a reply, by a matcher that reads replies or, without one, by words and values."""
    said = same_form_as_any(question.question, question.answers, reply)
    if said is None and judge is not None and not is_unknowable(question) and not says_unknown(reply):
        said = judge.right(question, reply)
    return same_answer(reply, question.answers) if said is None else said


def same_answer(reply: str, answers: Sequence[str]) -> bool:
    """Whether a reply is an accepted answer in other words: the same time, or the same content, and nothing else."""
    said = content_of(reply)
    for answer in answers:
        wanted = content_of(answer)
        if wanted and said == wanted and not denies(reply) and not denies(answer):
            return True
        spans, given = spans_of(answer), spans_of(reply)
        if spans and spans == given and is_date(answer) and is_date(reply):
            return True
    return False
