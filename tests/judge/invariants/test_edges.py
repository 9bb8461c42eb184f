"""Where each invariant about rows and times begins to speak: the last value that passes, the first that does not."""

from __future__ import annotations

import numpy as np
import pytest

from bench.judge.invariants.rows import rows_make_sense
from tests.judge.invariants.edited_cells import Edit, at, edited, row, setting, told
from tests.judge.judge_cells import MS, Arm, Cell, case_of, guess_cell, profile_cell


@pytest.mark.parametrize(
    ("table", "column", "wrong", "words"),
    [
        ("runs", "n_prompt", -1, "runs: n_prompt is -1 in a row, and none is below 0"),
        ("runs", "n_prompt_evaluated", -2, "runs: n_prompt_evaluated is -2"),
        ("runs", "prefill_ns", -1, "runs: prefill_ns"),
        ("runs", "n_predict", 0, "runs: n_predict is 0 in a row, and none is below 1"),
        ("runs", "decode_window_ns", 0, "runs: decode_window_ns is 0"),
        ("runs", "arm", "other", "runs: arm is 'other'"),
        ("rounds", "decode_ns", -1, "rounds: decode_ns is -1"),
        ("rounds", "sample_ns", -1, "rounds: sample_ns"),
        ("rounds", "rollback_ns", -1, "rounds: rollback_ns"),
        ("rounds", "draft_ns", -1, "rounds: draft_ns"),
        ("rounds", "total_ns", 0, "rounds: total_ns is 0 in a row, and none is below 1"),
        ("rounds", "width", 0, "rounds: width is 0"),
        ("rounds", "accepted", -1, "rounds: accepted is -1"),
        ("rounds", "redecoded", -1, "rounds: redecoded is -1"),
        ("rounds", "phase", "odd", "rounds: phase is 'odd'"),
        ("ledger", "stream", -1, "ledger: stream"),
        ("ledger", "position", -1, "ledger: position"),
        ("ledger", "token", -1, "ledger: token"),
        ("ledger", "source", "odd", "ledger: source is 'odd'"),
        ("draws", "round", -1, "draws: round"),
        ("draws", "position", -1, "draws: position"),
        ("draws", "guess", -1, "draws: guess"),
        ("draws", "drawn", -1, "draws: drawn"),
        ("draws", "depth", 0, "draws: depth"),
    ],
)
def test_no_row_is_below_its_floor_or_another_word(table, column, wrong, words):
    found = edited(setting(table, column, wrong))
    assert list(found) == ["rows"] and found["rows"].startswith(words)


@pytest.mark.parametrize(
    ("table", "column", "floor"), [("runs", "n_prompt", 0), ("rounds", "sample_ns", 0), ("rounds", "draft_ns", 0)]
)
def test_a_floor_is_let_pass(table, column, floor):
    assert "rows" not in edited(setting(table, column, floor))


def test_parts_of_a_round_within_its_total():
    assert edited(setting("rounds", "sample_ns", 1)) == {
        "rows": "round 0 of run 2: its parts last longer than the whole"
    }
    assert edited(setting("rounds", "rollback_ns", 1, place=4))["rows"].startswith("round 4 of run 2: its parts")
    split = edited(
        lambda cell: (setting("rounds", "decode_ns", lambda ns: ns - 1)(cell), setting("rounds", "sample_ns", 1)(cell))
    )
    assert split == {}


@pytest.mark.parametrize(
    ("accepted", "verified", "drafted"),
    [(2, 1, 2), (1, 3, 2), (3, 2, 2)],
)
def test_no_more_accepted_than_verified_than_drafted(accepted, verified, drafted):
    def edit(cell: Cell) -> None:
        for name, value in (("accepted", accepted), ("verified", verified), ("drafted", drafted)):
            setting("rounds", name, value, place=3)(cell)

    found = edited(edit)
    assert found == {
        "rows": f"round 3 of run 2: accepted {accepted} <= verified {verified} <= drafted {drafted} does not hold"
    }


