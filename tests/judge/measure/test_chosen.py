"""What there is to see of a cell's records: which runs are chosen, and that their columns are the record's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench.judge import judge
from bench.judge.measure.chosen import MOST_ROUNDS, traces_of
from bench.judge.traces import AGAIN, LOOSE, NEW
from bench.records.cells import load_cell
from tests.judge.judge_cells import MS, Arm, guess_cell, profile_cell

REFERENCE = Path(__file__).parents[3] / "results" / "reference"
REPEATING = Arm(round_ms=62.5, repeat=3, drafted=2, accepted=1)


def cell_rows(cell, run: int) -> list:
    """Rows of the ledger of one run, by pandas."""
    return list(pd.DataFrame(dict(cell.ledger)).query(f"run == {run}").itertuples())


def slowed(factors: dict[int, float]):
    """Blocks of the treatment that take longer, by their number."""
    return lambda arm, block, order: factors.get(block, 1.0) if arm == "treatment" else 1.0


def test_the_run_of_median_speed_is_shown_with_plain_decoding_of_its_block() -> None:
    cell = guess_cell(noise=slowed({0: 3.0, 1: 2.0, 2: 1.0, 3: 0.5}))
    shown = traces_of(cell)
    assert len(shown.pairs) == 1
    treated, plain = (shown.shown[place] for place in shown.pairs[0])
    runs = cell.runs.set_index("run")
    assert runs.arm[treated.run] == "treatment" and runs.arm[plain.run] == "baseline"
    windows = runs[runs.arm == "treatment"].decode_window_ns
    assert sorted(windows)[(len(windows) - 1) // 2] == runs.decode_window_ns[treated.run]
    assert runs.block[treated.run] == runs.block[plain.run]
    assert runs.seed[treated.run] == runs.seed[plain.run]


def test_it_is_the_run_whose_tokens_over_time_are_drawn() -> None:
    cell = guess_cell(REPEATING, method={"name": "stagger"}, noise=slowed({0: 1.3, 1: 1.1, 2: 1.2, 3: 0.9}))
    (track,) = judge([cell]).timeline
    shown = traces_of(cell)
    assert shown.shown[shown.pairs[0][0]].run == track["run"]


def test_an_answer_that_leaves_the_baseline_is_the_second_pair() -> None:
    cell = guess_cell()
    odd = next(row for row in cell.facts["lossless"] if row["arm"] == "treatment" and row["prompt"] == "p3")
    odd["first_difference"] = {"position": 3, "gap_arm": 1.0, "gap_baseline": 1.0}
    shown = traces_of(cell)
    assert len(shown.pairs) == 2
    run = cell.runs.set_index("run").loc[shown.shown[shown.pairs[1][0]].run]
    assert (run.prompt, run.seed, run.arm) == ("p3", odd["seed"], "treatment")


def test_columns_are_those_of_the_record_and_say_what_came_again() -> None:
    cell = load_cell(REFERENCE / "amd-epyc-2c" / "bd724658bd3b")
    shown = traces_of(cell)
    one = shown.shown[0]
    mine = cell.ledger["run"] == one.run
    assert one.emits["token"] == cell.ledger["token"][mine].tolist()
    confirmed = {(row.stream, row.position) for row in cell_rows(cell, one.run) if row.source != "unverified"}
    seen: set[tuple[int, int]] = set()
    for stream, position, kind in zip(*(one.emits[name] for name in ("stream", "position", "kind")), strict=True):
        place = (stream, position)
        assert kind == (AGAIN if place in seen else NEW if place in confirmed else LOOSE)
        seen.add(place)
    run = shown.runs["run"].index(one.run)
    said = [kind for kind, at in zip(one.emits["kind"], one.emits["round"], strict=True) if at >= 0]
    assert (shown.runs["counted"][run], shown.runs["distinct"][run]) == (len(said), said.count(NEW)) == (86, 23)
    unconfirmed = {(row.stream, row.position) for row in cell_rows(cell, one.run)} - confirmed
    assert one.emits["kind"].count(LOOSE) == len(unconfirmed)
    assert shown.tokens >= set(one.emits["token"])


def test_of_a_long_run_the_first_rounds_are_kept() -> None:
    cell = guess_cell(Arm(round_ms=1.0))
    cell.ledger["round"] = np.where(cell.ledger["round"] > 5, cell.ledger["round"] + MOST_ROUNDS, cell.ledger["round"])
    cell.rounds["round"] = np.where(cell.rounds["round"] > 5, cell.rounds["round"] + MOST_ROUNDS, cell.rounds["round"])
    one = traces_of(cell).shown[0]
    assert one.rounds["round"] == [*range(6)] and one.left_out == 34
    assert max(one.emits["round"]) == 5


def test_a_profile_has_no_run_and_still_a_panel() -> None:
    shown = traces_of(profile_cell({1: 50, 2: 60}))
    assert (shown.pairs, shown.shown, shown.all_runs, shown.files) == ((), (), 0, ("steps",))


@pytest.mark.parametrize("table", ["rounds", "ledger", "draws"])
def test_a_record_that_contradicts_itself_is_shown_as_far_as_it_goes(table: str) -> None:
    cell = guess_cell()
    object.__setattr__(cell, table, getattr(cell, table).iloc[:0])
    shown = traces_of(cell)
    assert shown.shown[0].run == cell.runs.run[cell.runs.arm == "treatment"].iloc[0] or table == "draws"
    assert getattr(shown.shown[0], {"ledger": "emits"}.get(table, table))["round"] == []
    assert sum(shown.runs["decode_window_ns"]) > MS


@pytest.mark.parametrize(("model", "weights"), [({"sha256": "ab" * 32}, "ab" * 32), ({"sha256": None}, ""), ({}, "")])
def test_traces_name_the_weights(model: dict[str, object], weights: str) -> None:
    cell = guess_cell()
    cell.facts["model"] = model
    assert traces_of(cell).weights == weights  # type: ignore[arg-type]
