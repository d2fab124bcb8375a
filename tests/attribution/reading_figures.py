"""How many of the short judgements on reading text come out right, by kind and language.

    python tests/attribution/reading_figures.py held_out
    python tests/attribution/reading_figures.py development --wrong

The judgements were written before the rules and split by a seed: `development.tsv` is what the rules were tuned on,
`held_out.tsv` is only counted; nothing prints its cases. Columns: kind, language of the conversation, one or two
texts, and what is right. Every time is said on Thursday 16 May 2024.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from attribution.text.content import content_of
from attribution.text.dates import spans_of
from attribution.text.languages.reading_language import language_of, reading
from attribution.text.names import names_in, short_for
from attribution.text.phrases import denies, says_retracted
from attribution.text.question_kinds import is_inferred
from tracing.systems.conversations import Question

FOLDER = Path(__file__).parent / "reading"
SAID = date(2024, 5, 16)


@dataclass(frozen=True, slots=True)
class Judgement:
    kind: str
    language: str
    first: str
    second: str
    expected: str

    def is_right(self) -> bool:
        with reading(self.language):
            return _answer(self) == self._wanted()

    def _wanted(self) -> object:
        if self.kind == "date":
            return _days(self.expected)
        if self.kind == "name":
            return content_of(self.expected.replace(",", " "))
        return self.expected if self.kind == "language" else self.expected == "1"


def judgements(name: str) -> list[Judgement]:
    with (FOLDER / f"{name}.tsv").open(encoding="utf-8", newline="") as lines:
        return [Judgement(**row) for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)]


def counted(name: str) -> dict[tuple[str, str], tuple[int, int]]:
    """Right and all judgements by kind and language."""
    right: Counter[tuple[str, str]] = Counter()
    whole: Counter[tuple[str, str]] = Counter()
    for one in judgements(name):
        key = (one.kind, one.language)
        whole[key] += 1
        right[key] += one.is_right()
    return {key: (right[key], whole[key]) for key in whole}


def _answer(one: Judgement) -> object:
    if one.kind in ("word", "number"):
        return content_of(one.first) == content_of(one.second)
    if one.kind == "date":
        return set(spans_of(one.first, SAID))
    if one.kind == "withdrawal":
        return says_retracted(one.first)
    if one.kind == "denial":
        return denies(one.first)
    if one.kind == "conclusion":
        return is_inferred(Question(id="q", question=one.first, answers=("Leipzig",)))
    if one.kind == "name":
        return names_in(one.first)
    if one.kind == "person":
        return bool(short_for(one.first, [one.second]))
    return language_of([one.first])


def _days(text: str) -> set[tuple[int, int]]:
    spans = [] if text == "-" else text.split(",")
    ends = [span.partition("..") for span in spans]
    return {(_day(first), _day(last or first)) for first, _, last in ends}


def _day(text: str) -> int:
    return date.fromisoformat(text).toordinal()


def table(name: str) -> Iterator[str]:
    figures = counted(name)
    languages = ("en", "de", "es", "fr")
    yield f"{name:<12}" + "".join(f"{language:>9}" for language in (*languages, "all"))
    for kind in (*dict.fromkeys(kind for kind, _ in figures), "all"):
        cells = []
        for language in (*languages, "all"):
            some = [v for (k, one), v in figures.items() if kind in (k, "all") and language in (one, "all")]
            cells.append(f"{sum(right for right, _ in some)}/{sum(whole for _, whole in some)}")
        yield f"{kind:<12}" + "".join(f"{cell:>9}" for cell in cells)


if __name__ == "__main__":
    print("\n".join(table(sys.argv[1])))
    if "--wrong" in sys.argv and sys.argv[1] == "development":
        for one in judgements("development"):
            if not one.is_right():
                with reading(one.language):
                    print(one.kind, one.language, repr(one.first), repr(one.second), one.expected, "got", _answer(one))
