"""A/A of each set of contexts of a cell, and what it makes of the intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from bench.judge import judge
from bench.judge.measure.again import FEWEST
from bench.judge.measure.contexts import Widening, sets_of, with_contexts
from bench.judge.tables.cell import Contexts
from tests.calibration.simulation import Noise, contrast
from tests.judge.judge_cells import Cell, guess_cell


def in_sets(cell: Cell, sets: int) -> Cell:
    """The cell with its blocks spread over so many sets of contexts."""
    cell.runs["context"] = (cell.runs["block"] * sets // (cell.runs["block"].max() + 1)).astype("int64")
    return cell


def test_one_reading_a_set_of_contexts() -> None:
    """Against pandas: mean log rate of the second baseline minus that of the first, a set of contexts."""
    one = judge([guess_cell() for _ in range(FEWEST)]).contexts
    assert one[0]["readings"] == FEWEST
    cell = in_sets(guess_cell(), 2)
    again = {block for block, arm in zip(cell.runs["block"], cell.runs["arm"], strict=True) if arm == "again"}
    sets = {int(cell.runs.loc[cell.runs["block"] == block, "context"].iloc[0]) for block in again}
    (row,) = judge([in_sets(guess_cell(), 2) for _ in range(FEWEST)]).contexts
    assert row["readings"] == FEWEST * len(sets)
    assert row["again"] == pytest.approx(one[0]["again"], rel=0.05)


def test_sets_of_unequal_weight_are_worth_less() -> None:
    table, _ = contrast(np.random.default_rng(1), 1.0, Noise(), 6)
    everything = np.ones(len(table.run), dtype=bool)
    assert sets_of(table, everything) == 1
    vars(table)["context"] = np.where(table.block < 3, 0, 1)
    assert sets_of(table, everything) == pytest.approx(2)
    vars(table)["context"] = np.where(table.block < 5, 0, 1)
    shares = pd.Series([5, 1]) / 6
    assert sets_of(table, everything) == pytest.approx(1 / (shares**2).sum())


def test_contexts_made_anew_average_what_they_have_over_each_other() -> None:
    (row, *_) = judge([in_sets(guess_cell(), 2)]).speedup
    told = Contexts(machine=row["machine"], build=row["build"], cells=[], again=1.0, ci_low=1.0, ci_high=1.0,
                    spread=0.05, half_width=0.1, readings=9)  # fmt: skip
    (wide,) = with_contexts([row], Widening([told]))
    half = np.hypot(np.log(row["speedup"] / row["noise_low"]), 0.1 / np.sqrt(2))
    assert row["contexts"] == pytest.approx(2)
    assert wide["noise_low"] == pytest.approx(row["speedup"] * np.exp(-half))
