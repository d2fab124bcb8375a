"""Set phrases: saying that something is unknown, denying it, taking it back, and asking to remember it."""

from __future__ import annotations

import re
from functools import lru_cache

from attribution.text.content import content_of
from attribution.text.languages.courtesies import COURTESIES
from attribution.text.languages.denials import DENIALS
from attribution.text.languages.function_words import Language
from attribution.text.languages.reading import language, reading
from attribution.text.languages.withdrawals import WITHDRAWALS
from attribution.text.tokens import normalise, words

_CJK_UNKNOWN = re.compile("不知道|未知|没有提到|不明|分かりません|わかりません")
_CJK_RETRACTED = re.compile("忘|删除|取消|作废")
_CJK_DENIED = re.compile("不|没|ない|ません")
_CJK_AFFIRMED = re.compile("不仅|不但")
_CJK_COURTESIES = re.compile(
    "请?(?:帮我|你)?(?:要|一定)?(?:记住|记下(?:来)?|记一下)了?(?:这(?:一)?点|这个|这件事)?|(?:请)?(?:别|不要)忘(?:了|记)?|顺便说一下"
    "|供你参考|谢谢(?:你)?|你好|(?:これを|それを)?(?:覚えて|メモして)(?:おいて)?(?:ください|くださいね|ね)?"
    "|忘れないで(?:ください|ね)?|ちなみに|ありがとう(?:ございます)?|こんにちは|お願いします"
)
_CLAUSE = re.compile(r"[.!?;。！？；\n]+|,? (?:but|aber|pero|mais) ")


@lru_cache(maxsize=8192)
def clauses_of(text: str) -> tuple[str, ...]:
    """The clauses of a text, split so that a denial in one does not affect the others."""
    return tuple(clause for clause in _CLAUSE.split(text) if clause.strip())


def denies(clause: str) -> bool:
    """Whether a clause says that something is not so; "can't wait" and similar phrases do not."""
    return _denies(clause, language())


def says_unknown(text: str) -> bool:
    """Whether a reply says that it does not know."""
    return _says_unknown(text, language())


def is_unknown(answer: str, question: str) -> bool:
    """Whether an answer says that it is not known, and nothing more than the question says.

    A title or a name may hold such a phrase: The Forgotten Garden, the Tomb of the Unknown Soldier.
    """
    return says_unknown(answer) and _beside_unknown(answer, language()) <= content_of(question.casefold())


def says_retracted(text: str) -> bool:
    """Whether a text says that something no longer holds, or that what was said is to be forgotten or kept private."""
    return _says_retracted(text, language())


def without_courtesies(text: str) -> str:
    """A text without requests to remember it, thanks and greetings: a text of these alone stays."""
    return _without_courtesies(text, language())


@lru_cache(maxsize=8192)
def _without_courtesies(text: str, language: Language) -> str:
    left = _CJK_COURTESIES.sub(" ", COURTESIES[language].sub(" ", text.replace("’", "'")))
    with reading(language):
        return left if content_of(left) else text


@lru_cache(maxsize=8192)
def _denies(clause: str, language: Language) -> bool:
    patterns = DENIALS[language]
    left = _CJK_AFFIRMED.sub(" ", patterns.affirmed.sub(" ", clause))
    return patterns.denied.search(left) is not None or _CJK_DENIED.search(left) is not None


@lru_cache(maxsize=8192)
def _says_unknown(text: str, language: Language) -> bool:
    with reading(language):
        said = " ".join(normalise(text)) or text
    # A reply may be in English though the conversation is not.
    return any(DENIALS[one].unknown.search(said) for one in {language, "en"}) or bool(_CJK_UNKNOWN.search(text))


@lru_cache(maxsize=8192)
def _beside_unknown(text: str, language: Language) -> frozenset[str]:
    """The content of a text without the phrases that say that something is not known."""
    with reading(language):
        left = " ".join(words(_CJK_UNKNOWN.sub(" ", text)))
        for one in {language, "en"}:
            left = DENIALS[one].beside.sub(" ", DENIALS[one].unknown.sub(" ", left))
        return content_of(left)


@lru_cache(maxsize=8192)
def _says_retracted(text: str, language: Language) -> bool:
    if _CJK_RETRACTED.search(text):
        return True
    patterns = WITHDRAWALS[language]
    return any(patterns.take_back(clause, denied=_denies(clause, language)) for clause in clauses_of(text))
