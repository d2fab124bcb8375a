"""The exact filters in a question's words: who, what kind of event, which tool or decision, and when."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from tracing.trace_memory.event_filters import FilterArguments
from tracing.trace_memory.events import Event

FEWEST = 3
"""Events recalled at least: where a filter admits fewer, the nearest of the others follow, since words may mislead."""

_SECONDS_A_DAY = 86_400

_MONTHS = tuple(calendar.month_name[number].lower() for number in range(1, 13))
_MONTH = "|".join(_MONTHS)
_DAY = re.compile(
    rf"\b(?P<iso>\d{{4}}-\d\d-\d\d)\b"
    rf"|\b(?P<before>\d{{1,2}})(?:st|nd|rd|th)? (?P<month>{_MONTH})\b"
    rf"|\b(?P<named>{_MONTH}) (?P<after>\d{{1,2}})\b",
    re.IGNORECASE,
)
_DECISION = re.compile(r"\b(?:decid\w+|decision|chos\w+|choose|choice|settle\w*)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
_STOP = frozenset({"the", "a", "an", "of", "and", "to", "in", "on", "is", "get", "list", "find", "set"})


@dataclass(frozen=True, slots=True)
class TraceVocabulary:
    """What a memory holds that a question may name."""

    processes: frozenset[str]
    keys: frozenset[str]
    years: tuple[int, ...]

    @classmethod
    def of(cls, events: Iterable[Event]) -> TraceVocabulary:
        """What these events hold."""
        listed = list(events)
        years = sorted({datetime.fromtimestamp(event.time, UTC).year for event in listed if event.time})
        acts = [event for event in listed if event.type != "message"]
        return cls(frozenset(e.process for e in acts), frozenset(e.key for e in acts), tuple(years))


def filters_of(question: str, vocabulary: TraceVocabulary) -> list[FilterArguments]:
    """Filters to try one after the other, the strictest first and none at last, until one admits an event."""
    words = _words(question)
    strict: FilterArguments = {}
    named = [
        process for process in sorted(vocabulary.processes) if (name_words := _words(process)) and name_words <= words
    ]
    if len(named) == 1:
        strict["process"] = named[0]
    if _DECISION.search(question):
        strict["type"] = "decision"
    day = _day(question, vocabulary.years)
    if day is not None:
        strict["since"], strict["until"] = day.timestamp(), day.timestamp() + _SECONDS_A_DAY
    keys = [key for key in sorted(vocabulary.keys) if (name_words := _words(key) - _STOP) and name_words <= words]
    filters: list[FilterArguments] = []
    if keys:
        filters.append({**strict, "key": keys})
        filters.append({"key": keys})
    if strict:
        filters.append(strict)
    return [*filters, {}]


def _words(text: str) -> frozenset[str]:
    """The words of a text; a plural and its singular are one."""
    words = _WORD.findall(text.lower())
    return frozenset(word[:-1] if len(word) > 3 and word.endswith("s") else word for word in words)


def _day(question: str, years: tuple[int, ...]) -> datetime | None:
    """The day that a question names; one without a year is of the latest year known."""
    match = _DAY.search(question)
    if match is None:
        return None
    try:
        if match["iso"]:
            return datetime.fromisoformat(match["iso"]).replace(tzinfo=UTC)
        month = _MONTHS.index((match["month"] or match["named"]).lower()) + 1
        return datetime(years[-1], month, int(match["before"] or match["after"]), tzinfo=UTC) if years else None
    except ValueError:
        return None