def test_rounds_are_numbered_from_0_and_lie_together():
    assert (
        edited(setting("rounds", "round", 1))["rows"] == "round 1 of run 2 is out of turn: rounds are numbered from 0"
    )
    assert edited(setting("rounds", "round", 9, place=5))["rows"].startswith("round 9 of run 2 is out of turn")

    def apart(cell: Cell) -> None:
        first, other = row(cell, "rounds", "treatment", 0, 5), row(cell, "rounds", "treatment", 1, 5)
        cell.rounds.loc[[first, other], "run"] = cell.rounds.loc[[other, first], "run"].to_numpy()

    assert edited(apart) == {"rows": "rounds: those of a run do not lie together"}


def test_the_rest_of_what_a_row_may_say():
    assert edited(setting("runs", "end_ns", lambda ns: ns - 10**13)) == {"rows": "runs: a run ends before it starts"}
    prefill = "ledger: the prefill's token is the first of an answer and of no round, and a row says otherwise"
    for edit in (
        setting("ledger", "round", 0),
        setting("ledger", "position", 1),
        setting("ledger", "source", "verified"),
    ):
        assert edited(edit) == {"rows": prefill}
    assert edited(setting("ledger", "round", -1, place=3)) == {"rows": prefill}
    for wrong in (-0.01, 1.01):
        assert edited(setting("draws", "collision", wrong)) == {
            "rows": "draws: a collision probability is not between 0 and 1"
        }
    assert set(edited(setting("draws", "collision", 0.5))) == {"temperature"}
    profile = profile_cell({1: 50, 2: 55})
    profile.steps.loc[3, "settled"] = 2
    assert told(profile) == {"rows": "steps: settled is neither 0 nor 1 in a row"}
    for column, wrong in (("width", 0), ("decode_ns", 0), ("repeat", -1), ("n_past", -1), ("layout", "odd")):
        profile = profile_cell({1: 50, 2: 55})
        profile.steps.loc[3, column] = wrong
        assert list(told(profile)) == ["rows"]
    assert rows_make_sense(case_of(profile_cell({1: 50}))) is None


def test_a_window_is_the_time_from_start_to_end():
    for change in (1, -1):
        found = edited(setting("runs", "end_ns", lambda ns, change=change: ns + change))
        assert set(found) - {"emits"} == {"windows"}
    assert found["windows"].startswith("run 2 (treatment): its window is 12") and found["windows"].endswith(
        "1 runs in all"
    )


def rounds_scaled(factor: float) -> Edit:
    def edit(cell: Cell) -> None:
        mine = cell.rounds["run"] == at(cell, "treatment")
        for name in ("total_ns", "decode_ns"):
            cell.rounds.loc[mine, name] = (cell.rounds.loc[mine, name] * factor).astype("int64")

    return edit


@pytest.mark.parametrize(("factor", "wrong"), [(1.0, False), (0.951, False), (0.949, True), (1.0001, True)])
def test_rounds_fill_their_window(factor, wrong):
    found = edited(rounds_scaled(factor))
    assert ("rounds" in found) == wrong
    if wrong:
        assert found["rounds"].startswith("run 2 (treatment): its rounds last 1") and "1 runs in all" in found["rounds"]


def lost_between_rounds(cell: Cell, run: int, ns: int) -> None:
    """Shorten every round of a run by its part of `ns`; the window stays."""
    mine = cell.rounds["run"] == run
    for name in ("total_ns", "decode_ns"):
        cell.rounds.loc[mine, name] -= ns // int(mine.sum())


def test_a_hiccup_between_the_rounds_of_a_short_run_is_no_forgery_and_one_in_every_run_is() -> None:
    def short() -> Cell:
        return guess_cell(Arm(round_ms=6.25, per_round=2, drafted=2, accepted=1, verified=2))

    runs = short().runs
    mine = list(runs[runs["arm"] == "treatment"]["run"])
    window = int(runs.set_index("run").loc[mine[0], "decode_window_ns"])
    assert window < 150 * MS, "a hiccup is more than a twentieth of it"
    for ns, several, wrong in ((9 * MS, 1, False), (11 * MS, 1, True), (9 * MS, len(mine), True)):
        cell = short()
        for run in mine[:several]:
            lost_between_rounds(cell, run, ns)
        assert ("rounds" in told(cell)) == wrong, (ns, several)


