"""Which rows a comparison has: real findings, beside the same with one row edited."""

from __future__ import annotations

import copy
import math

import pytest

from bench.judge.columns import changed
from bench.judge.compare.rows import by_chance, compare, compared, set_of, worse
from bench.judge.findings import Findings
from bench.stored import judge_stored
from tests.faults.stored import folder_of

CELLS = ("9528e9b90995", "41e5980671aa", "35b43824814e", "63212163b56e", "e45b4f9572a0")
FIGURES = {
    "speedup": ("speed-up", ("speedup", "ci_low", "ci_high", "noise_low", "noise_high"), 1 / 2),
    "trials": ("on trial / baseline", ("speedup", "ci_low", "ci_high", "noise_low", "noise_high"), 1 / 2),
    "acceptance": ("acceptance", ("rate", "ci_low", "ci_high"), 1 / 4),
    "step_cost": ("step cost", ("relative_cost", "ci_low", "ci_high"), 3.0),
}


@pytest.fixture(scope="module")
def found() -> Findings:
    return judge_stored([folder_of(cell) for cell in CELLS], 1)


def with_row(found: Findings, table: str, place: int, **values: object) -> Findings:
    made = copy.copy(found)
    rows = list(getattr(found, table))
    rows[place] = changed(rows[place], **values)
    setattr(made, table, rows)
    return made


def told(base: Findings, present: Findings):
    return compare(set_of(base, "base"), set_of(present, "present"))


def place_of(rows, **wanted: object) -> int:
    return next(place for place, row in enumerate(rows) if all(row[key] == value for key, value in wanted.items()))


@pytest.mark.parametrize("table", FIGURES)
def test_each_figure_gates_in_its_own_direction(found, table):
    name, columns, factor = FIGURES[table]
    rows = getattr(found, table)
    place = {"acceptance": lambda: place_of(rows, depth=0), "step_cost": lambda: place_of(rows, width=4)}.get(
        table, lambda: place_of(rows, prompt_class="all", scope="answer"))()  # fmt: skip
    bad = with_row(found, table, place, **{column: rows[place][column] * factor for column in columns})
    (one,) = worse(told(found, bad))
    assert (one.figure, one.cells) == (name, rows[place]["cells"]) and one.ratio == pytest.approx(factor)
    assert not worse(told(bad, found)) and [row.figure for row in told(bad, found) if row.outcome == "better"] == [name]


@pytest.mark.parametrize(("was", "became", "outcome"), [
    ("identical", "near_tie", "worse"), ("identical", "divergent", "worse"), ("near_tie", "divergent", "worse"),
    ("divergent", "identical", "better"), ("near_tie", "near_tie", "no difference"),
])  # fmt: skip
def test_a_grade_that_gets_worse_is_worse(found, was, became, outcome):
    place = place_of(found.speedup, prompt_class="all", scope="answer")
    rows = told(with_row(found, "speedup", place, lossless=was), with_row(found, "speedup", place, lossless=became))
    cell = found.speedup[place]["cells"]
    (one,) = (row for row in rows if row.figure == "output" and row.cells == cell)
    assert one.outcome == outcome and math.isnan(one.ratio) and (one.base_grade, one.grade) == (was, became)
    assert bool(worse(rows)) == (outcome == "worse")


def test_an_interval_that_just_holds_1_is_no_difference(found):
    place = place_of(found.speedup, prompt_class="all", scope="answer")
    row = found.speedup[place]
    half = max(math.log(row["noise_high"] / row["speedup"]), math.log(row["speedup"] / row["noise_low"])) * math.sqrt(2)

    def moved(shift: float) -> bool:
        factor = math.exp(-shift)
        columns = ("speedup", "ci_low", "ci_high", "noise_low", "noise_high")
        bad = with_row(found, "speedup", place, **{one: row[one] * factor for one in columns})
        return bool([one for one in worse(told(found, bad)) if one.figure == "speed-up"])

    assert not moved(half * 0.5) and moved(half * 1.05)


def test_the_interval_is_for_the_texts_that_both_ran(found):
    place = place_of(found.speedup, prompt_class="all", scope="answer", speaks_of="texts like these")
    row = found.speedup[place]
    wide = with_row(found, "speedup", place, ci_low=row["ci_low"] / 2, ci_high=row["ci_high"] * 2, freedom=77.0)
    (one,) = (other for other in told(wide, wide) if other.figure == "speed-up" and other.cells == row["cells"])
    assert (one.base_ci_low, one.base_ci_high) == (row["noise_low"], row["noise_high"])
    assert one.freedom == pytest.approx(2 * row["noise_freedom"])


def test_every_cell_is_in_one_pair_and_the_nearest_first(found):
    """The same cells under other ids are found by what they are about."""
    renamed = Findings(**found.tables())
    for name, rows in renamed.tables().items():
        setattr(renamed, name, [changed(row, cells=[f"other{cell}" for cell in row["cells"]],
                                        **({"cell": f"other{row['cell']}"} if "cell" in row.columns else {}))
                                for row in rows])  # fmt: skip
    rows = told(found, renamed)
    assert {(row.base_cell, row.cell) for row in rows} == {(cell, f"other{cell}") for cell in CELLS}
    assert {row.outcome for row in compared(rows)} == {"no difference"} and len(compared(rows)) == len(rows)
    twice = Findings(cells=[*found.cells, *renamed.cells])
    found_twice = told(found, twice)
    assert {row.cell for row in found_twice if row.base_cell and row.cell} == set(CELLS), "an id comes first"
    assert sum(row.outcome == "on one side only" and not row.figure for row in found_twice) == len(CELLS)


def test_of_ratios_that_have_an_interval_2_in_80_look_worse_by_chance(found):
    rows = told(found, found)
    ratios = [row for row in rows if row.ci_low < row.ci_high and not math.isnan(row.freedom)]
    assert by_chance(rows) == pytest.approx(len(ratios) / 40) and len(ratios) > 5
