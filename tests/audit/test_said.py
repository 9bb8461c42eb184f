"""The audit says of every text of a tool, as it is, beside options, and damaged, what is written down in said.csv."""

from __future__ import annotations

import csv
from functools import cache

import pytest

from tests.audit.said import KEPT, NAMES, cases, said


@cache
def kept() -> dict[tuple[str, str], dict[str, str]]:
    return {(row["text"], row["case"]): row for row in csv.DictReader(KEPT.read_text().splitlines())}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_said_of_a_text_is_what_was_written_down(name: str) -> None:
    made = [said(name, case) for case in cases(name)]
    assert made == [kept()[name, row["case"]] for row in made], "python -m tests.audit.said, and read the difference"


def test_nothing_else_is_written_down() -> None:
    assert {name for name, _ in kept()} == set(NAMES) and len(kept()) == 15 * len(NAMES)
