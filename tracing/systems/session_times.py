"""When a session took place, from the text that a data set gives."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime

_WEEKDAY = re.compile(r"\s*\([^()]*\)")
_FORMS = (
    "%I:%M %p on %d %B, %Y",
    "%I %p on %d %B, %Y",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
    "%d %B %Y",
    "%d %B, %Y",
    "%B %d, %Y",
    "%B-%d-%Y",
)


def moment_of(time: str) -> datetime | None:
    """The time that a text gives, with a zone only if the text names one; None if its form is not known.

    Known are ISO 8601 and how LoCoMo, LongMemEval, BEAM and RealMem write times; a weekday in brackets is passed over.
    """
    text = _WEEKDAY.sub("", time).strip()
    with suppress(ValueError):
        return datetime.fromisoformat(text)
    for form in _FORMS:
        with suppress(ValueError):
            return datetime.strptime(text, form)
    return None
