"""The judge says of stored cells in which one thing is changed what is written down in said.csv."""

from __future__ import annotations

import csv
from functools import cache

import pytest

from tests.judge.said import CELLS, KEPT, changes, said, together


@cache
def kept() -> dict[tuple[str, str], dict[str, str]]:
    return {(row["cell"], row["place"]): row for row in csv.DictReader(KEPT.read_text().splitlines())}


PLACES = [(name, place) for name, place in kept() if name != "all"]


@pytest.mark.parametrize("name", CELLS)
def test_the_places_are_those_that_were_written_down(name: str) -> None:
    assert [(name, place) for place, _ in changes(name)] == [one for one in kept() if one[0] == name]


@cache
def made_of(name: str) -> dict[str, list]:
    return dict(changes(name))


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_what_is_said_of_a_changed_cell_is_what_was_written_down(name: str, place: str) -> None:
    assert said(name, place, made_of(name)[place]) == kept()[name, place], "python -m tests.judge.said, and read it"


@pytest.mark.parametrize("without", ["", *CELLS])
def test_what_is_said_of_several_cells_is_what_was_written_down(without: str) -> None:
    assert together(without) == kept()["all", f"without {without}"], "python -m tests.judge.said, and read it"
