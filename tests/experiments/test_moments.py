"""Moments as people and logs write them are read in their zone, and what is no moment is refused."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from pydantic import TypeAdapter, ValidationError

from experiments.data.own.moments import OptionalMoment, epoch_of

NOON = 1_795_262_400.0  # 2026-11-21T12:00:00Z


@pytest.fixture(autouse=True)
def _oslo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Oslo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-21T12:00:00Z", NOON),
        ("2026-11-21T21:00:00+09:00", NOON),
        ("2026-11-21 13:00", NOON),
        ("2026-11-21", NOON - 13 * 3600),
        ("1795262400", NOON),
        ("1795262400000", NOON),
        ("12h", NOON - 12 * 3600),
        (" 1.5d ", NOON - 36 * 3600),
        ("30 min", NOON - 1800),
        ("today", NOON - 13 * 3600),
        ("yesterday", NOON - 37 * 3600),
    ],
)
def test_a_moment_is_read_in_its_zone_or_else_in_that_of_the_machine(text: str, moment: float) -> None:
    assert epoch_of(text, NOON) == moment


def test_a_day_back_over_the_change_of_clocks_is_the_calendars_day() -> None:
    after_the_change = epoch_of("2026-10-25T12:00:00")
    assert epoch_of("yesterday", after_the_change) == epoch_of("2026-10-24")
    assert epoch_of("today", after_the_change) - epoch_of("yesterday", after_the_change) == 24 * 3600
    assert epoch_of("2026-10-26") - epoch_of("2026-10-25") == 25 * 3600


@pytest.mark.parametrize("text", ["", "soon", "21/11/2026", "5 years"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        epoch_of(text)


def test_a_row_may_have_none_and_says_what_it_needs() -> None:
    rows = TypeAdapter(OptionalMoment)
    assert [rows.validate_python(raw) for raw in (None, "", 5, "2026-11-21T12:00:00Z")] == [None, None, 5.0, NOON]
    with pytest.raises(ValidationError, match="'soon' is no moment; give a date such as 2026-11-21"):
        rows.validate_python("soon")
