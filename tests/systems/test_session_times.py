"""A session's time is understood in the forms of the data sets that memtune reads."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tracing.systems.conversations import moment_of


@pytest.mark.parametrize(
    ("time", "moment"),
    [
        ("2024-03-04 10:00", datetime(2024, 3, 4, 10)),
        ("2024-03-04", datetime(2024, 3, 4)),
        ("2024-03-04T10:00:00Z", datetime(2024, 3, 4, 10, tzinfo=UTC)),
        ("1:56 pm on 8 May, 2023", datetime(2023, 5, 8, 13, 56)),
        ("9 am on 1 June, 2023", datetime(2023, 6, 1, 9)),
        ("2023/05/20 (Sat) 02:21", datetime(2023, 5, 20, 2, 21)),
        ("2025-12-15 (Monday)", datetime(2025, 12, 15)),
        ("March-15-2024", datetime(2024, 3, 15)),
        (" 8 May 2023 ", datetime(2023, 5, 8)),
        ("", None),
        ("(Monday)", None),
        ("never held", None),
    ],
)
def test_times_are_read_as_data_sets_write_them(time: str, moment: datetime | None) -> None:
    assert moment_of(time) == moment
