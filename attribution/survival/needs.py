"""What a question needs, from its accepted answers and evidence turns, and what no longer holds, as annotated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from itertools import pairwise
from typing import Literal

from attribution.constants import IMPLIED, IMPLIED_WORDS, ITEM_WORDS, ON_TOPIC, PARTLY_STATED, STATED
from attribution.text.clauses import telling
from attribution.text.content import Vocabulary, content_of, is_date, time_words
from attribution.text.dates import Span, as_precise_as, days_of, same_time, spans_of
from attribution.text.languages.reading_language import language
from attribution.text.phrases import clauses_of, denies, is_unknowable, list_patterns, without_courtesies
from attribution.text.question_kinds import expected_count, is_count, is_inferred, is_literal, is_yes_or_no
from attribution.text.stems import is_number
from tracing.systems.conversations import Conversation, Fact, Question, Turn

_LENGTHS = frozenset(("day", "week", "month", "year"))
_CJK_LENGTH = re.compile("[天周月年]|週")


Basis = Literal["stated", "partly", "dated", "elsewhere", "unstated", "implied"]

PRIORS: dict[Basis, float] = {
    "stated": 1.0,
    "partly": 0.8,
    "dated": 0.8,
    "elsewhere": 0.65,
    "unstated": 0.65,
    "implied": 0.5,
}
"""Factor on the confidence by basis: an answer that must be inferred can be lost in ways words don't show."""


@dataclass(frozen=True, slots=True)
class Need:
    """Content that must survive for the answer to be possible.

    Attributes:
        forms: sets of content words; a text that holds enough of any one of them carries the content.
        turns: ids of the turns that say it; any of them is enough.
        label: how to name it in a sentence.
        basis: "stated" in the evidence; "partly" stated there; "dated", relative to when the turn was said; said
            "elsewhere", in other turns than the annotated ones; "unstated", in no words of any turn (it may have
            been in a picture); "implied", to be inferred from what the turns say.
        unique: no other turn says it, so that a text that does can only have it from these.
        threshold: least coverage of a form with which a text carries the content.
        denied: whether the turns say that it is not so.
        times: spans of time, any of which is the content; then words do not count.
        since: spans of time that give a span of time up to the day it was said, or from then on: two years ago, 2021.
        count: how many things are counted, so that naming each of them gives it; 0 if it is not such a number.
        day: the day on which the turns were said.
        on_that_day: the time is that of the turns themselves, so that a time stamp gives it.
    """

    forms: tuple[frozenset[str], ...]
    turns: tuple[str, ...]
    label: str
    basis: Basis = "stated"
    unique: bool = True
    threshold: float = STATED
    denied: bool = False
    times: tuple[Span, ...] = ()
    since: tuple[Span, ...] = ()
    count: int = 0
    day: date | None = None
    on_that_day: bool = False


def needs_of(question: Question, conversation: Conversation, vocabulary: Vocabulary) -> list[Need]:
    """What must survive for a question that has an answer: a need for each item of the answer that a turn states.

    Empty when no turn supports the gold answer and it is of a kind (a name, a number) that cannot be inferred either.
    """
    return _NeedReader(question, conversation, vocabulary).needs()


_Forms = tuple[frozenset[str], ...]
_Item = tuple[_Forms, str]
"""A part of an answer, in the ways in which it may be said, and how to name it."""


