"""The judge as a whole: scopes, denominators, windows, states of cells, and its own speed."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from bench.judge import judge
from bench.judge.columns import changed
from bench.judge.tables.contrast import SpeedUp
from bench.records.rows import RecordError
from tests.judge.judge_cells import Arm, Builder, Cell, default_config, guess_cell, profile_cell, wobble


def packed_cell(round_ms: float, solo_ms: float, base_ms: float, streams: int = 4) -> Cell:
    """Independent prompts in one batch; the baseline decodes them one after the other."""
    arms = {
        "baseline": Arm(round_ms=base_ms, streams=streams), "solo": Arm(round_ms=solo_ms),
        "treatment": Arm(round_ms=round_ms, streams=streams, together=True),
    }  # fmt: skip
    config = default_config(streams=streams, method={"name": "packed"})
    builder = Builder(config, arms, n_predict=65)
    for block in range(3):
        prompt = "+".join(f"p{block}{stream}" for stream in range(streams))
        order = ("baseline", "solo", "treatment", "treatment", "solo", "baseline")
        builder.block(block, order, prompt, noise=wobble)
    return builder.build()


def by_scope(cell: Cell) -> dict[str, dict]:
    return {row["scope"]: row for row in judge([cell]).speedup if row["prompt_class"] == "all"}


def test_c11_aggregate_and_per_answer_are_two_rows() -> None:
    # 4 streams x 64 tokens in 3.2 s, against 26 tok/s alone.
    rows = by_scope(packed_cell(round_ms=50.0, solo_ms=60.0, base_ms=1000 / 26))
    assert rows["aggregate"]["tok_s"] == pytest.approx(80, rel=0.03)
    assert rows["answer"]["tok_s"] == pytest.approx(20, rel=0.03)
    assert rows["answer"]["speedup"] == pytest.approx(0.77, rel=0.01)
    assert rows["aggregate"]["speedup"] == pytest.approx(3.08, rel=0.01)
    assert rows["answer"]["aggregate_tok_s"] == rows["aggregate"]["tok_s"]
    assert rows["answer"]["baseline_tok_s"] == rows["aggregate"]["baseline_tok_s"]


def test_c12_the_fair_denominator_is_the_headline_and_the_degraded_one_is_flagged() -> None:
    rows = by_scope(packed_cell(round_ms=4000 / 26, solo_ms=1000 / 8, base_ms=1000 / 20))
    assert rows["aggregate"]["speedup"] == pytest.approx(1.30, rel=0.01)
    assert rows["aggregate"]["solo_speedup"] == pytest.approx(3.25, rel=0.01)
    assert rows["aggregate"]["solo_tok_s"] == pytest.approx(8, rel=0.03)
    assert rows["aggregate"]["solo_flatters"] is True
    fair = by_scope(packed_cell(round_ms=50.0, solo_ms=50.0, base_ms=50.0))
    assert fair["aggregate"]["solo_flatters"] is False


def test_the_published_loop_is_refuted_by_its_own_ledger() -> None:
    # 4 emits a round, 3 of them again; a round costs 2.04 plain ones: 1.96 counted, 0.49 distinct.
    config = default_config(streams=4, method={"name": "stagger", "emission": "published", "stop": "rounds"})
    arms = {"baseline": Arm(), "treatment": Arm(round_ms=102.0, repeat=3, drafted=3, accepted=3)}
    builder = Builder(config, arms)
    for block in range(4):
        builder.block(block, ("baseline", "treatment", "treatment", "baseline"), f"p{block}", noise=wobble)
    findings = judge([builder.build()])
    row = findings.speedup[0]
    assert row["speedup"] == pytest.approx(1 / 2.04, rel=0.01)
    assert row["counted_speedup"] == pytest.approx(157 / 40 / 2.04, rel=0.01)
    assert (row["tokens_per_round"], row["counted_per_round"]) == pytest.approx((1.0, 157 / 40))
    assert row["direction"] == "slower"
    (track,) = findings.timeline
    assert track["counted"][-1] == 157 and track["distinct"][-1] == 40
    assert findings.acceptance[0]["rate"] == 1.0 and findings.acceptance[0]["by_construction"]


def test_start_up_is_inside_the_whole_window_and_outside_the_steady_one() -> None:
    slow_start = Arm(round_ms=50.0, per_round=2, drafted=2, accepted=1, startup=10)
    row = judge([guess_cell(slow_start, noise=lambda arm, block, order: 1.0)]).speedup[0]
    assert row["steady_speedup"] == pytest.approx(2.0)
    # 20 rounds and 10 start-up rounds against 40 plain ones.
    assert row["speedup"] == pytest.approx(40 / 30)
    assert (row["tokens_per_round"], row["steady_tokens_per_round"]) == pytest.approx((40 / 30, 2.0))


def test_tokens_of_start_up_rounds_leave_with_their_time() -> None:
    cell = guess_cell(noise=lambda arm, block, order: 1.0)
    first = (cell.rounds["round"] == 0) & cell.rounds["run"].isin(cell.runs[cell.runs["arm"] == "treatment"]["run"])
    cell.rounds.loc[first, "phase"] = "startup"
    row = judge([cell]).speedup[0]
    assert row["steady_tok_s"] == pytest.approx(38 / (19 * 0.0625))
    assert row["steady_tok_s"] == pytest.approx(row["tok_s"])


def test_rows_for_all_prompts_and_each_class() -> None:
    rows = {row["prompt_class"]: row for row in judge([guess_cell()]).speedup}
    assert set(rows) == {"all", "code", "prose"}
    assert (rows["all"]["n_prompts"], rows["code"]["n_prompts"]) == (4, 2)
    assert rows["all"]["speedup"] == pytest.approx(np.sqrt(rows["code"]["speedup"] * rows["prose"]["speedup"]))
    assert rows["all"]["speedup"] == pytest.approx(rows["all"]["tok_s"] / rows["all"]["baseline_tok_s"])
    assert rows["all"]["min_visible_effect"] > 1


def test_a_class_without_grades_has_no_row() -> None:
    cell = guess_cell()
    cell.facts["lossless"] = [row for row in cell.facts["lossless"] if row["prompt"] in ("p0", "p2")]
    assert {row["prompt_class"] for row in judge([cell]).speedup} == {"all", "code"}


def test_a_speedup_without_a_grade_cannot_be_built() -> None:
    row = judge([guess_cell()]).speedup[0]
    with pytest.raises(RecordError, match="without a lossless grade"):
        changed(row, lossless="")
    with pytest.raises(TypeError, match="lossless"):
        SpeedUp(**{name: row[name] for name in row.columns if name != "lossless"})


def test_every_cell_is_listed_with_its_state() -> None:
    failed = guess_cell(blocks=1, cell="dead")
    failed.status.update({"state": "failed", "reason": "killed by signal 9"})
    findings = judge([failed, guess_cell(cell="fine"), profile_cell({1: 50})])
    states = {row["cell"]: (row["state"], row["kind"], row["void"]) for row in findings.cells}
    assert states == {"dead": ("failed", "contrast", False), "fine": ("done", "contrast", False),
                      "profile00000": ("done", "profile", False)}  # fmt: skip
    assert next(row for row in findings.cells if row["cell"] == "dead")["reason"] == "killed by signal 9"
    assert {cell for row in findings.speedup for cell in row["cells"]} == {"fine"}


@pytest.mark.parametrize("arm", ["baseline", "treatment"])
def test_a_cell_without_an_arm_is_void_and_stops_nobody(arm: str) -> None:
    cell = guess_cell(cell="half")
    cell.runs.loc[cell.runs["arm"] == arm, "arm"] = "solo"
    findings = judge([cell, guess_cell(cell="fine")])
    row = next(row for row in findings.cells if row["cell"] == "half")
    assert row["void"] and f"no run of arm '{arm}'" in row["void_reason"]
    assert {cell for row in findings.speedup for cell in row["cells"]} == {"fine"}


def test_a_run_without_a_timed_token_is_void_with_the_reason() -> None:
    cell = guess_cell(blocks=1)
    short = type(cell)(**{**cell.__dict__, "ledger": cell.ledger[cell.ledger["position"] == 0]})
    assert "n_predict of 2 or more" in judge([short]).cells[0]["void_reason"]


@pytest.mark.parametrize(
    ("table", "reason"),
    [("runs", "rows of run 0 are stored, but the runs table has no such run"),
     ("rounds", "run 0 (baseline) has tokens, but no round that made them"),
     ("ledger", "run 0 (baseline) has 0 tokens after the first")],
)  # fmt: skip
def test_a_cell_that_lost_a_table_is_void_and_stops_nobody(table: str, reason: str) -> None:
    cell = guess_cell(cell="lost")
    findings = judge([replace(cell, **{table: getattr(cell, table).iloc[:0]}), guess_cell(cell="fine")])
    row = next(row for row in findings.cells if row["cell"] == "lost")
    assert row["void"] and reason in row["void_reason"]
    assert {cell for row in findings.speedup for cell in row["cells"]} == {"fine"}


def test_rows_of_a_run_that_is_not_there_void_the_cell() -> None:
    cell = guess_cell()
    stray = cell.ledger.copy()
    stray.loc[stray["run"] == 3, "run"] = 99
    assert "rows of run 99 are stored" in judge([replace(cell, ledger=stray)]).cells[0]["void_reason"]


def test_rows_carry_machine_build_and_cells() -> None:
    cell = guess_cell()
    cell.facts["memory"] = {"baseline": {"kv_bytes": 1, "state_bytes": 0}}
    profile = profile_cell({1: 50, 3: 60})
    profile.facts["peers"] = [{"tool": "llama-bench", "width": 1, "tok_s": 20.0, "ours_tok_s": 19.9, "pair": 0}]
    findings = judge([cell, profile])
    for name in ("speedup", "step_cost", "acceptance", "memory", "decomposition", "controls", "bandwidth", "peers",
                 "cells"):  # fmt: skip
        rows = getattr(findings, name)
        assert rows and all(row["machine"] == "box" and row["build"] == "b1" and row["cells"] for row in rows), name


def test_peers_are_medians_of_paired_runs() -> None:
    profile = profile_cell({1: 50})
    profile.facts["peers"] = [
        {"tool": "llama-bench", "width": 1, "tok_s": theirs, "ours_tok_s": ours, "pair": pair}
        for pair, (theirs, ours) in enumerate([(20.0, 19.8), (10.0, 9.9), (30.0, 31.0)])
    ]
    row = judge([profile]).peers[0]
    assert row["ratio"] == pytest.approx(0.99)
    assert (row["tok_s"], row["ours_tok_s"], row["pairs"]) == (20.0, 19.8, 3)
    assert row["ci_low"] < row["ratio"] < row["ci_high"]
    assert np.isnan(row["decode_ratio"]), "a record of an older version does not tell"
    for pair, rate in zip(profile.facts["peers"], (20.2, 9.8, 30.6), strict=True):
        pair["ours_decode_tok_s"] = rate
    assert judge([profile]).peers[0]["decode_ratio"] == pytest.approx(1.01)


def test_judging_does_not_change_the_records() -> None:
    cell = guess_cell()
    before = {name: getattr(cell, name).copy() for name in ("runs", "rounds", "ledger", "draws")}
    judge([cell])
    assert all(getattr(cell, name).equals(frame) for name, frame in before.items())


def test_fifty_cells_take_little_processor_time() -> None:
    cells = [guess_cell(blocks=8)] * 50
    judge(cells[:1])
    start = time.process_time()
    judge(cells)
    # 500 cells must not take more than a few seconds; room for a loaded machine.
    assert time.process_time() - start < 2.5
