"""Numbers as people write them beside units: 10km, 10 kilometres and 10 Kilometer are one, and so are 5-10 and 5 to 10.

A share is its number, with a sign or a word or neither. Signs of time stay as they are (20h is an hour of the day in
French), and pounds are money too.
"""

from __future__ import annotations

import re

from attribution.text.languages.language_data import Language

# What is part of another comes after it.
_UNITS = {
    "kmh": r"km/h|kmh|kph|(?:kilomet(?:er|re)s?|km) (?:per|an|pro) (?:hour|stunde)|stundenkilometern?"
    r"|(?:kilómetros|km) por hora|(?:kilomètres?|km) (?:à l['’]|par )heure",
    "mph": r"mph|miles (?:per|an) hour",
    "km": r"kms?|kilomet(?:er|re)s?|kilometern|kilómetros?|kilomètres?",
    "m": r"(?-i:m)|met(?:er|re)s?|metern|metros?|mètres?",
    "cm": r"cms?|centimet(?:er|re)s?|zentimetern?|centímetros?|centimètres?",
    "mm": r"mms?|millimet(?:er|re)s?|millimetern|milímetros?|millimètres?",
    "kg": r"kgs?|kilos?|kilogram(?:me)?s?|kilogramm|kilogramos?",
    "gram": r"(?-i:g)|gram(?:me)?s?|gramm|gramos?",
    "mg": r"mgs?|milligram(?:me)?s?|milligramm|miligramos?",
    "litre": r"l(?!['’])|lit(?:er|re)s?|litern|litros?",
    "ml": r"mls?|millilit(?:er|re)s?|millilitern|mililitros?",
    "mile": r"miles?|meilen?|millas?",
    "pounds": r"lbs?",
    "ounce": r"oz|ounces?",
    "foot": r"ft|feet|foot",
    "minute": r"mins?|minut(?:es?|en|os?)",
    "degree celsius": r"° ?c|(?:degrees?|grad|grados?|degrés?) (?:c|celsius|centígrados)",
    "degree fahrenheit": r"° ?f|(?:degrees?|grad|grados?|degrés?) (?:f|fahrenheit)",
    "degree": r"°",
}
_NAMES = tuple(_UNITS)
_WITH_UNIT = re.compile(
    rf"(?<=\d)[ -]?(?:{'|'.join(f'({words})' for words in _UNITS.values())})(?![^\W\d_])", re.IGNORECASE
)
_TO: dict[Language, str] = {"en": "to", "de": "bis", "es": "a", "fr": "à"}
_BETWEEN: dict[Language, tuple[str, str]] = {
    "en": ("between", "and"),
    "de": ("zwischen", "und"),
    "es": ("entre", "y"),
    "fr": ("entre", "et"),
}
# Before numbers are read: ciento is a hundred.
_PERCENT = re.compile(r"\b(?:per ?cent|pct|prozent|por ?ciento|pour ?cent)\b", re.IGNORECASE)
_HALF = re.compile(r"(?<![\w/.])(\d+) 1/2(?![\w/])")
_FRACTIONS = {"½": "5", "¼": "25", "¾": "75"}
_WITH_FRACTION = re.compile(r"(\d*) ?([½¼¾])")
_NEGATIVE = re.compile(r"(?<![^\s(])(?<!\d )(?:[-\u2212]|minus )(?=\d)", re.IGNORECASE)


def with_shares(text: str) -> str:
    """A text with 1.5 for 1½ and % for percent; other fractions stay."""
    text = _HALF.sub(r"\1½", _PERCENT.sub("%", text))
    return _WITH_FRACTION.sub(lambda match: f"{match[1] or 0}.{_FRACTIONS[match[2]]}", text)


def with_units(text: str) -> str:
    """A text in digits with one name for each unit beside a number, and a sign of its own for a negative number."""
    return _NEGATIVE.sub("\u2212", _WITH_UNIT.sub(lambda match: f" {_NAMES[(match.lastindex or 0) - 1]}", text))


def with_ranges(text: str, language: Language) -> str:
    """A text in digits with 5-10 for 5 to 10 and between 5 and 10."""
    between, and_ = _BETWEEN[language]
    text = re.sub(rf"\b{between} (\d[\d.]*) {and_} (?=\d)", r"\1-", text, flags=re.IGNORECASE)
    return re.sub(rf"(?<=\d) {_TO[language]} (?=\d)", "-", text, flags=re.IGNORECASE)
