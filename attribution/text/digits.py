"""Numbers in digits as people write them: with separators, in thousands and millions, as money, beside units.

`$20,000`, `20 000 €`, `20.000,00 EUR` and `20k` become 20000 with the currency beside it, and `1,5 Mio.` 1500000. A
point or comma before three digits groups them where the language writes thousands so, and beside a currency, since
money has no thousandths. 10km, 10 kilometres and 10 Kilometer are one, and so are 5-10 and 5 to 10; signs of time stay
as they are (20h is an hour of the day in French), and pounds are money too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache

from attribution.text.calendar_names import MONTH
from attribution.text.languages.language_data import Language, language_data, patterns_of_language

_COMMON = language_data("common")
_CURRENCIES, _UNITS = patterns_of_language("common", "currencies"), patterns_of_language("common", "units")
_EXPONENTS: Mapping[str, int] = _COMMON["exponents"]
_MONEY_EXPONENTS: Mapping[str, int] = _COMMON["money_exponents"]
_CURRENCY_PATTERNS = {
    name: re.compile(rf"(?<![^\W\d_])(?:{words})(?![^\W\d_])", re.IGNORECASE) for name, words in _CURRENCIES.items()
}
# Words of weight too; what holds one is not read as money by its word alone.
_WEIGHT = frozenset(("pound",))

_SPACES = " \u00a0\u2007\u2009\u202f"
_AFTER_A_MONTH = re.compile(rf"\b{MONTH}\s*$", re.IGNORECASE)
_LONGEST_MONTH = 12
_DIGIT = re.compile(r"\d")
_HALVES = (
    re.compile(r"\b(?P<n>\d+) (?:and a half|y medio|et demie?) (?P<unit>1000(?:000)*)\b", re.I),
    re.compile(r"\b(?:half a|(?:eine )?halbe|medio|(?:un )?demi[- ]) ?(?P<unit>1000(?:000)*)\b", re.I),
)
_AND_A_HALF = re.compile(r"\b(\d+) (?:and a half|y medio|et demi)\b", re.I)
_MANY_AND_A_HALF = re.compile(r"\b(?P<n>\d+?)(?P<unit>(?:000){2,3}) (?:and a half|y medio|et demie?)\b", re.I)
_HALF_ENDING = re.compile(r"\b(?P<n>\w+)einhalb\b|\banderthalb\b", re.I)
_RANGE = re.compile(
    rf"(?<=\d) (?P<name>{'|'.join(_CURRENCIES)})"
    r"(?P<range>(?:[-–—]|\s(?:to|bis|a|à|and|und|y|et) )[\d.,]*\d)(?: (?P=name))?\b"
)
_GERMAN_NUMBERS = {
    word: number for number, word in enumerate(("ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht"), 1)
}

_NAMES = tuple(_UNITS)
_WITH_UNIT = re.compile(
    rf"(?<=\d)[ -]?(?:{'|'.join(f'({words})' for words in _UNITS.values())})(?![^\W\d_])", re.IGNORECASE
)
# Before numbers are read: ciento is a hundred.
_PERCENT = re.compile(r"\b(?:per ?cent|pct|prozent|por ?ciento|pour ?cent)\b", re.IGNORECASE)
_HALF = re.compile(r"(?<![\w/.])(\d+) 1/2(?![\w/])")
_FRACTIONS = {"½": "5", "¼": "25", "¾": "75"}
_WITH_FRACTION = re.compile(r"(\d*) ?([½¼¾])")
_NEGATIVE = re.compile(r"(?<![^\s(])(?<!\d )(?:[-\u2212]|minus )(?=\d)", re.IGNORECASE)


def plain_figures(text: str, language: Language) -> str:
    """A text with its numbers in plain digits, as 20000, 1.5 and 1500000; a currency stays beside its number."""
    return _replaced(text, language, lambda figure: _plain(figure, language))


def whole_halves(text: str) -> str:
    """A text in digits whose `2 and a half`, `2000000 and a half` and `half a 1000000` are one number."""
    if not has_digits(text):
        return text
    for pattern in _HALVES:
        text = pattern.sub(_of_halves, text)
    text = _MANY_AND_A_HALF.sub(lambda match: _of_halves(match, int("1" + match["unit"])), text)
    return _AND_A_HALF.sub(r"\1.5", text)


def german_halves(text: str) -> str:
    """A German text with 2.5 for zweieinhalb, and 1.5 for anderthalb."""

    def in_digits(match: re.Match[str]) -> str:
        number = _GERMAN_NUMBERS.get((match["n"] or "ein").casefold())
        return f"{number}.5" if number else match[0]

    return _HALF_ENDING.sub(in_digits, text)


def without_figures(text: str, language: Language) -> str:
    """A text with ¦ in place of money, grouped digits, thousands and millions, none of which is a year."""
    return _replaced(text, language, lambda figure: "¦" if _is_no_year(figure) else figure[0])


def currencies_in(text: str, language: Language) -> frozenset[str]:
    """The currencies that a text names beside numbers; ¥ is two of them."""
    figures = _figures(language).finditer(text) if has_digits(text) else ()
    return frozenset().union(*map(_currencies_of, figures))


def with_currencies_named(text: str, language: Language, names: frozenset[str]) -> str:
    """A text in which one word stands for each currency beside a number, of `names` if it is one of them."""

    def named(figure: re.Match[str]) -> str:
        currencies = _currencies_of(figure)
        name = min(currencies & names or currencies, default="")
        return f"{figure['number']}{figure['many'] or ''} {name}" if name else figure[0]

    # Of a range it is named once, at its end.
    return _RANGE.sub(r"\g<range> \g<name>", _replaced(text, language, named))


def without_currencies(text: str, language: Language) -> str:
    """A text without the currencies beside its numbers; pounds, which may be weight, stay."""

    def bare(figure: re.Match[str]) -> str:
        after = figure["after"] if _currencies_of(figure) <= _WEIGHT and figure["after"] else ""
        return f" {figure['number']}{figure['many'] or ''}{after} " if _is_money(figure) else figure[0]

    return _replaced(text, language, bare)


def _plain(figure: re.Match[str], language: Language) -> str:
    before, after, many = figure["before"] or "", figure["after"] or "", figure["many"] or ""
    number = figure["number"]
    if _AFTER_A_MONTH.search(figure.string[max(0, figure.start() - _LONGEST_MONTH) : figure.start()]):
        return figure[0]
    exponent = _exponent(many, language, money=_is_money(figure))
    value = _value(number, language, exact=_is_money(figure) or exponent is not None)
    if value is None:
        # Of a list without spaces the numbers stay apart.
        return figure[0] if "," not in number else figure[0].replace(",", ", ")
    plain = value if exponent is None else _written(Decimal(value) * 10**exponent)
    if exponent is None and many:
        plain += many
    if _is_money(figure):
        plain = plain.removesuffix(".00")
        before = "$" if "$" in before else before
    return f"{before}{plain}{after}"


def _value(number: str, language: Language, *, exact: bool) -> str | None:
    """A number without groups and with a decimal point; None for what is several numbers, or a date."""
    number = re.sub(rf"[{_SPACES}'’](?=\d)", "", number)
    points, commas = number.count("."), number.count(",")
    if points and commas:
        decimal = max(".,", key=number.rfind)
        whole, _, rest = number.rpartition(decimal)
        return f"{re.sub('[.,]', '', whole)}.{rest}" if whole.count(decimal) == 0 else None
    if points + commas == 0:
        return number
    sign = "." if points else ","
    first, *parts = number.split(sign)
    grouped = first != "0" and len(first) <= 3 and all(len(part) == 3 for part in parts)
    indian = sign == "," and len(parts) > 1 and len(parts[-1]) == 3 and all(len(part) == 2 for part in parts[:-1])
    if indian or (grouped and (len(parts) > 1 or exact or sign == language_data(language)["numbers"]["groups_with"])):
        return number.replace(sign, "")
    if len(parts) > 1:
        return number if sign == "." else None
    return number.replace(",", ".") if sign == "." or exact or language != "en" else None


def _exponent(many: str, language: Language, *, money: bool) -> int | None:
    letters = many.strip(" .").casefold()
    exponent = _EXPONENTS.get(letters, _exponents(language).get(letters))
    if letters == "k" and many[:1].isspace() and not money:
        return None
    # Of the letters only a capital M is hardly ever a unit: 2M views, a wall of 2m.
    return _MONEY_EXPONENTS.get(letters) if exponent is None and (money or many == "M") else exponent


def _is_money(figure: re.Match[str]) -> bool:
    return bool(figure["before"] or figure["after"])


@lru_cache(maxsize=1024)
def _names_of(currency: str) -> frozenset[str]:
    return frozenset(name for name, pattern in _CURRENCY_PATTERNS.items() if pattern.search(currency))


def _currencies_of(figure: re.Match[str]) -> frozenset[str]:
    return _names_of(f"{figure['before'] or ''} {figure['after'] or ''}") if _is_money(figure) else frozenset()


def _is_no_year(figure: re.Match[str]) -> bool:
    number = figure["number"]
    grouped = re.fullmatch(rf"\d{{1,3}}(?:[{_SPACES}'’.,]\d{{3}})+", number) is not None
    return _is_money(figure) or grouped or bool(figure["many"])


def _written(value: Decimal) -> str:
    return f"{value.normalize():f}"


def _of_halves(match: re.Match[str], unit: int | None = None) -> str:
    number = Decimal(match.groupdict().get("n") or 0) + Decimal("0.5")
    return _written(number * (unit or int(match["unit"])))


def _replaced(text: str, language: Language, replace: Callable[[re.Match[str]], str]) -> str:
    return _figures(language).sub(replace, text) if has_digits(text) else text


def has_digits(text: str) -> bool:
    """Whether a text has a decimal digit, without which most patterns of numbers and dates need not be tried."""
    return _DIGIT.search(text) is not None


@lru_cache
def _figures(language: Language) -> re.Pattern[str]:
    many = "|".join(sorted((*_EXPONENTS, *_MONEY_EXPONENTS, *_exponents(language)), key=len, reverse=True))
    words = "|".join(_CURRENCIES.values())
    signs, codes = patterns_of_language("common", "figures").values()
    # A 401k is a pension plan.
    grouped = rf"[1-9]\d{{0,2}}(?:[{_SPACES}'’]\d{{3}})+(?![{_SPACES}]?\d)(?:[.,]\d{{1,2}}(?!\d))?"
    return re.compile(
        rf"(?:(?P<before>(?:{signs}|(?<!\w)(?:{codes}))\s?)|(?<![\w.,:/])(?<!\d[{_SPACES}]))"
        rf"(?!401\s?k\b)(?P<number>{grouped}|\d+(?:[.,]\d+)*)(?:[.,][-–—](?!\d))?"
        rf"(?P<many>(?:[k万萬億亿]|\s?(?:{many}))(?![^\W\d_])\.?|[万萬億亿])?"
        rf"(?P<after>\s?(?:de |d['’])?(?:(?:{words})(?!\w)|[円元]))?",
        re.IGNORECASE,
    )


def with_shares(text: str) -> str:
    """A text with 1.5 for 1½ and % for percent; other fractions stay."""
    text = _PERCENT.sub("%", text)
    if text.isascii() and not has_digits(text):
        return text
    text = _HALF.sub(r"\1½", text)
    return _WITH_FRACTION.sub(lambda match: f"{match[1] or 0}.{_FRACTIONS[match[2]]}", text)


def with_units(text: str) -> str:
    """A text in digits with one name for each unit beside a number, and a sign of its own for a negative number."""
    if not has_digits(text):
        return text
    return _NEGATIVE.sub("\u2212", _WITH_UNIT.sub(lambda match: f" {_NAMES[(match.lastindex or 0) - 1]}", text))


def with_ranges(text: str, language: Language) -> str:
    """A text in digits with 5-10 for 5 to 10 and between 5 and 10."""
    words = language_data(language)["numbers"]
    between, and_ = words["between"].split()
    text = re.sub(rf"\b{between} (\d[\d.]*) {and_} (?=\d)", r"\1-", text, flags=re.IGNORECASE)
    return re.sub(rf"(?<=\d) {words['to']} (?=\d)", "-", text, flags=re.IGNORECASE)


def _exponents(language: Language) -> Mapping[str, int]:
    """The powers of ten of a language's words for many: thousand, million."""
    exponents: Mapping[str, int] = language_data(language)["numbers"]["exponents"]
    return exponents
