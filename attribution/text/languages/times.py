"""Times named in German, Spanish and French, put into the English that the date rules read.

A time is found by templates: `vor {n} {u}` finds `vor 20 Jahren`, and `{n} {u} ago` says in English what it found. The
rules that turn a phrase into days (which days `last week` means) are then the same for all languages.

dateparser, which does this for more languages, was tried and left out: it gives points of time where spans are needed,
takes `am Morgen` for `tomorrow`, and needs up to 20 ms for a phrase.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from attribution.text.languages.function_words import Language
from attribution.text.languages.time_names import (
    MONTH_NAMES,
    SEASON_NAMES,
    SHORT_MONTH_NAMES,
    UNIT_NAMES,
    WEEKDAY_NAMES,
    Names,
)


@dataclass(frozen=True, slots=True)
class _Grammar:
    """How a language names times.

    Attributes:
        which: English `last`, `next` or `this` → its pattern.
        part: English `early`, `mid` or `late` → its pattern.
        some: English vague number → its pattern.
        templates: pattern with names in braces → English with the same names; the first that matches counts.
    """

    which: Names
    part: Names
    some: Names
    templates: tuple[tuple[str, str], ...]


_GRAMMARS: dict[Language, _Grammar] = {
    "de": _Grammar(
        which={
            "last": "(?:letzt|vergangen|vorig)e[nrsm]?",
            "next": "(?:nächst|kommend)e[nrsm]?",
            "this": "diese[nrsm]?",
        },
        part={"early": "anfang", "mid": "mitte", "late": "ende"},
        some={"a few": "ein paar|einigen?|wenigen?", "several": "mehreren?", "a": "ein(?:e[mnr]?)?"},
        templates=(
            (r"{dow}{d}\.? {m}\.?,? {y}", "{d} {m} {y}"),
            (r"{part} (?:des )?{m},? {y}", "{part} {m} {y}"),
            (r"{m}\.?,? {y}", "{m} {y}"),
            (r"{s},? {y}", "{s} {y}"),
            (r"{which} {s}", "{which} {s}"),
            (r"{dow}{d}\. {m}", "{d} {m}"),
            (r"{part} {m}", "{part} {m}"),
            (r"(?:im|seit|bis|ab) {m}", "in {m}"),
            (r"{which} {m}", "{which} {m}"),
            (r"vor {n} {u}", "{n} {u} ago"),
            (r"(?:in|nach) {n} {u}", "in {n} {u}"),
            (r"seit {n} {u}", "for {n} {u}"),
            (r"{which} {u}", "{which} {u}"),
            (r"{which} {w}", "{which} {w}"),
            (r"am {w}", "on {w}"),
            (r"vorgestern", "the day before yesterday"),
            (r"übermorgen", "the day after tomorrow"),
            (r"gestern(?: (?:morgen|früh|mittag|nachmittag|abend|nacht))?", "yesterday"),
            (r"heute(?: (?:morgen|früh|mittag|nachmittag|abend|nacht))?", "today"),
            # With a capital letter within a sentence it is the morning.
            (r"(?-i:(?<!am )(?<!jeden )(?<!guten )(?:morgen|(?:(?<=^)|(?<=[.!?] ))Morgen))", "tomorrow"),
        ),
    ),
    "es": _Grammar(
        which={
            "last": "pasad[oa]s?|últim[oa]s?",
            "next": "próxim[oa]s?|siguiente|que viene|entrante",
            "this": "est[ea]",
        },
        part={
            "early": "(?:a )?(?:principios?|comienzos|inicios)",
            "mid": "(?:a )?mediados",
            "late": "(?:a )?(?:finales|fines|fin)",
        },
        some={"a few": "un[oa]s(?: poc[oa]s)?|algun[oa]s|poc[oa]s|un par de", "several": "vari[oa]s", "a": "una?"},
        templates=(
            (r"{dow}{d}º? de {m}(?: del?|,)? {y}", "{d} {m} {y}"),
            (r"{part} de {m}(?: del?|,)? {y}", "{part} {m} {y}"),
            (r"{m}(?: del?|,)? {y}", "{m} {y}"),
            (r"{s}(?: del?|,)? {y}", "{s} {y}"),
            (r"{which} {s}", "{which} {s}"),
            (r"{s} {which}", "{which} {s}"),
            (r"{dow}{d}º? de {m}", "{d} {m}"),
            (r"{part} de {m}", "{part} {m}"),
            (r"(?:en|desde|hasta|durante) {m}", "in {m}"),
            (r"{m} {which}", "{which} {m}"),
            (r"desde hace {n} {u}", "for {n} {u}"),
            (r"hace {n} {u}", "{n} {u} ago"),
            (r"{n} {u} (?:atrás|antes)", "{n} {u} ago"),
            (r"(?:dentro de|en) {n} {u}", "in {n} {u}"),
            (r"{u} {which}", "{which} {u}"),
            (r"{which} {u}", "{which} {u}"),
            (r"{w} {which}", "{which} {w}"),
            (r"{which} {w}", "{which} {w}"),
            (r"el {w}", "on {w}"),
            (r"anteayer|antier|antes de ayer", "the day before yesterday"),
            (r"pasado mañana", "the day after tomorrow"),
            (r"anoche|ayer(?: por la (?:mañana|tarde|noche))?", "yesterday"),
            (r"hoy|esta (?:mañana|tarde|noche)", "today"),
            (r"(?<!la )(?<!cada )(?<!una )(?<!buena )mañana(?: por la (?:mañana|tarde|noche))?", "tomorrow"),
        ),
    ),
    "fr": _Grammar(
        which={
            "last": "derni(?:er|ère)s?|passée?s?",
            "next": "prochaine?s?|suivante?|qui vient",
            "this": "ce|cet|cette",
        },
        part={"early": "(?:au )?début", "mid": "(?:à la )?mi", "late": "(?:à la )?fin"},
        some={"a few": "quelques|peu de", "several": "plusieurs", "a": "une?"},
        templates=(
            (r"{dow}{d}(?:er)? {m}\.?,? {y}", "{d} {m} {y}"),
            (r"{part}[- ](?:de |d')?{m},? (?:de )?{y}", "{part} {m} {y}"),
            (r"{m}\.?,? (?:de )?{y}", "{m} {y}"),
            (r"{s},? (?:de |en )?{y}", "{s} {y}"),
            (r"{s} {which}", "{which} {s}"),
            (r"{which} {s}", "{which} {s}"),
            (r"{dow}{d}(?:er)? {m}", "{d} {m}"),
            (r"{part}[- ](?:de |d')?{m}", "{part} {m}"),
            (r"(?:en|depuis|jusqu'en|au mois de) {m}", "in {m}"),
            (r"{m} {which}", "{which} {m}"),
            (r"il y a {n} {u}", "{n} {u} ago"),
            (r"dans {n} {u}", "in {n} {u}"),
            (r"depuis {n} {u}", "for {n} {u}"),
            (r"{n} {u} plus tôt", "{n} {u} ago"),
            (r"{n} {u} plus tard", "{n} {u} later"),
            (r"{u} {which}", "{which} {u}"),
            (r"{which} {u}", "{which} {u}"),
            (r"{w} {which}", "{which} {w}"),
            (r"{which} {w}", "{which} {w}"),
            (r"avant-hier", "the day before yesterday"),
            (r"après-demain", "the day after tomorrow"),
            (r"hier(?: (?:matin|soir|après-midi))?", "yesterday"),
            (r"aujourd'hui|ce (?:matin|soir)|cet(?:te)? après-midi|cette nuit", "today"),
            (r"demain(?: (?:matin|soir|après-midi))?", "tomorrow"),
            (r"(?<!le )(?<!les )(?<!chaque )(?<!un ){w}", "on {w}"),
        ),
    ),
}


def in_english(text: str, language: Language) -> tuple[tuple[str, ...], str]:
    """The times that a text with its numbers in digits names, in English, and the text with them crossed out."""
    if language not in _GRAMMARS:
        return (), text
    text = text.replace("’", "'")
    phrases: list[str] = []
    for pattern, english in _rules(language):
        for match in pattern.finditer(text):
            parts = {name: _in_english(name, part, language) for name, part in match.groupdict().items() if part}
            phrases.append(english.format_map(parts))
        text = pattern.sub(lambda match: "¦" * len(match[0]), text)
    return tuple(phrases), text


@lru_cache
def _names(language: Language) -> dict[str, Names]:
    grammar = _GRAMMARS[language]
    short = SHORT_MONTH_NAMES[language]
    months = {english: f"{name}|{short[english]}" for english, name in MONTH_NAMES[language].items()}
    return {
        "m": months,
        "w": WEEKDAY_NAMES[language],
        "s": SEASON_NAMES[language],
        "u": UNIT_NAMES[language],
        "n": grammar.some,
        "which": grammar.which,
        "part": grammar.part,
    }


@lru_cache
def _rules(language: Language) -> tuple[tuple[re.Pattern[str], str], ...]:
    names = _names(language)
    groups = {name: f"(?P<{name}>{'|'.join(patterns.values())})" for name, patterns in names.items()}
    groups["n"] = f"(?P<n>\\d{{1,3}}|{'|'.join(names['n'].values())})"
    groups |= {"d": r"(?P<d>\d{1,2})", "y": r"(?P<y>\d{4})"}
    groups["dow"] = f"(?:(?:{'|'.join(names['w'].values())}),? (?:de[nmr] |el |le )?)?"
    return tuple(
        (re.compile(rf"(?<!\w)(?:{_filled(pattern, groups)})(?!\w)", re.I), english)
        for pattern, english in _GRAMMARS[language].templates
    )


def _filled(template: str, groups: dict[str, str]) -> str:
    return re.sub(r"\{([a-z]+)\}", lambda name: groups[name[1]], template)


def _in_english(name: str, part: str, language: Language) -> str:
    patterns = _names(language).get(name, {})
    return next((english for english, pattern in patterns.items() if re.fullmatch(pattern, part, re.I)), part)
