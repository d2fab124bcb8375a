"""The names of months, days, seasons and units of time in German, Spanish and French, by their English names."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attribution.text.calendar_names import MONTHS, WEEKDAYS
from attribution.text.languages.function_words import Language

Names = Mapping[str, str]
"""English name → pattern of the name in another language."""

# Each a pattern; after a slash, how it is abbreviated in a date.
_MONTHS: dict[Language, str] = {
    "de": "januar|jänner/jan februar|feber/feb märz|maerz/mär april/apr mai/mai juni/jun juli/jul august/aug"
    " september/sept? oktober/okt november/nov dezember/dez",
    "es": "enero/ene febrero/feb marzo/mar abril/abr mayo/may junio/jun julio/jul agosto/ago septiembre|setiembre/sept?"
    " octubre/oct noviembre/nov diciembre/dic",
    "fr": "janvier/janv février/févr mars/mars avril/avr mai/mai juin/juin juillet/juil août/août septembre/sept"
    " octobre/oct novembre/nov décembre/déc",
}
_WEEKDAYS: dict[Language, str] = {
    "de": "montags? dienstags? mittwochs? donnerstags? freitags? samstags?|sonnabends? sonntags?",
    "es": "lunes martes miércoles jueves viernes sábado domingo",
    "fr": "lundi mardi mercredi jeudi vendredi samedi dimanche",
}
_SEASONS: dict[Language, str] = {
    "de": "frühlings?|frühjahrs? sommers? herbste?s? winters?",
    "es": "primavera verano otoño invierno",
    "fr": "printemps été automne hiver",
}
_UNITS: dict[Language, str] = {
    "de": "tag(?:en?|es)? wochen? monat(?:en?|s)? jahr(?:en?|e?s)? wochenenden? nacht|nächten?",
    "es": "días? semanas? mes(?:es)? años? fin(?:es)?_de_semana noches?",
    "fr": "jours?|journées? semaines? mois ans?|années? week-?ends? nuits?",
}
_DAYS: dict[Language, str] = {"de": "gestern heute", "es": "ayer hoy", "fr": "hier aujourd[’']?hui"}


def _named(english: str, names: Mapping[Language, str]) -> dict[Language, Names]:
    return {
        language: {name: pattern.replace("_", " ") for name, pattern in zip(english.split(), own.split(), strict=True)}
        for language, own in names.items()
    }


def _part(names: Mapping[Language, Names], at: int) -> dict[Language, Names]:
    return {
        language: {english: name.split("/")[at] for english, name in own.items()} for language, own in names.items()
    }


_WITH_SHORT = _named(" ".join(MONTHS), _MONTHS)
MONTH_NAMES, SHORT_MONTH_NAMES = _part(_WITH_SHORT, 0), _part(_WITH_SHORT, 1)
WEEKDAY_NAMES = _named(" ".join(WEEKDAYS), _WEEKDAYS)
SEASON_NAMES = _named("spring summer autumn winter", _SEASONS)
UNIT_NAMES = _named("day week month year weekend night", _UNITS)
_DAY_NAMES = _named("yesterday today", _DAYS)

_ALL: dict[Language, tuple[tuple[str, re.Pattern[str]], ...]] = {
    language: tuple(
        (english, re.compile(pattern))
        for names in (MONTH_NAMES, WEEKDAY_NAMES, SEASON_NAMES, UNIT_NAMES, _DAY_NAMES)
        for english, pattern in names[language].items()
    )
    for language in MONTH_NAMES
}


def english_name(word: str, language: Language) -> str | None:
    """The English name of a lower-case word that names a month, day, season or unit; None for others."""
    return next((english.lower() for english, name in _ALL.get(language, ()) if name.fullmatch(word)), None)
