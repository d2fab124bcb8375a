"""What a question needs: the content that must survive from the evidence turns to the answer, and whose it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from attribution.content import Vocabulary, content_of, is_date, is_number, time_words
from attribution.phrases import says_unknown
from tracing.systems.conversations import Conversation, Fact, Question, Turn

Basis = Literal["stated", "partly", "dated", "elsewhere", "implied"]

STATED = 0.6
"""Least part of an answer's content words, by weight, that a text must hold to state the answer."""

THRESHOLDS: dict[Basis, float] = {"stated": STATED, "partly": STATED, "dated": 0.5, "elsewhere": STATED, "implied": 0.4}
PRIORS: dict[Basis, float] = {"stated": 1.0, "partly": 0.8, "dated": 0.8, "elsewhere": 0.65, "implied": 0.5}
"""What a basis leaves of the confidence: an answer that must be inferred can be lost in ways words don't show."""

_PARTLY = 0.3
_ON_TOPIC = 0.5
_TELLING_WORDS = 6
_INFERENTIAL = content_of("yes, likely, probably, maybe")
_ASKS_A_NAME = re.compile(
    r"\b(?:who|whom|whose|where|name[ds]?|called|which (?:city|country|town|state|place))\b", re.I
)
_SENTENCE_END = re.compile(r"[.!?。！？]\s*")
_BETWEEN_ITEMS = re.compile(r"[,;]\s*(?:and\b|or\b)?|\s(?:and|or|&)\s")


@dataclass(frozen=True, slots=True)
class Need:
    """Content that must survive for the answer to be possible.

    Attributes:
        forms: sets of content words; a text that holds enough of any one of them carries the content.
        turns: ids of the turns that say it; any of them is enough.
        label: how to name it in a sentence.
        basis: "stated" in the evidence; "partly" stated there; "dated", relative to when the turn was said; said
            "elsewhere", in other turns than the annotated ones; "implied", to be inferred from what the turns say.
        unique: no other turn says it, so that a text that does can only have it from these.
        threshold: least coverage of a form with which a text carries the content.
    """

    forms: tuple[frozenset[str], ...]
    turns: tuple[str, ...]
    label: str
    basis: Basis = "stated"
    unique: bool = True
    threshold: float = STATED


def needs_of(question: Question, conversation: Conversation, vocabulary: Vocabulary) -> list[Need]:
    """What must survive for a question that has an answer: a need for each item of the answer that a turn states.

    Empty when no turn supports the gold answer and it is of a kind (a name, a number) that cannot be inferred either.
    """
    turns = {turn.id: turn for turn in conversation.turns()}
    evidence = [turns[turn] for turn in question.evidence if turn in turns]
    label = question.answers[0]
    forms = tuple(form for form in dict.fromkeys(map(content_of, question.answers)) if form)
    if any(form & _INFERENTIAL for form in forms[:1]):
        forms = ()
    items = _items(question.answers) if forms else []
    needs = [need for item in items for need in _stated(item, evidence, conversation, vocabulary)]
    if not needs and is_date(label):
        needs = _dated(forms, label, evidence, conversation)
    if not needs:
        parts = (_partly(item, evidence, conversation, vocabulary) for item in items)
        needs = [part for part in parts if part is not None]
    if needs:
        return needs
    if forms and not any(form & content_of(turn.text) for form in forms for turn in evidence):
        topic = content_of(question.question).difference(*map(content_of, conversation.speakers))
        elsewhere = [
            turn
            for turn in _stating(turns.values(), forms, vocabulary)
            if not evidence or vocabulary.coverage(topic, content_of(turn.text)) >= _ON_TOPIC
        ]
        if elsewhere:
            return [Need(forms, _ids(elsewhere), label, "elsewhere", unique=len(elsewhere) == 1)]
        if evidence and _is_literal(question):
            return []
    wanted = frozenset().union(content_of(question.question), *forms)
    return [_implied(turn, wanted, conversation, vocabulary) for turn in evidence]


def former_value(question: Question, conversation: Conversation, vocabulary: Vocabulary) -> Need | None:
    """The value that an update or a deletion should have done away with, where the annotation tells."""
    said = _former_value(question, conversation)
    if said is None:
        return None
    label, form, turn = said
    # The turn that ends a value often repeats it.
    silent = [other for other in conversation.turns() if other.id not in (turn, *question.evidence)]
    return Need((form,), (turn,), label, unique=not _stating(silent, (form,), vocabulary))


def _former_value(question: Question, conversation: Conversation) -> tuple[str, frozenset[str], str] | None:
    fact = fact_of(question, conversation)
    old = next((other for other in conversation.facts if fact is not None and other.id == fact.of), None)
    near = question.near_miss
    withdrawn = is_unknowable(question)
    if near is not None and (old is None or old.turn == near.turn) and (withdrawn or question.kind == "updated"):
        return near.value, content_of(near.value), near.turn
    if old is None or fact is None:
        return None
    speakers = frozenset().union(*map(content_of, conversation.speakers))
    known = content_of(fact.text) | content_of(question.question) | speakers
    value = content_of(old.text) - known
    return (old.text, value, old.turn) if value else None


