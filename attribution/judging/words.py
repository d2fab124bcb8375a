"""Judging a reply against the accepted answers by their words: no model, the same verdict every time.

Texts are compared as token sequences, normalised as in SQuAD (Rajpurkar et al. 2016, evaluation script v1.1): lower
case, no punctuation, no articles. Four refinements, on both sides alike: number words up to ninety-nine become digits,
a hyphen separates words (so that `twenty-two`, `twenty two` and `22` agree, and none of them contains `20`), a decimal
point stays, and Chinese and Japanese are split into characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from attribution.judging.metrics import LLM_JUDGE, measured

METRICS = ("short_contains", "em", "f1", "contains")
"""Names of the metrics; the first is the default."""

SHORT_REPLY_WORDS = 12
"""The longest reply that `short_contains` accepts, in words; two Chinese or Japanese characters count as one."""

_ARTICLES = frozenset(("a", "an", "the"))
_UNITS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_NUMBERS = {word: value for value, word in enumerate(_UNITS.split())} | {
    word: 20 + 10 * place for place, word in enumerate(_TENS.split())
}
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CJK_CHARACTER = re.compile(f"[{_CJK}]")
_DASHES = re.compile(r"[-\u2010-\u2015/_]")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_PUNCTUATION = re.compile(r"(?!(?<=\d)\.(?=\d))[^\w\s]")


@dataclass(frozen=True, slots=True)
class Judgement:
    """How well a reply matches the accepted answers, each measure from 0 (not at all) to 1.

    Attributes:
        score: the primary metric's value.
        em: 1 if the reply is an accepted answer, neither more nor less.
        f1: greatest harmonic mean of token precision and recall over the accepted answers.
        contains: 1 if an accepted answer occurs in the reply as a run of tokens.
    """

    score: float
    em: float
    f1: float
    contains: float


def by_words(metric: str) -> str:
    """The metric where it is a function of the texts, else the default one that is."""
    return METRICS[0] if metric == LLM_JUDGE else metric


def judge(reply: str, answers: Sequence[str], metric: str = METRICS[0]) -> Judgement:
    """Judge `reply` by its best match among `answers`; any of them is a full answer.

    `metric` chooses the primary score: `short_contains` (an accepted answer is contained in a reply of at most
    `SHORT_REPLY_WORDS` words), `em`, `f1`, `contains`, or a user's own (`attribution.judging.metrics`).

    Raises:
        ConfigError: no such metric; lists the names. Or a user's own fails.
    """
    said = normalise(reply)
    accepted = [tokens for tokens in map(normalise, answers) if tokens]
    contained = max((float(occurs(tokens, said)) for tokens in accepted), default=0.0)
    measures = {
        "em": max((float(tokens == said) for tokens in accepted), default=0.0),
        "f1": max((_f1(said, tokens) for tokens in accepted), default=0.0),
        "contains": contained,
        "short_contains": contained if word_count(reply) <= SHORT_REPLY_WORDS else 0.0,
    }
    score = measures[metric] if metric in measures else measured(metric, reply, answers)
    return Judgement(score, measures["em"], measures["f1"], measures["contains"])


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


@lru_cache(maxsize=8192)
def normalise(text: str) -> tuple[str, ...]:
    """The tokens of `text` that are compared. A text of nothing but articles keeps them."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = _PUNCTUATION.sub("", _THOUSANDS.sub("", _DASHES.sub(" ", text)))
    words = _CJK_CHARACTER.sub(lambda character: f" {character[0]} ", text).split()
    kept = [word for word in words if word not in _ARTICLES] or words
    return tuple(_with_digits(kept))


def occurs(needle: Sequence[str], haystack: Sequence[str]) -> bool:
    """Whether the tokens of `needle` stand in `haystack` one after the other."""
    size = len(needle)
    wanted = tuple(needle)
    return size > 0 and any(tuple(haystack[at : at + size]) == wanted for at in range(len(haystack) - size + 1))


def word_count(text: str) -> int:
    """Length of a reply in words; two Chinese or Japanese characters count as one word."""
    characters = len(_CJK_CHARACTER.findall(text))
    return len(_CJK_CHARACTER.sub(" ", text).split()) + (characters + 1) // 2


def _with_digits(words: Sequence[str]) -> list[str]:
    out: list[str] = []
    after_tens = False
    for word in words:
        value = _NUMBERS.get(word)
        if value is None:
            out.append(word)
        elif after_tens and 1 <= value <= 9:
            out[-1] = str(int(out[-1]) + value)
        else:
            out.append(str(value))
        after_tens = value is not None and value >= 20
    return out


def _f1(said: Sequence[str], accepted: Sequence[str]) -> float:
    common = sum((Counter(said) & Counter(accepted)).values())
    return 2 * common / (len(said) + len(accepted)) if common else 0.0
