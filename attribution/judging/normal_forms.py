"""Values in normal form: whether a text gives the same date, length of time, number, list or yes or no as an answer.

These differ in form only, so they are compared as values. Everything else is left to words, meaning or a model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from attribution.text.calendar_names import MONTHS
from attribution.text.content import content_of, is_date
from attribution.text.dates import Span, as_precise_as, same_time, spans_of
from attribution.text.digits import currencies_in
from attribution.text.languages.language_data import compiled_of_language, language_data
from attribution.text.languages.reading_language import language
from attribution.text.numbers import in_digits
from attribution.text.phrases import denies, says_unknown
from attribution.text.stems import is_number
from attribution.text.tokens import normalise

_PATTERNS = compiled_of_language("common", "values")
# A month has no fixed number of days, so years and months are counted apart from weeks, days and hours.
_UNITS: Sequence[tuple[str, str, int]] = language_data("common")["lengths"]
_AROUND = content_of("for about around nearly almost roughly over more than exactly approximately after ago")
_NO = frozenset(("no", "not", "nope", "nein", "non"))
_SHORT = 5
_ITEM_WORDS = 4


def same_form(question: str, answer: str, reply: str) -> bool | None:
    """Whether a reply gives the value of an answer in any form; None if it is not a value, or the reply has none."""
    verdict = same_value(answer, reply)
    return same_items(question, answer, reply) if verdict is None else verdict


def same_form_as_any(question: str, answers: Sequence[str], reply: str) -> bool | None:
    """Whether a reply gives the value of an accepted answer in any form; None if that is not known of all of them."""
    forms = [same_form(question, answer, reply) for answer in answers]
    return True if True in forms else None if None in forms or not forms else False


def same_value(answer: str, text: str, spoken_on: date | None = None) -> bool | None:
    """Whether a text gives the value of an answer; None if one of them is not a value of a kind that is compared.

    Relative times in the text refer to the day `spoken_on`.
    """
    for compare in (_same_decision, _same_length, _same_date, _same_number):
        verdict = compare(answer, text, spoken_on)
        if verdict is not None:
            return verdict
    return None


def same_items(question: str, answer: str, reply: str) -> bool | None:
    """Whether a reply lists the items of an answer in any order, and no others; None if the answer is no list."""
    items = items_of(answer)
    clauses = any(len(part.split()) > _ITEM_WORDS for part in _PATTERNS["between_items"].split(answer))
    if len(items) < 2 or clauses or is_date(answer) or decision_of(answer) is not None:
        return None
    if denies(reply) and not denies(answer):
        return None
    reply_items = items_of(reply)
    expected_words = content_of(question).union(*items)
    matched = [item for item in items if any(item <= reply_item for reply_item in reply_items)]
    if len(matched) < len(items):
        # Where none is named, all may be in other words; where some are, the others are left out.
        return False if matched else None
    return all(any(item <= reply_item for item in items) or reply_item <= expected_words for reply_item in reply_items)


def items_of(text: str) -> Sequence[frozenset[str]]:
    """The content words of each item that a text lists."""
    return [content for part in _PATTERNS["between_items"].split(text) if (content := content_of(part))]


def _same_decision(answer: str, text: str, spoken_on: date | None) -> bool | None:
    answer_decision, text_decision = decision_of(answer), decision_of(text)
    if answer_decision is None or text_decision is None or says_unknown(text):
        return None
    if answer_decision != text_decision:
        return False
    # Yes, to Berlin, and yes, to Paris: what both add may differ.
    added = _beside_decision(text)
    return True if not added or _beside_decision(answer) <= added else None


def _beside_decision(text: str) -> frozenset[str]:
    return content_of(_PATTERNS["guarded"].sub("", text.strip(), count=1))


def decision_of(text: str) -> bool | None:
    """Yes or no, however sure, as a text of few words or its first words say it; None if they say neither."""
    match = _PATTERNS["guarded"].match(text.strip())
    decision, guard = (match["said"], match["guard"]) if match is not None else (None, None)
    if decision:
        return decision.casefold() not in _NO
    return not denies(text) if guard and len(text.split()) <= _SHORT else None


def lengths_of(text: str) -> frozenset[tuple[str, float]]:
    """The lengths of time that a text names, as ("months", number) or ("hours", number)."""
    lengths: set[tuple[str, float]] = set()
    for match in _PATTERNS["length"].finditer(in_digits(text.casefold(), language())):
        base, factor = next((base, size) for unit, base, size in _UNITS if re.fullmatch(unit, match["unit"], re.I))
        number = float(match["n"]) if match["n"][0].isdigit() else 0.5 if match["n"].startswith("half") else 1.0
        lengths.add((base, (number + 0.5 * bool(match["half"] or match["more"])) * factor))
    return frozenset(lengths)


def _same_length(answer: str, text: str, spoken_on: date | None) -> bool | None:
    gold = lengths_of(answer)
    if len(gold) != 1 or not _is_only_a_length(answer):
        return None
    lengths = lengths_of(text)
    if not lengths:
        return None
    if lengths & gold:
        return len(lengths) == 1 or not {base for base, _ in lengths - gold} & {base for base, _ in gold}
    return False if {base for base, _ in lengths} == {base for base, _ in gold} else _far_apart(gold, lengths)


def _far_apart(answer_lengths: frozenset[tuple[str, float]], text_lengths: frozenset[tuple[str, float]]) -> bool | None:
    """False for lengths in months and in days that cannot be the same; None for those that may be."""
    hours = [number * 730 if base == "months" else number for base, number in (*answer_lengths, *text_lengths)]
    return False if max(hours) > 1.2 * min(hours) else None


def _is_only_a_length(answer: str) -> bool:
    rest = content_of(_PATTERNS["length"].sub(" ", in_digits(answer.casefold(), language())))
    return rest <= _AROUND


def _same_date(answer: str, text: str, spoken_on: date | None) -> bool | None:
    if not is_date(answer):
        return None
    answer_spans = _interval(answer) or spans_of(answer)
    text_spans = _interval(text) or spans_of(text, spoken_on)
    if not answer_spans or not text_spans:
        return None
    if len(answer_spans) > 1:
        return True if answer_spans == text_spans else None
    if len(text_spans) == 1:
        return _same_span(answer_spans[0], text_spans[0])
    return None if any(same_time(span, answer_spans[0]) for span in text_spans) else False


def _interval(text: str) -> tuple[Span, ...]:
    """The one span from a first to a last day that a text names; none if it names no such two."""
    match = _PATTERNS["interval"].search(text)
    last_spans = spans_of(match["last"]) if match is not None else ()
    if match is None or len(last_spans) != 1:
        return ()
    last, (last_begins, ends) = date.fromordinal(last_spans[0][1]), last_spans[0]
    # What the first day leaves out is as of the last: from May 27 to June 2, 2022.
    first = f"{match['first']} {MONTHS[last.month - 1]}" if match["first"][0].isdigit() else match["first"]
    for form in (match["first"], f"{first} {last.year}"):
        begins = spans_of(form)
        if len(begins) == 1 and begins[0][0] <= last_begins:
            return ((begins[0][0], ends),)
    return ()


def _same_span(answer_span: Span, text_span: Span) -> bool | None:
    """None for a finer or vaguer time that fits: whether that is right, the answer does not tell."""
    if answer_span == text_span:
        return True
    if not same_time(text_span, answer_span):
        return None if _within(text_span, answer_span) or _within(answer_span, text_span) else False
    return True if as_precise_as(text_span, answer_span) and as_precise_as(answer_span, text_span) else None


def _within(inner: Span, outer: Span) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _same_number(answer: str, text: str, spoken_on: date | None) -> bool | None:
    answer_numbers = [word for word in content_of(_in_digits(answer)) if word not in _AROUND]
    if len(answer_numbers) != 1 or not is_number(answer_numbers[0]) or lengths_of(text):
        return None
    text_numbers = {word for word in content_of(_in_digits(text)) if is_number(word)}
    if text_numbers and _other_currency(answer, text):
        return False
    return text_numbers == set(answer_numbers) if text_numbers else None


def _other_currency(answer: str, text: str) -> bool:
    answer_currencies, text_currencies = (currencies_in(side, language()) for side in (answer, text))
    return bool(answer_currencies and text_currencies) and answer_currencies.isdisjoint(text_currencies)


def _in_digits(text: str) -> str:
    return " ".join(normalise(text))
