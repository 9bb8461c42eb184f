"""The shipped sheets come to what is written down in said.csv, on the rows of a report as they are and changed."""

from __future__ import annotations

import csv

import pytest

from tests.judge.claims.said import CHANGES, KEPT, said


@pytest.mark.parametrize("change", CHANGES)
def test_what_the_sheets_come_to_is_what_was_written_down(change: str) -> None:
    kept = [row for row in csv.DictReader(KEPT.read_text().splitlines()) if row["change"] == change]
    assert list(said(change)) == kept, "python -m tests.judge.claims.said, and read the difference"
