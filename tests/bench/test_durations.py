"""Durations as a person reads them."""

from __future__ import annotations

import pytest

from bench.durations import clock_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (185, "3 min 05 s"), (3599.6, "1 h 00 min"),
     (3600 + 119, "1 h 02 min"), (3 * 3600 - 20, "3 h 00 min")],
)  # fmt: skip
def test_seconds_minutes_and_hours(seconds: float, text: str) -> None:
    assert clock_text(seconds) == text
