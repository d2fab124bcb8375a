"""Judging a reply against the accepted answers by their words: no model, the same verdict every time.

Both are compared as tokens; `attribution.text.tokens` says how these are normalised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from attribution.judging.metrics import LLM_JUDGE, measured
from attribution.text import tokens
from attribution.text.languages.reading_language import language_of, reading
from attribution.text.tokens import compared, word_count
from tracing.systems.conversations import Question

METRICS = ("short_contains", "em", "f1", "contains")
"""Names of the metrics; the first is the default."""

SHORT_REPLY_WORDS = 12
"""The longest reply that `short_contains` accepts, in words; two Chinese or Japanese characters count as one."""


FORM_SHARE = 0.1
"""Share of replies that a metric refuses for their form alone from which people are told."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """How well a reply matches the accepted answers, each measure from 0 (not at all) to 1.

    Attributes:
        score: the primary metric's value.
        em: 1 if the reply is an accepted answer, neither more nor less.
        f1: greatest harmonic mean of token precision and recall over the accepted answers.
        contains: 1 if the reply contains an accepted answer.
    """

    score: float
    em: float
    f1: float
    contains: float


def by_words(metric: str) -> str:
    """The metric if it is a function of the texts, else the default one."""
    return METRICS[0] if metric == LLM_JUDGE else metric


def judge(reply: str, answers: Sequence[str], metric: str = METRICS[0]) -> Judgement:
    """Judge `reply` by its best match among `answers`; any of them is a full answer.

    `metric` chooses the primary score: `short_contains` (an accepted answer is contained in a reply of at most
    `SHORT_REPLY_WORDS` words), `em`, `f1`, `contains`, or a user's own (`attribution.judging.metrics`).

    Raises:
        ConfigError: no such metric; lists the names. Or a user's own fails.

    Example:
        >>> judge("She lives in Oslo.", ["Oslo", "the city of Oslo"]).score
        1.0
    """
    pairs = [
        (reply_tokens, accepted)
        for reply_tokens, accepted in (compared(reply, answer) for answer in answers)
        if accepted
    ]
    contained = float(any(tokens.contains(reply, answer) for answer in answers))
    measures = {
        "em": max((float(reply_tokens == accepted) for reply_tokens, accepted in pairs), default=0.0),
        "f1": max((_f1(reply_tokens, accepted) for reply_tokens, accepted in pairs), default=0.0),
        "contains": contained,
        "short_contains": contained if word_count(reply) <= SHORT_REPLY_WORDS else 0.0,
    }
    score = measures[metric] if metric in measures else measured(metric, reply, answers)
    return Judgement(score, measures["em"], measures["f1"], measures["contains"])


def judge_reply(question: Question, reply: str, metric: str = METRICS[0]) -> Judgement:
    """Judge a reply to a question as `judge` does, in the language of question and answers where these show one.

    Raises:
        ConfigError: as `judge`.
    """
    with reading(language_of((question.question, *question.answers))):
        return judge(reply, question.answers, metric)


def refused_for_form(metric: str, score: float, contains: float) -> str | None:
    """What to tell of replies that hold an accepted answer and count as wrong for their form; None if they are few.

    `score` and `contains` are means over replies, by the metric, and of those that contain an accepted answer.
    """
    share = contains - score
    if metric not in _FORMS or share <= 0 or (share < FORM_SHARE and score > share):
        return None
    form, wider = _FORMS[metric]
    return (
        f"{share:.0%} of the replies contain an accepted answer {form}, so {metric} counts them as wrong: ask for a "
        f"short answer in the answer prompt, or, if such replies are right, take --metric {wider}"
    )


_FORMS = {
    "short_contains": (f"in more than {SHORT_REPLY_WORDS} words", "contains"),
    "em": ("and more than it", "short_contains"),
}
"""Metric → the form that it refuses, and the metric that does not."""


def short_contains(reply: str, answers: Sequence[str]) -> float:
    """1 if an accepted answer is contained in a reply of at most `SHORT_REPLY_WORDS` words."""
    return judge(reply, answers, "short_contains").score


def em(reply: str, answers: Sequence[str]) -> float:
    """1 if the reply is an accepted answer, neither more nor less."""
    return judge(reply, answers).em


def f1(reply: str, answers: Sequence[str]) -> float:
    """Greatest harmonic mean of token precision and recall over the accepted answers."""
    return judge(reply, answers).f1


def contains(reply: str, answers: Sequence[str]) -> float:
    """1 if an accepted answer occurs in the reply as a run of tokens."""
    return judge(reply, answers).contains


def _f1(reply_tokens: Sequence[str], accepted: Sequence[str]) -> float:
    common = sum((Counter(reply_tokens) & Counter(accepted)).values())
    return 2 * common / (len(reply_tokens) + len(accepted)) if common else 0.0
