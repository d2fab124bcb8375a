"""What a question needs, from its accepted answers and evidence turns, and what no longer holds, as annotated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from attribution.constants import IMPLIED, IMPLIED_WORDS, ITEM_WORDS, ON_TOPIC, PARTLY_STATED, STATED
from attribution.survival.need import Basis, Need
from attribution.text.clauses import telling
from attribution.text.content import Vocabulary, content_of, is_date, time_words
from attribution.text.dates import Span, as_precise_as, days_of, same_time, spans_of
from attribution.text.languages.reading_language import language
from attribution.text.phrases import clauses_of, denies, is_unknown, list_patterns, without_courtesies
from attribution.text.question_kinds import expected_count, is_count, is_inferred, is_literal, is_yes_or_no
from tracing.systems.conversations import Conversation, Fact, Question, Turn

_LENGTHS = frozenset(("day", "week", "month", "year"))
_CJK_LENGTH = re.compile("[天周月年]|週")


def needs_of(question: Question, conversation: Conversation, vocabulary: Vocabulary) -> list[Need]:
    """What must survive for a question that has an answer: a need for each item of the answer that a turn states.

    Empty when no turn supports the gold answer and it is of a kind (a name, a number) that cannot be inferred either.
    """
    turns = {turn.id: turn for turn in conversation.turns()}
    evidence = [turns[turn] for turn in question.evidence if turn in turns]
    forms = tuple(form for form in dict.fromkeys(map(content_of, question.answers)) if form)
    if forms and not is_yes_or_no(question):
        needs = _needs_stated(question, forms, evidence, conversation, vocabulary)
        if needs:
            return [replace(need, count=expected_count(question)) for need in needs] if len(needs) == 1 else needs
        if not any(form & content_of(turn.spoken) for form in forms for turn in evidence):
            elsewhere = _elsewhere(question, forms, evidence, conversation, vocabulary)
            if elsewhere:
                return [elsewhere]
            if evidence and (is_inferred(question) or is_count(question)):
                return [_implied(turn, content_of(question.question), conversation, vocabulary) for turn in evidence]
            if (
                evidence
                and is_literal(question)
                and not any(list_patterns(language())["pointing"].search(turn.text) for turn in evidence)
            ):
                return []
            if evidence:
                return [_unstated((forms, question.answers[0]), evidence)]
    subject = frozenset().union(content_of(question.question), *forms)
    return [_implied(turn, subject, conversation, vocabulary) for turn in evidence]


def listed(text: str) -> int:
    """The greatest number of things that a clause of a text lists; 1 if it is not a list."""
    return max(
        (
            len([item for item in list_patterns(language())["between"].split(clause) if content_of(item)])
            for clause in clauses_of(text)
        ),
        default=0,
    )


def _needs_stated(
    question: Question,
    forms: tuple[frozenset[str], ...],
    evidence: Sequence[Turn],
    conversation: Conversation,
    vocabulary: Vocabulary,
) -> list[Need]:
    """The needs for what the evidence says of the answer, in words or as a time; none if it says nothing of it."""
    timed = _timed(question, forms, evidence, conversation, vocabulary)
    if timed is not None:
        return [timed]
    stated: list[Need] = []
    unstated: list[_Item] = []
    answered = {turn.id: before for before, turn in pairwise(conversation.turns()) if before.speaker != turn.speaker}
    for item in _items(question.answers):
        needs = _stated(item, evidence, conversation, vocabulary) or _replied(item, evidence, answered, vocabulary)
        if not needs:
            part = _partly(item, evidence, conversation, vocabulary)
            needs = [part] if part is not None else []
        stated += needs
        if not needs:
            unstated.append(item)
    if stated:
        silent = [turn for turn in evidence if not any(turn.id in need.turns for need in stated)]
        stated += [_unstated(item, silent or evidence) for item in unstated]
    return stated


def _elsewhere(
    question: Question,
    forms: tuple[frozenset[str], ...],
    evidence: Sequence[Turn],
    conversation: Conversation,
    vocabulary: Vocabulary,
) -> Need | None:
    """The need for an answer that other turns on the question's topic state, though not the annotated ones."""
    topic = content_of(question.question).difference(*map(content_of, conversation.speakers))
    turns = [
        turn
        for turn in stating(conversation.turns(), forms, vocabulary)
        if not evidence or vocabulary.coverage(topic, content_of(turn.text)) >= ON_TOPIC
    ]
    return Need(forms, _ids(turns), question.answers[0], "elsewhere", unique=len(turns) == 1) if turns else None


def _unstated(item: _Item, evidence: Sequence[Turn]) -> Need:
    forms, label = item
    return Need(forms, _ids(evidence), label, "unstated", unique=False)


_Item = tuple[tuple[frozenset[str], ...], str]


def _items(answers: Sequence[str]) -> list[_Item]:
    """The items of an answer that is a list, each with its one form; else the answer as one item with all its forms.

    Clauses are not items: they are paraphrased as a whole.
    """
    forms = tuple(form for form in dict.fromkeys(map(content_of, answers)) if form)
    listed = [item.strip() for item in list_patterns(language())["between"].split(answers[0]) if content_of(item)]
    clauses = any(len(item.split()) > ITEM_WORDS or list_patterns(language())["clause"].match(item) for item in listed)
    if len(listed) > 1 and not clauses and not is_date(answers[0]):
        return [((content_of(item),), item) for item in listed]
    return [(forms, answers[0])]


