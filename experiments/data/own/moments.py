"""Moments as people and their logs write them."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator

FORMS = "a date such as 2026-11-21, 2026-11-21T22:57:00 or 2026-11-21T22:57:00+01:00, or epoch seconds"
_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*(m|min|h|d|w)")
_SECONDS = {"m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DAYS_BACK = {"today": 0, "yesterday": 1}
_TO_THE_MINUTE = "%Y-%m-%d %H:%M"
_EPOCH = 1e8
"""Smaller numbers are no moments of a log, but years or days (`20261121`)."""
_MILLISECONDS = 1e11
"""Larger numbers are no seconds: they would lie three thousand years ahead."""


def epoch_of(text: str, now: float | None = None) -> float:
    """The moment that a text names, in epoch seconds: as `FORMS`, so long ago (`12h`, `1d`), `yesterday` or `today`.

    A date without a zone is in the zone of this machine, and one without a time is the beginning of that day there.

    Raises:
        ValueError: it names none.

    Example:
        >>> epoch_of("2026-11-21T01:00:00+01:00"), epoch_of("30min", now=7200.0)
        (1795219200.0, 5400.0)
    """
    now, text = time.time() if now is None else now, text.strip()
    if (ago := _AGO.fullmatch(text)) is not None:
        return now - float(ago[1]) * _SECONDS[ago[2]]
    if text in _DAYS_BACK:
        day = datetime.fromtimestamp(now).date() - timedelta(days=_DAYS_BACK[text])
        return datetime(day.year, day.month, day.day).timestamp()
    try:
        number = float(text)
    except ValueError:
        return datetime.fromisoformat(text).timestamp()
    return number / 1000 if number > _MILLISECONDS else number


def time_in_log(raw: Any) -> str:
    """What a log gives as a time, as sessions have it: ISO 8601 to the minute, of an epoch in UTC; else as it is.

    Example:
        >>> time_in_log("2026-11-21T01:00:07.5+01:00"), time_in_log(1795219200000), time_in_log("last May")
        ('2026-11-21 01:00', '2026-11-21 00:00', 'last May')
    """
    text = str(raw).strip()
    with suppress(ValueError, OverflowError):
        if float(text) > _EPOCH:
            return datetime.fromtimestamp(epoch_of(text), UTC).strftime(_TO_THE_MINUTE)
    if not isinstance(raw, str):
        return ""
    with suppress(ValueError):
        return datetime.fromisoformat(text).strftime(_TO_THE_MINUTE) if ":" in text else text
    return text


def _as_moment(raw: Any) -> Any:
    if raw is None or raw == "":
        return None
    try:
        return epoch_of(str(raw))
    except ValueError:
        raise ValueError(f"{raw!r} is no moment; give {FORMS}") from None


OptionalMoment = Annotated[float | None, BeforeValidator(_as_moment)]
"""A moment of a row, in epoch seconds."""
