"""What turns state that may be asked for: names, titles, numbers and things, each with the sentence that states it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import TYPE_CHECKING

from attribution.text.content import content_of, time_words
from attribution.text.dates import spans_of
from attribution.text.languages.language_data import (
    Language,
    function_words,
    patterns_of_language,
    words_of_language,
)
from attribution.text.languages.reading_language import in_its_language, language
from attribution.text.names import names_in
from attribution.text.stems import is_number
from experiments.data.generating.statements import Statement, own_statements, refers_back
from experiments.data.generating.word_sorts import has, has_own, pattern

if TYPE_CHECKING:
    from experiments.data.generating.dialogue import Dialogue
    from tracing.systems.conversations import Turn

_UNIT = re.compile(rf"{patterns_of_language('common', 'parts')['length_units']}|(?:minut|se[ck][ou]nd)\w*", re.I)
_WORD = r"[^\W_]+(?:['’.-][^\W_]+)*"
_CAPITAL = r"[^\W\d_a-zß-öø-ÿ][^\W_]*(?:[’'.-](?!s\b)[^\W_]+)*"
_NAME = re.compile(rf"(?<![\w'’]){_CAPITAL}(?: (?:(?:of|the|de|del|du|des|la|von|van|der) ){{0,2}}{_CAPITAL})*")
_TITLE = re.compile(r"[\"“„«《「]\s?([^\"”“»«》」]{2,60}?)[,.!]?\s?[\"”“»》」]")
_TOKEN = re.compile(_WORD)
_Run = tuple[tuple[int, int], str, float]
"""Where a value is in a text, the value, and how sure it is one."""
SOME_DAY = date(2024, 2, 15)
"""What names a day only by when it is said, names one on this."""
_SIGNS = ' .,;:!?)"”»…–—-'
_LONGEST, _LONGEST_TIME, _TOPIC_WORDS = 3, 5, 2
_EXAMPLE = 25
"""How far before a value the word may be that makes it an example, in characters."""
_SURE, _LESS_SURE = 3.0, 1.0
"""How much better a name, title or number is as an answer than a thing."""


@dataclass(frozen=True, slots=True)
class Value:
    """What may be asked for: its text, the sentence that states it, and how good an answer it is."""

    text: str
    sentence: str
    weight: float


def dates_for(text: str, spoken_on: date | None) -> tuple[str, ...]:
    """The day, month or year that a text names, in the usual forms, and as it was said where that depends on no day."""
    spans = spans_of(text, spoken_on)
    if len(spans) != 1:
        return ()
    first, last = map(date.fromordinal, spans[0])
    absolute = (text,) if spans_of(text) == spans else ()
    forms: tuple[str, ...] = ()
    if first == last:
        forms = (f"{first.day} {first:%B %Y}", f"{first:%B} {first.day}, {first.year}", f"{first:%Y-%m-%d}")
    elif (first.day, first.month, first.year) == (1, last.month, last.year) and (last - first).days >= 27:
        forms = (f"{first:%B %Y}",)
    elif (first.month, first.day, last.month, last.day) == (1, 1, 12, 31) and first.year == last.year:
        forms = (f"{first.year}",)
    return tuple(dict.fromkeys((*forms, *absolute)))


class Values:
    """The values that turns of a conversation state."""

    def __init__(self, dialogue: Dialogue) -> None:
        self._dialogue = dialogue
        self.language = dialogue.language
        """The language in which texts are read."""

    @in_its_language
    def of(self, turn: Turn, *, supposed: bool = False) -> list[Value]:
        """Single values of what the speaker tells of itself, the best first; of plans and wishes too if `supposed`.

        None is of a list or an example, none of a clause that denies, or that points back at something before it.
        """
        values = [value for statement in own_statements(turn, supposed=supposed) for value in self._in(statement)]
        return sorted(values, key=lambda value: value.weight, reverse=True)

    @in_its_language
    def time_of(self, turn: Turn) -> Value | None:
        """The one time that a turn tells of the speaker, in its own words; None if it names none or several."""
        day = self._dialogue.days[turn.id]
        for statement in own_statements(turn):
            text = statement.text
            spans = spans_of(text, day) if time_words(text) else ()
            if len(spans) == 1 and not refers_back(text) and self._tells(text, ""):
                words = [word.span() for word in _TOKEN.finditer(text)]
                runs = (
                    text[words[first][0] : words[first + size - 1][1]]
                    for size in range(1, _LONGEST_TIME + 1)
                    for first in range(len(words) - size + 1)
                )
                when = next((run for run in runs if spans_of(run, day) == spans), None)
                if when is not None:
                    return Value(when, text, _SURE)
        return None

    def _in(self, statement: Statement) -> Iterator[Value]:
        text = statement.text
        runs = [(match.span(), match[1], _SURE) for match in _TITLE.finditer(text)]
        titles = [span for span, _, _ in runs]
        for match in _NAME.finditer(text):
            names = content_of(match[0]) & names_in(statement.before + text)
            dated = " ".join((*text[: match.start()].split()[-1:], match[0]))
            alone = match[0].isupper() or _begins_small(" ".join(text[: match.start()].split()[-1:]))
            modifies = alone and not _begins_small(text[match.end() :])
            if names and not modifies and names.isdisjoint(self._dialogue.talk.names) and not spans_of(dated, SOME_DAY):
                runs.append((match.span(), match[0], _SURE))
        runs += self._numbers(text)
        runs += self._things(text)
        for (start, end), value, sure in runs:
            if any(first < start and end < last for first, last in titles):
                continue
            before, after = text[:start], text[end:]
            listed = _is_listed(statement.before + before, after + statement.after)
            whole = _begins_small(after) or not _articles(language())[0].search(before)
            whole = whole and not after[:1].strip(_SIGNS)
            if has_own(before) and whole and not listed and not refers_back(before) and self._tells(text, value):
                words = content_of(value)
                weight = sum(map(self._dialogue.vocabulary.weight, words)) / max(1, len(words))
                yield Value(value, text, sure * weight)

    def _numbers(self, text: str) -> Iterator[_Run]:
        """Numbers, with their unit where it is one of time, that are no part of a date."""
        tokens = [*_TOKEN.finditer(text)]
        for at, token in enumerate(tokens):
            words = content_of(token[0])
            if not words or not all(map(is_number, words)) or words <= {"0", "1"} or text[token.end() :][:1] in "%$":
                continue
            end, after = token.end(), tokens[at + 1 : at + 3]
            if after and _UNIT.fullmatch(after[0][0]):
                end, after = after[0].end(), after[1:]
            near = " ".join(word[0] for word in (*tokens[max(0, at - 1) : at], *after[:1]))
            if not time_words(near):
                yield (token.start(), end), text[token.start() : end], _SURE

    def _things(self, text: str) -> Iterator[_Run]:
        """What an article begins and a small word or sign ends; a thing with a name or a number in it is as good."""
        for match in _articles(language())[1].finditer(text):
            words = _until_small_word(match["run"])
            value = " ".join(words)
            last = content_of(words[-1]) if words else frozenset()
            if not last or len(words) > _LONGEST or has("no_thing", value) or spans_of(value, SOME_DAY):
                continue
            start, end = match.start("run"), match.start("run") + len(value)
            named = any(is_number(word) or word in names_in(text) for word in content_of(value))
            first_named = match["indefinite"] or re.match(r"\s*(?:[.,;!]|$)", text[end:])
            if not has("goes_on", text[end:]) and (named or (first_named and all(map(self._dialogue.is_rare, last)))):
                yield (start, end), value, _SURE if named else _LESS_SURE

    def _tells(self, text: str, value: str) -> bool:
        """Whether the rest of a sentence tells enough to ask by."""
        topic = content_of(text) - content_of(value) - time_words(text) - self._dialogue.talk.names
        return len(topic) >= _TOPIC_WORDS and any(map(self._dialogue.is_rare, topic))


@cache
def _articles(read: Language) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """An article just before something; and one with the words behind it, also a word for the owner."""
    articles = "|".join(words_of_language(read, "articles"))
    owner = patterns_of_language(read, "frames")["possessive"]
    indefinite = rf"(?P<indefinite>\b(?:{pattern('indefinite', read).pattern})\b)"
    return (
        re.compile(rf"\b(?:{articles})\s+(?:{_WORD}\s)?$", re.I),
        re.compile(rf"(?:{indefinite}|\b(?:{articles})\b|{owner})\s+(?=(?P<run>{_WORD}(?: {_WORD})*))", re.I),
    )


def _begins_small(text: str) -> bool:
    """Whether what was said before a text ends there: a sign follows, a small word or a time."""
    word = _TOKEN.match(text.lstrip())
    return word is None or not content_of(word[0]) or bool(time_words(word[0]))


def _until_small_word(text: str) -> list[str]:
    words: list[str] = []
    for word in text.split():
        if word.casefold() in function_words(language()) or "'" in word or "’" in word:
            break
        words.append(word)
    return words


def _is_listed(before: str, after: str) -> bool:
    """Whether a value is one of several, or an example."""
    first, following = _list_ends(language())
    return bool(first.search(before) or following.match(after)) or has("examples_of", before[-_EXAMPLE:])


def conjunction(read: Language) -> str:
    """The word between two things of which both are meant."""
    return patterns_of_language(read, "lists")["conjunction"].partition("|")[0]


@cache
def _list_ends(read: Language) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What stands before the last items of a list, and after the first ones."""
    table = patterns_of_language(read, "lists")
    joins = rf"(?:&|\b(?:{table['conjunction']})\b)"
    clause = rf"(?!\s+(?:(?:{table['clause']})\b|{pattern('own', read).pattern}))"
    before = rf"(?:,|{joins})\s*(?:{_WORD}\s+)?[\"“„«]?$"
    after = rf"[\"”»]?\s*(?:,?\s*{joins}{clause}|,\s*(?:{_WORD}\s*){{1,3}},)"
    return re.compile(before, re.I), re.compile(after, re.I)