class _NeedReader:
    """Reads what one question needs of one conversation."""

    def __init__(self, question: Question, conversation: Conversation, vocabulary: Vocabulary) -> None:
        turns = {turn.id: turn for turn in conversation.turns()}
        self._question, self._conversation, self._vocabulary = question, conversation, vocabulary
        self._evidence = [turns[turn] for turn in question.evidence if turn in turns]
        self._forms = _forms_of(question.answers)
        self._speakers = frozenset().union(*map(content_of, conversation.speakers))

    @cached_property
    def _days(self) -> dict[str, date | None]:
        return days_of(self._conversation)

    def needs(self) -> list[Need]:
        question, forms, evidence = self._question, self._forms, self._evidence
        if forms and not is_yes_or_no(question):
            needs = self._needs_stated()
            if needs:
                return [replace(need, count=expected_count(question)) for need in needs] if len(needs) == 1 else needs
            if not any(form & content_of(turn.spoken) for form in self._beside_question(forms) for turn in evidence):
                elsewhere = self._elsewhere()
                if elsewhere:
                    return [elsewhere]
                if evidence and (is_inferred(question) or is_count(question)):
                    return list(map(self._implied, evidence))
                if evidence and is_literal(question) and not any(shows_something(turn.text) for turn in evidence):
                    return []
                if evidence:
                    return [_unstated((forms, question.answers[0]), evidence)]
        return [self._implied(turn, *forms) for turn in evidence]

    def _needs_stated(self) -> list[Need]:
        """The needs for what the evidence says of the answer, in words or as a time; none if it says nothing of it."""
        timed = self._timed()
        if timed is not None:
            return [timed]
        stated: list[Need] = []
        unstated: list[_Item] = []
        for item in _items(self._question.answers):
            needs = self._stated(item) or self._replied(item) or self._partly(item)
            stated += needs
            if not needs:
                unstated.append(item)
        if stated and unstated and is_inferred(self._question):
            return [*stated, *map(self._implied, self._evidence)]
        if stated:
            silent = [turn for turn in self._evidence if not any(turn.id in need.turns for need in stated)]
            stated += [_unstated(item, silent or self._evidence) for item in unstated]
        return stated

    def _beside_question(self, forms: _Forms) -> list[frozenset[str]]:
        """The forms without what the question says itself, which tells nothing of the answer."""
        question_words = content_of(self._question.question)
        return [form - question_words or form for form in forms]

    def _elsewhere(self) -> Need | None:
        """The need for an answer that other turns on the question's topic state, though not the annotated ones."""
        topic = content_of(self._question.question) - self._speakers
        turns = [
            turn
            for turn in stating(self._conversation.turns(), self._forms, self._vocabulary)
            if not self._evidence or self._vocabulary.coverage(topic, content_of(turn.text)) >= ON_TOPIC
        ]
        label, unique = self._question.answers[0], len(turns) == 1
        return Need(self._forms, _ids(turns), label, "elsewhere", unique=unique) if turns else None

    def _stated(self, item: _Item) -> list[Need]:
        """The needs for an item that one turn states, or several turns together; none if they don't."""
        forms, label = item
        coverage = self._vocabulary.coverage
        saying = stating(self._evidence, forms, self._vocabulary)
        if saying:
            return [self._need(forms, saying, label, "stated")]
        spoken = frozenset().union(*(content_of(turn.spoken) for turn in self._evidence))
        if coverage(forms[0], spoken) < STATED:
            return []
        parts: list[Need] = []
        remaining = forms[0] & spoken
        while remaining:
            turn = max(self._evidence, key=lambda turn: coverage(remaining, content_of(turn.spoken)))
            part = remaining & content_of(turn.spoken)
            parts.append(self._need((part,), [turn], " ".join(sorted(part)), "stated"))
            remaining -= part
        return parts

    def _replied(self, item: _Item) -> list[Need]:
        """The need for an item that a turn says only together with the one it replies to: Did you hike? We just did."""
        forms, label = item
        pairs = pairwise(self._conversation.turns())
        answered = {turn.id: before for before, turn in pairs if before.speaker != turn.speaker}
        for turn in self._evidence:
            before = answered.get(turn.id)
            both = content_of(f"{before.text}\n{turn.text}") if before is not None else frozenset[str]()
            if any(self._vocabulary.coverage(form, both) >= STATED for form in forms):
                return [Need(forms, (turn.id,), label, "partly", unique=False)]
        return []

    def _partly(self, item: _Item) -> list[Need]:
        """The need for what one turn states of an item, if that is a good part of what the question does not say."""
        forms, label = item
        candidates = [
            (self._vocabulary.coverage(form, content_of(turn.text)), form, turn)
            for form in self._beside_question(forms)
            for turn in self._evidence
        ]
        coverage, form, turn = max(
            candidates, key=lambda candidate: candidate[0], default=(0.0, frozenset[str](), None)
        )
        if turn is None or coverage < PARTLY_STATED:
            return []
        return [self._need((form & content_of(turn.text),), [turn], label, "partly")]

    def _timed(self) -> Need | None:
        """The need for a time that a turn names, or that is the time at which it was said; None for other answers.

        What a clause names that tells of something else is not the time of what was asked.
        """
        label = self._question.answers[0]
        gold = spans_of(label)
        if not gold or not is_date(label):
            return None
        evidence, days = self._evidence, self._days

        def need(naming: Sequence[Turn], times: Iterable[Span], *, on_that_day: bool = False) -> Need:
            spans, day = tuple(dict.fromkeys(times)), days[naming[0].id]
            return Need(
                self._forms, _ids(naming), label, "dated", unique=False, times=spans, day=day, on_that_day=on_that_day
            )

        naming = self._naming(gold, evidence)
        if naming:
            spans = (span for turn in naming for span in spans_of(turn.text, days[turn.id]) if _is_any_of(span, gold))
            return need(naming, (*gold, *spans))
        topic = content_of(self._question.question).difference(time_words(self._question.question))

        def tells(clause: str) -> float:
            return self._vocabulary.coverage(topic, content_of(clause))

        spans_told = {turn.id: spans_of(telling(turn.text, tells), days[turn.id]) for turn in evidence}
        then = [
            turn
            for turn in evidence
            if not spans_told[turn.id]
            and (day := days[turn.id])
            and any(as_precise_as((day.toordinal(),) * 2, gold_span) for gold_span in gold)
        ]
        if then:
            return need(then, gold, on_that_day=True)
        other = [turn for turn in evidence if spans_told[turn.id]]
        if other and not any(form & content_of(turn.text) for form in self._forms for turn in evidence):
            # The annotation counts differently, or is mistaken: what the turns name is what can survive.
            return need(other, (*gold, *(span for turn in other for span in spans_told[turn.id])))
        if other:
            return None
        # A speaker does not repeat the date of a topic: another turn of the session may give it.
        sessions = [session.turns for session in self._conversation.sessions]
        near = [
            turn for turns in sessions if any(turn in evidence for turn in turns) for turn in self._naming(gold, turns)
        ]
        return need([*near, *(turn for turn in evidence if turn not in near)], gold) if near else None

    def _naming(self, gold: Sequence[Span], turns: Iterable[Turn]) -> list[Turn]:
        """The turns that name one of these times."""
        return [
            turn for turn in turns if any(_is_any_of(span, gold) for span in spans_of(turn.text, self._days[turn.id]))
        ]

    def _need(self, forms: _Forms, saying: Sequence[Turn], label: str, basis: Basis) -> Need:
        ids = _ids(saying)
        others = (turn for turn in self._conversation.turns() if turn.id not in ids)
        denied = any(denies(clause_with(forms, without_courtesies(turn.text), self._vocabulary)) for turn in saying)
        is_length = not content_of(label).isdisjoint(_LENGTHS) or _CJK_LENGTH.search(label)
        days = self._days if is_length else {}
        since = tuple(span for turn in saying if days for span in spans_of(turn.text, days[turn.id]))
        unique = not stating(others, forms, self._vocabulary)
        return Need(forms, ids, label, basis, unique=unique, denied=denied, since=since, day=days.get(ids[0]))

    def _implied(self, turn: Turn, *forms: frozenset[str]) -> Need:
        preferred = content_of(self._question.question).union(*forms)
        weight = self._vocabulary.weight
        told = without_courtesies(turn.text)
        spoken_words = content_of(told) - self._speakers
        if time_words(self._question.question).isdisjoint(times := time_words(turn.text)):
            # When something happened is seldom what is concluded from it.
            spoken_words = spoken_words.difference(word for word in times if not is_number(word)) or spoken_words
        telling = sorted(spoken_words, key=lambda word: (word in preferred, weight(word), word), reverse=True)
        words = frozenset(telling[:IMPLIED_WORDS])
        label, denied = f"what {turn.id} says", denies(clause_with((words,), told, self._vocabulary))
        return Need((words,), (turn.id,), label, "implied", unique=False, threshold=IMPLIED, denied=denied)