def fact_of(question: Question, conversation: Conversation) -> Fact | None:
    """The annotated fact that answers the question."""
    return next((fact for fact in conversation.facts if fact.id == question.fact), None)


def is_unknowable(question: Question) -> bool:
    """Whether the right answer is that there is none."""
    return question.kind == "deleted" or all(map(says_unknown, question.answers))


def _items(answers: Sequence[str]) -> list[tuple[tuple[frozenset[str], ...], str]]:
    """The items of an answer that is a list, each with its one form; else the answer as one item with all its forms."""
    forms = tuple(form for form in dict.fromkeys(map(content_of, answers)) if form)
    listed = [item.strip() for item in _BETWEEN_ITEMS.split(answers[0]) if content_of(item)]
    if len(listed) > 1 and not is_date(answers[0]):
        return [((content_of(item),), item) for item in listed]
    return [(forms, answers[0])]


def _stated(
    item: tuple[tuple[frozenset[str], ...], str],
    evidence: Sequence[Turn],
    conversation: Conversation,
    vocabulary: Vocabulary,
) -> list[Need]:
    """The needs for an item that one turn states, or several turns together; none if they don't."""
    forms, label = item
    stating = _stating(evidence, forms, vocabulary)
    if stating:
        return [_need(forms, stating, label, "stated", conversation, vocabulary)]
    spoken = frozenset().union(*(content_of(_spoken(turn)) for turn in evidence))
    if vocabulary.coverage(forms[0], spoken) < STATED:
        return []
    parts: list[Need] = []
    left = forms[0] & spoken
    while left:
        turn = max(evidence, key=lambda turn: vocabulary.coverage(left, content_of(_spoken(turn))))
        part = left & content_of(_spoken(turn))
        parts.append(_need((part,), [turn], " ".join(sorted(part)), "stated", conversation, vocabulary))
        left -= part
    return parts


def _partly(
    item: tuple[tuple[frozenset[str], ...], str],
    evidence: Sequence[Turn],
    conversation: Conversation,
    vocabulary: Vocabulary,
) -> Need | None:
    """The need for what one turn states of an item, if that is a good part of it."""
    forms, label = item
    found = [(vocabulary.coverage(form, content_of(turn.text)), form, turn) for form in forms for turn in evidence]
    coverage, form, turn = max(found, key=lambda one: one[0], default=(0.0, frozenset[str](), None))
    if turn is None or coverage < _PARTLY:
        return None
    return _need((form & content_of(turn.text),), [turn], label, "partly", conversation, vocabulary)


def _dated(
    forms: tuple[frozenset[str], ...], label: str, evidence: Sequence[Turn], conversation: Conversation
) -> list[Need]:
    """The need for a time that a turn tells relative to its own: the words that tell it, or what they come to.

    The date on which the turn was said is no part of it, since every text of that session may bear it.
    """
    spoken_at = {turn.id: content_of(session.time) for session in conversation.sessions for turn in session.turns}
    dated = [turn for turn in evidence if time_words(turn.text)]
    told = [time_words(sentence) for turn in dated for sentence in _SENTENCE_END.split(turn.text)]
    resolved = [form - spoken_at[turn.id] for turn in dated for form in forms]
    ways = tuple(dict.fromkeys(way for way in (*told, *resolved) if way))
    return [Need(ways, _ids(dated), label, "dated", unique=False, threshold=THRESHOLDS["dated"])] if dated else []


def _need(
    forms: tuple[frozenset[str], ...],
    stating: Sequence[Turn],
    label: str,
    basis: Basis,
    conversation: Conversation,
    vocabulary: Vocabulary,
) -> Need:
    ids = _ids(stating)
    others = (turn for turn in conversation.turns() if turn.id not in ids)
    return Need(forms, ids, label, basis, unique=not _stating(others, forms, vocabulary))


def _stating(turns: Iterable[Turn], forms: Sequence[frozenset[str]], vocabulary: Vocabulary) -> list[Turn]:
    return [
        turn for turn in turns if any(vocabulary.coverage(form, content_of(_spoken(turn))) >= STATED for form in forms)
    ]


def _implied(turn: Turn, wanted: frozenset[str], conversation: Conversation, vocabulary: Vocabulary) -> Need:
    speakers = frozenset().union(*map(content_of, conversation.speakers))
    said = content_of(turn.text) - speakers
    telling = sorted(said, key=lambda word: (word in wanted, vocabulary.weight(word), word), reverse=True)
    return Need(
        (frozenset(telling[:_TELLING_WORDS]),),
        (turn.id,),
        f"what {turn.id} says",
        "implied",
        False,
        THRESHOLDS["implied"],
    )


def _is_literal(question: Question) -> bool:
    """Whether the answer is a number, or a name that was asked for: nobody infers those."""
    words = [word for word in question.answers[0].split() if content_of(word)]
    named = _ASKS_A_NAME.search(question.question) is not None
    return not is_date(question.answers[0]) and all(is_number(word) or (named and word[:1].isupper()) for word in words)


def _spoken(turn: Turn) -> str:
    return f"{turn.speaker}: {turn.text}"


def _ids(turns: Iterable[Turn]) -> tuple[str, ...]:
    return tuple(turn.id for turn in turns)
