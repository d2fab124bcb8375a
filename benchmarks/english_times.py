"""English names of months, weekdays and numbers, for benchmarks that may not ask the readers which they measure."""

from __future__ import annotations

_MONTHS = "January February March April May June July August September October November December"
_WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_NUMBERS = "one two three four five six seven eight nine ten eleven twelve"

MONTHS = tuple(_MONTHS.split())
WEEKDAYS = tuple(_WEEKDAYS.split())
NUMBERS = tuple(_NUMBERS.split())
"""One to twelve."""