def _forms_of(answers: Sequence[str]) -> _Forms:
    return tuple(form for form in dict.fromkeys(map(content_of, answers)) if form)


def _is_any_of(span: Span, others: Iterable[Span]) -> bool:
    return any(same_time(span, other) for other in others)


def shows_something(text: str) -> bool:
    """Whether a speaker points at something, such as a picture, that the text need not describe."""
    return list_patterns(language())["pointing"].search(text) is not None


def listed(text: str) -> int:
    """The greatest number of things that a clause of a text lists; 1 if it is not a list."""
    return max(
        (
            len([item for item in list_patterns(language())["between"].split(clause) if content_of(item)])
            for clause in clauses_of(text)
        ),
        default=0,
    )


def _unstated(item: _Item, evidence: Sequence[Turn]) -> Need:
    forms, label = item
    return Need(forms, _ids(evidence), label, "unstated", unique=False)


def _items(answers: Sequence[str]) -> list[_Item]:
    """The items of an answer that is a list, each with its one form; else the answer as one item with all its forms.

    Clauses are not items: they are paraphrased as a whole.
    """
    listed = [item.strip() for item in list_patterns(language())["between"].split(answers[0]) if content_of(item)]
    clauses = any(len(item.split()) > ITEM_WORDS or list_patterns(language())["clause"].match(item) for item in listed)
    if len(listed) > 1 and not clauses and not is_date(answers[0]):
        return [((content_of(item),), item) for item in listed]
    return [(_forms_of(answers), answers[0])]