def test_a_token_comes_out_in_its_round():
    for change, place in ((-1, 5), (1, 5), (-1, -1), (1, -1)):
        found = edited(setting("ledger", "t_ns", lambda ns, change=change: ns + change * 5, place=place))
        inside = change == -1 and place == -1  # the last round ends with the run, and began before
        assert ("emits" in found) == (change == 1)
        assert inside or change == 1 or "emits" not in found
    late = edited(setting("ledger", "t_ns", lambda ns: ns + MS, place=5))["emits"]
    assert late.startswith("run 2 (treatment) says position 5 of stream 0 at ") and late.endswith("1 rows in all")
    early = edited(setting("ledger", "t_ns", lambda ns: ns - 70 * MS, place=5))
    assert "emits" in early
    assert "emits" in edited(setting("ledger", "t_ns", lambda ns: ns + 1, place=0)), "the prefill is before the window"
    assert "emits" not in edited(setting("ledger", "t_ns", lambda ns: ns - 1, place=0))
    assert "emits" not in edited(setting("ledger", "t_ns", lambda ns: ns + 1, arm="baseline", place=0))
    stray = edited(setting("ledger", "round", 20, place=-1))
    assert stray["emits"] == "run 2 says a token in round 20, which it does not have"


def test_runs_follow_each_other_by_number_and_by_place():
    def moved(cell: Cell, run: int, by: int) -> None:
        for name in ("start_ns", "end_ns"):
            cell.runs.loc[cell.runs["run"] == run, name] += by
        cell.ledger.loc[cell.ledger["run"] == run, "t_ns"] += by

    def until(gap: int) -> Edit:
        def edit(cell: Cell) -> None:
            first, then = (cell.runs[cell.runs["run"] == run].iloc[0] for run in (2, 3))
            moved(cell, 3, int(first["end_ns"] - then["start_ns"]) + gap)

        return edit

    assert edited(until(0)) == {}
    found = edited(until(-1))
    assert found == {"sequence": "run 3 starts before run 2 has ended, which goes before it by its number"}

    def swapped(cell: Cell) -> None:
        cell.runs.loc[cell.runs["run"].isin((2, 7)), "order"] = [7, 2]

    assert "by its place" in edited(swapped)["sequence"]

    def last_block_first(cell: Cell) -> None:
        cell.runs["block"] = cell.runs["block"].max() - cell.runs["block"]

    assert "sequence" not in edited(last_block_first), "places are those inside a block"


@pytest.mark.parametrize(("share", "wrong"), [(0.51, False), (0.49, True)])
def test_no_round_decodes_in_less_than_half_of_the_quickest_plain_one(share, wrong):
    def edit(cell: Cell) -> None:
        plain = cell.rounds["run"].isin(cell.runs["run"][cell.runs["arm"] == "baseline"])
        setting("rounds", "decode_ns", int(share * cell.rounds["decode_ns"][plain].min()), place=4)(cell)

    found = edited(edit)
    assert list(found) == (["decodes"] if wrong else [])
    if wrong:
        quickest = 50 * min(1 - 0.01 + 0.0, 1.0)
        assert found["decodes"].startswith("round 4 of run 2 (treatment) decodes in 24.") and quickest
        assert "the baseline's quickest decode takes 49." in found["decodes"]


def test_a_prefill_that_is_longer_by_half_and_by_a_fifth_of_a_window():
    window = 40 * 50 * MS

    def prefills(base: float, mine: float) -> Edit:
        def edit(cell: Cell) -> None:
            for arm, value in (("baseline", base), ("treatment", mine)):
                cell.runs.loc[cell.runs["arm"] == arm, "prefill_ns"] = int(value * window)

        return edit

    assert edited(prefills(0.5, 0.74)) == {} == edited(prefills(0.1, 0.29))
    assert edited(prefills(0.5, 0.77))["prefills"].startswith(
        "the treatment's prefill takes 1540.0 ms and the baseline's 1000.0"
    )
    assert edited(prefills(0.1, 0.32)) != {}


@pytest.mark.parametrize(
    ("clock", "wrong"),
    [(2000.0 * np.exp(0.049), False), (2000.0 * np.exp(0.051), True), (2000.0 * np.exp(-0.051), True)],
)
def test_both_arms_ran_at_one_clock(clock, wrong):
    def edit(cell: Cell) -> None:
        cell.runs["clock_mhz"] = np.where(cell.runs["arm"] == "treatment", clock, 2000.0)

    found = edited(edit)
    assert found == ({"clocks": f"the treatment ran at {clock:.0f} MHz and the baseline at 2000 MHz"} if wrong else {})