def _stated(
    item: _Item,
    evidence: Sequence[Turn],
    conversation: Conversation,
    vocabulary: Vocabulary,
) -> list[Need]:
    """The needs for an item that one turn states, or several turns together; none if they don't."""
    forms, label = item
    saying = stating(evidence, forms, vocabulary)
    if saying:
        return [_need(forms, saying, label, "stated", conversation, vocabulary)]
    spoken = frozenset().union(*(content_of(turn.spoken) for turn in evidence))
    if vocabulary.coverage(forms[0], spoken) < STATED:
        return []
    parts: list[Need] = []
    remaining = forms[0] & spoken
    while remaining:
        turn = max(evidence, key=lambda turn: vocabulary.coverage(remaining, content_of(turn.spoken)))
        part = remaining & content_of(turn.spoken)
        parts.append(_need((part,), [turn], " ".join(sorted(part)), "stated", conversation, vocabulary))
        remaining -= part
    return parts


def _replied(item: _Item, evidence: Sequence[Turn], answered: Mapping[str, Turn], vocabulary: Vocabulary) -> list[Need]:
    """The need for an item that a turn says only together with the one it replies to: Did you hike? We just did."""
    forms, label = item
    for turn in evidence:
        before = answered.get(turn.id)
        both = content_of(f"{before.text}\n{turn.text}") if before is not None else frozenset[str]()
        if any(vocabulary.coverage(form, both) >= STATED for form in forms):
            return [Need(forms, (turn.id,), label, "partly", unique=False)]
    return []


def _partly(
    item: _Item,
    evidence: Sequence[Turn],
    conversation: Conversation,
    vocabulary: Vocabulary,
) -> Need | None:
    """The need for what one turn states of an item, if that is a good part of it."""
    forms, label = item
    candidates = [(vocabulary.coverage(form, content_of(turn.text)), form, turn) for form in forms for turn in evidence]
    coverage, form, turn = max(candidates, key=lambda candidate: candidate[0], default=(0.0, frozenset[str](), None))
    if turn is None or coverage < PARTLY_STATED:
        return None
    return _need((form & content_of(turn.text),), [turn], label, "partly", conversation, vocabulary)


def _timed(
    question: Question,
    forms: tuple[frozenset[str], ...],
    evidence: Sequence[Turn],
    conversation: Conversation,
    vocabulary: Vocabulary,
) -> Need | None:
    """The need for a time that a turn names, or that is the time at which it was said; None for other answers.

    What a clause names that tells of something else is not the time of what was asked.
    """
    label = question.answers[0]
    gold = spans_of(label)
    if not gold or not is_date(label):
        return None
    days = days_of(conversation)
    spans_told = {turn.id: spans_of(turn.text, days[turn.id]) for turn in evidence}
    naming = [
        turn for turn in evidence if any(same_time(span, other) for span in spans_told[turn.id] for other in gold)
    ]

    def need(naming: Sequence[Turn], times: Iterable[Span], *, on_that_day: bool = False) -> Need:
        spans, day = tuple(dict.fromkeys(times)), days[naming[0].id]
        return Need(forms, _ids(naming), label, "dated", unique=False, times=spans, day=day, on_that_day=on_that_day)

    if naming:
        spans = (
            span
            for turn in naming
            for span in spans_told[turn.id]
            if any(same_time(span, gold_span) for gold_span in gold)
        )
        return need(naming, (*gold, *spans))
    topic = content_of(question.question).difference(time_words(question.question))

    def tells(clause: str) -> float:
        return vocabulary.coverage(topic, content_of(clause))

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
    if other and not any(form & content_of(turn.text) for form in forms for turn in evidence):
        # The annotation counts differently, or is mistaken: what the turns name is what can survive.
        return need(other, (*gold, *(span for turn in other for span in spans_told[turn.id])))
    near = [] if other else _naming_nearby(gold, evidence, conversation)
    return need([*near, *(turn for turn in evidence if turn not in near)], gold) if near else None


def _naming_nearby(gold: Sequence[Span], evidence: Sequence[Turn], conversation: Conversation) -> list[Turn]:
    """The turns of the evidence's sessions that give the time: a speaker does not repeat the date of a topic."""
    days = days_of(conversation)
    sessions = [session for session in conversation.sessions if any(turn in evidence for turn in session.turns)]
    return [
        turn
        for session in sessions
        for turn in session.turns
        if any(same_time(span, other) for span in spans_of(turn.text, days[turn.id]) for other in gold)
    ]


def _need(
    forms: tuple[frozenset[str], ...],
    saying: Sequence[Turn],
    label: str,
    basis: Basis,
    conversation: Conversation,
    vocabulary: Vocabulary,
) -> Need:
    ids = _ids(saying)
    others = (turn for turn in conversation.turns() if turn.id not in ids)
    denied = any(denies(clause_with(forms, turn.text, vocabulary)) for turn in saying)
    days = days_of(conversation) if not content_of(label).isdisjoint(_LENGTHS) or _CJK_LENGTH.search(label) else {}
    since = tuple(span for turn in saying if days for span in spans_of(turn.text, days[turn.id]))
    unique = not stating(others, forms, vocabulary)
    return Need(forms, ids, label, basis, unique=unique, denied=denied, since=since, day=days.get(ids[0]))


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


def _implied(turn: Turn, preferred: frozenset[str], conversation: Conversation, vocabulary: Vocabulary) -> Need:
    speakers = frozenset().union(*map(content_of, conversation.speakers))
    spoken_words = content_of(without_courtesies(turn.text)) - speakers
    telling = sorted(spoken_words, key=lambda word: (word in preferred, vocabulary.weight(word), word), reverse=True)
    return Need(
        (frozenset(telling[:IMPLIED_WORDS]),),
        (turn.id,),
        f"what {turn.id} says",
        "implied",
        False,
        IMPLIED,
    )


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


def is_unknowable(question: Question) -> bool:
    """Whether the right answer is that there is none."""
    return question.unanswerable or all(is_unknown(answer, question.question) for answer in question.answers)
