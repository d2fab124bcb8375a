"""Evidence that nobody says a gold answer, or an item of it: searched over the whole conversation, in any form."""

from __future__ import annotations

import re

from attribution.explanations import quote
from attribution.gold_answers.claim import NEARBY, ON_TOPIC, SUPPORTING, AnnotatedClaim, is_supported
from attribution.gold_answers.suspicion import Finding
from attribution.gold_answers.transcript import Transcript, same_word
from attribution.text.calendar_names import MONTH, MONTHS
from attribution.text.content import content_of, is_date
from attribution.text.dates import spans_of
from attribution.text.languages.language_data import compiled_of_language
from attribution.text.question_kinds import is_count
from attribution.text.tokens import normalise

_MOST = 0.75
_SHORTEST_NAME = 3
_PATTERNS, _CLAUSES = compiled_of_language("common", "gold_answers"), compiled_of_language("common", "clauses")
_MONTH = re.compile(MONTH, re.IGNORECASE)


def unsaid(claim: AnnotatedClaim, reply: str, talk: Transcript) -> Finding | None:
    """What speaks against the answer because nobody says it; None if an accepted answer is said, or need not be.

    An item is unsaid if turns say hardly any of its words, or a name in it is not said. The evidence is weak where the
    item could follow from what is said, paraphrase it, or be seen in a picture. A name that is said on another matter
    only, and neither in the cited turns nor around them, is weak evidence too.
    """
    question = claim.question
    if claim.concludes or is_count(question):
        return None
    unsaid_items = [_unsaid_of(answer, claim, talk) for answer in question.answers]
    missing = [unsaid_item for unsaid_item in unsaid_items if unsaid_item is not None]
    if len(missing) < len(unsaid_items):
        return None
    item, nowhere = missing[0]
    gold, cited = question.answers[0], ", ".join(question.evidence)
    # Of a place, what it is in need not be said: Toronto, Canada.
    place = _PATTERNS["where"].match(question.question) is not None and "," in gold
    paraphrased = not _names_in(item, gold) and _PATTERNS["abstract"].search(question.question) is not None
    strong = nowhere and not (
        place or paraphrased or _PATTERNS["follows"].search(question.question) or _points(claim, talk)
    )
    supported = is_supported(claim, reply, talk, claim.around)
    where = "nobody in the conversation says" if nowhere else f"neither {cited} nor the turns around say"
    reason = f"{where} {quote(item)}" + (", the gold answer" if item == gold else f", of the gold answer {quote(gold)}")
    if supported:
        reason += f"; {cited} support the reply {quote(reply)}"
    return Finding("unsaid", strong, supported, reason, question.evidence)


def _unsaid_of(answer: str, claim: AnnotatedClaim, talk: Transcript) -> tuple[str, bool] | None:
    """The first item of an answer that is unsaid, and whether nobody says it at all."""
    claimed: str | None = None
    for item in map(str.strip, _PATTERNS["between_items"].split(answer)):
        words = claim.words_of(item, talk)
        if not words or is_date(item) or spans_of(item) or _is_misspelt_date(item):
            continue
        if talk.share(words, talk.everywhere) <= 1 - _MOST:
            return item, True
        name = next((name for name in _names_in(item, answer) if _is_unheard(name, words, talk)), None)
        if name is not None:
            return name, True
        literal = _names_in(item, answer) and not _points(claim, talk)
        if literal and not talk.share(words, claim.around) and not _said_on_topic(words, claim, talk):
            claimed = claimed or item
    return (claimed, False) if claimed is not None else None


def _names_in(item: str, answer: str) -> list[str]:
    """The names and numbers in an item; a capital at the start of the answer does not make a name."""
    words = re.findall(r"\w+", item)
    if item == answer[: len(item)].strip():
        words = words[1:]
    return [
        word
        for word in words
        if (word[0].isupper() or word.isdigit()) and len(word) >= _SHORTEST_NAME and not _MONTH.fullmatch(word)
    ]


def _points(claim: AnnotatedClaim, talk: Transcript) -> bool:
    """Whether a cited turn shows something, in which the answer may have been seen."""
    return any(_PATTERNS["shows"].search(_CLAUSES["caption"].sub("", talk.turns[at].text)) for at in claim.cited)


def _is_unheard(name: str, words: frozenset[str], talk: Transcript) -> bool:
    own = content_of(name) & words
    return bool(own) and not any(map(talk.where, own))


def _is_misspelt_date(item: str) -> bool:
    words = normalise(item)
    return any(map(str.isdigit, words)) and any(same_word(word, month.lower()) for word in words for month in MONTHS)


def _said_on_topic(words: frozenset[str], claim: AnnotatedClaim, talk: Transcript) -> bool:
    """Whether turns say most of the words where they are about what is asked."""
    for at in frozenset[int]().union(*map(talk.where, words)):
        near = talk.near([talk.turns[at].id], NEARBY)
        if talk.share(words, near) >= SUPPORTING and talk.share(claim.topic, near) >= ON_TOPIC:
            return True
    return False