def clause_with(forms: Sequence[frozenset[str]], text: str, vocabulary: Vocabulary) -> str:
    """The clause of a text that holds most of any of the forms."""
    clauses = clauses_of(text)

    def form_coverage(clause: str) -> float:
        words = content_of(clause)
        return max((vocabulary.coverage(form, words) for form in forms), default=0.0)

    return max(clauses, key=form_coverage, default="") if len(clauses) > 1 else text


def stating(turns: Iterable[Turn], forms: Sequence[frozenset[str]], vocabulary: Vocabulary) -> list[Turn]:
    """The turns that hold enough of any of the forms, the speaker's name included."""
    answer_words = frozenset().union(*forms)
    matching: list[Turn] = []
    for turn in turns:
        spoken_words = content_of(turn.spoken)
        if not answer_words.isdisjoint(spoken_words) and any(
            vocabulary.coverage(form, spoken_words) >= STATED for form in forms
        ):
            matching.append(turn)
    return matching


def _ids(turns: Iterable[Turn]) -> tuple[str, ...]:
    return tuple(turn.id for turn in turns)


def outdated_value(question: Question, conversation: Conversation, vocabulary: Vocabulary) -> Need | None:
    """The value that an update or a deletion should have removed, if annotated."""
    annotated = _outdated_value(question, conversation)
    if annotated is None:
        return None
    label, form, turn = annotated
    # The turn that ends a value often repeats it.
    silent = [other for other in conversation.turns() if other.id not in (turn, *question.evidence)]
    return Need((form,), (turn,), label, unique=not stating(silent, (form,), vocabulary))


def _outdated_value(question: Question, conversation: Conversation) -> tuple[str, frozenset[str], str] | None:
    fact = fact_of(question, conversation)
    old = next((other for other in conversation.facts if fact is not None and other.id == fact.of), None)
    near = question.near_miss
    withdrawn = is_unknowable(question)
    # What the evidence itself says was not ended by it: it is a near miss about another person or matter.
    earlier = near is not None and near.turn not in question.evidence and (old is None or old.turn == near.turn)
    if near is not None and earlier and (withdrawn or question.supersedes):
        return near.value, content_of(near.value), near.turn
    if old is None or fact is None:
        return None
    speakers = frozenset().union(*map(content_of, conversation.speakers))
    context_words = content_of(fact.text) | content_of(question.question) | speakers
    value = content_of(old.text) - context_words
    return (old.text, value, old.turn) if value else None


def fact_of(question: Question, conversation: Conversation) -> Fact | None:
    """The annotated fact that answers the question."""
    return next((fact for fact in conversation.facts if fact.id == question.fact), None)
