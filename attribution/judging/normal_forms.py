"""Values in normal form: whether a text gives the same date, length of time, number, list or yes or no as an answer.

These differ in form only, so they are compared as values. Everything else is left to words, meaning or a model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from attribution.text.content import content_of, is_date
from attribution.text.dates import Span, as_precise_as, same_time, spans_of
from attribution.text.figures import currencies_in
from attribution.text.languages.lists import SEPARATING_COMMA
from attribution.text.languages.reading import language
from attribution.text.numbers import in_digits
from attribution.text.phrases import denies, says_unknown
from attribution.text.stems import is_number
from attribution.text.tokens import normalise

_UNITS: tuple[tuple[str, str, int], ...] = (
    # A month has no fixed number of days, so years and months are counted apart from weeks, days and hours.
    (r"years?|yrs?|jahre?n?|años?|ans?|années?", "months", 12),
    (r"months?|monate?n?|mes(?:es)?|mois", "months", 1),
    (r"weeks?|wks?|wochen?|semanas?|semaines?", "hours", 168),
    (r"fortnights?", "hours", 336),
    (r"days?|tage?n?|días?|jours?|journées?", "hours", 24),
    (r"hours?|hrs?|stunden?|horas?|heures?", "hours", 1),
)
_LENGTH = re.compile(
    # A rate is no length: twice a day, 3 hours a week.
    r"(?<!\bonce )(?<!\btwice )(?<!\btimes )(?<!\bdays )(?<!\bhours )"
    r"\b(?P<n>\d+(?:\.\d+)?|an?|one|ein(?:e[mnrs]?)?|una?|une?|half an?)(?P<half>\s+and\s+a\s+half)?[\s-]+"
    rf"(?P<unit>{'|'.join(unit for unit, _, _ in _UNITS)})\b(?P<more>\s+and\s+a\s+half\b)?",
    re.IGNORECASE,
)
_AROUND = content_of("for about around nearly almost roughly over more than exactly approximately after ago")
_ITEMS = re.compile(
    rf"\s*(?:{SEPARATING_COMMA}|[;&/])\s*"
    r"(?:(?:and|or|und|oder|y|e|et|ou)\b)?|\s+(?:and|or|und|oder|y|e|et|ou)\s+(?:also\s+)?",
    re.I,
)
_GUARDED = re.compile(
    r"(?:(?:most|very|quite)\s+)?(?P<guard>likely|probably|presumably|perhaps|maybe|possibly|i think)?[\s,]*"
    r"(?P<said>yes|yeah|no|not|nope|ja|nein|sí|si|oui|non)?\b",
    re.IGNORECASE,
)
_NO = frozenset(("no", "not", "nope", "nein", "non"))
_SHORT = 5
_ITEM_WORDS = 4


def same_form(question: str, answer: str, reply: str) -> bool | None:
    """Whether a reply gives the value of an answer in any form; None if it is not a value, or the reply has none."""
    found = same_value(answer, reply)
    return same_items(question, answer, reply) if found is None else found


def same_form_as_any(question: str, answers: Sequence[str], reply: str) -> bool | None:
    """Whether a reply gives the value of an accepted answer in any form; None if that is not known of all of them."""
    forms = [same_form(question, answer, reply) for answer in answers]
    return True if True in forms else None if None in forms or not forms else False


def same_value(answer: str, text: str, said: date | None = None) -> bool | None:
    """Whether a text gives the value of an answer; None if one of them is not a value of a kind that is compared.

    Args:
        answer: an accepted answer.
        text: a reply, or any text that may hold the value.
        said: the day to which relative times in the text refer.
    """
    for compare in (_same_decision, _same_length, _same_date, _same_number):
        found = compare(answer, text, said)
        if found is not None:
            return found
    return None


def same_items(question: str, answer: str, reply: str) -> bool | None:
    """Whether a reply lists the items of an answer in any order, and no others; None if the answer is no list."""
    items = items_of(answer)
    clauses = any(len(part.split()) > _ITEM_WORDS for part in _ITEMS.split(answer))
    if len(items) < 2 or clauses or is_date(answer) or decision_of(answer) is not None:
        return None
    if denies(reply) and not denies(answer):
        return None
    given = items_of(reply)
    known = content_of(question).union(*items)
    held = [item for item in items if any(item <= one for one in given)]
    if len(held) < len(items):
        # Items in other words cannot be told from items left out, unless there are fewer of them.
        return False if len(given) < len(items) or held else None
    return all(any(item <= one for item in items) or one <= known for one in given)


def items_of(text: str) -> Sequence[frozenset[str]]:
    """The content words of each item that a text lists."""
    return [content for part in _ITEMS.split(text) if (content := content_of(part))]


def _same_decision(answer: str, text: str, said: date | None) -> bool | None:
    wanted, given = decision_of(answer), decision_of(text)
    if wanted is None or given is None or says_unknown(text):
        return None
    if wanted != given:
        return False
    # Yes, to Berlin, and yes, to Paris: what both add may differ.
    added = _beside_decision(text)
    return True if not added or _beside_decision(answer) <= added else None


def _beside_decision(text: str) -> frozenset[str]:
    return content_of(_GUARDED.sub("", text.strip(), count=1))


def decision_of(text: str) -> bool | None:
    """Yes or no, however sure, as a text of few words or its first words say it; None if they say neither."""
    found = _GUARDED.match(text.strip())
    said, guard = (found["said"], found["guard"]) if found is not None else (None, None)
    if said:
        return said.casefold() not in _NO
    return not denies(text) if guard and len(text.split()) <= _SHORT else None


def lengths_of(text: str) -> frozenset[tuple[str, float]]:
    """The lengths of time that a text names, as ("months", number) or ("hours", number)."""
    found: set[tuple[str, float]] = set()
    for one in _LENGTH.finditer(in_digits(text.casefold(), language())):
        base, factor = next((base, size) for unit, base, size in _UNITS if re.fullmatch(unit, one["unit"], re.I))
        number = float(one["n"]) if one["n"][0].isdigit() else 0.5 if one["n"].startswith("half") else 1.0
        found.add((base, (number + 0.5 * bool(one["half"] or one["more"])) * factor))
    return frozenset(found)


def _same_length(answer: str, text: str, said: date | None) -> bool | None:
    wanted = lengths_of(answer)
    if len(wanted) != 1 or not _is_only_a_length(answer):
        return None
    given = lengths_of(text)
    if not given:
        return None
    if given & wanted:
        return len(given) == 1 or not {base for base, _ in given - wanted} & {base for base, _ in wanted}
    return False if {base for base, _ in given} == {base for base, _ in wanted} else _far_apart(wanted, given)


def _far_apart(wanted: frozenset[tuple[str, float]], given: frozenset[tuple[str, float]]) -> bool | None:
    """False for lengths in months and in days that cannot be the same; None for those that may be."""
    hours = [number * 730 if base == "months" else number for base, number in (*wanted, *given)]
    return False if max(hours) > 1.2 * min(hours) else None


def _is_only_a_length(answer: str) -> bool:
    rest = content_of(_LENGTH.sub(" ", in_digits(answer.casefold(), language())))
    return rest <= _AROUND


def _same_date(answer: str, text: str, said: date | None) -> bool | None:
    if not is_date(answer):
        return None
    wanted, given = spans_of(answer), spans_of(text, said)
    if not wanted or not given:
        return None
    if len(wanted) > 1:
        return True if wanted == given else None
    if len(given) == 1:
        return _same_span(wanted[0], given[0])
    return None if any(same_time(one, wanted[0]) for one in given) else False


def _same_span(wanted: Span, given: Span) -> bool | None:
    """None for a finer or vaguer time that fits: whether that is right, the answer does not tell."""
    if wanted == given:
        return True
    if not same_time(given, wanted):
        return None if _within(given, wanted) or _within(wanted, given) else False
    return True if as_precise_as(given, wanted) and as_precise_as(wanted, given) else None


def _within(one: Span, other: Span) -> bool:
    return other[0] <= one[0] and one[1] <= other[1]


def _same_number(answer: str, text: str, said: date | None) -> bool | None:
    wanted = [word for word in content_of(_in_digits(answer)) if word not in _AROUND]
    if len(wanted) != 1 or not is_number(wanted[0]) or lengths_of(text):
        return None
    given = {word for word in content_of(_in_digits(text)) if is_number(word)}
    if given and _other_currency(answer, text):
        return False
    return given == set(wanted) if given else None


def _other_currency(answer: str, text: str) -> bool:
    wanted, given = (currencies_in(one, language()) for one in (answer, text))
    return bool(wanted and given) and wanted.isdisjoint(given)


def _in_digits(text: str) -> str:
    return " ".join(normalise(text))
