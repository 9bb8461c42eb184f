"""A step-cost curve beside the rounds of packed cells and llama-batched-bench: agreement, and every way to lack it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from bench.judge import judge
from bench.judge.findings import Findings
from bench.records.cells import StoredCell, read_cell, whole_cells
from tests.judge.judge_cells import MS, Arm, Builder, Cell, default_config, guess_cell, profile_cell, wobble

REFERENCE = Path(__file__).resolve().parents[3] / "results" / "reference"


def packed(cost: float, streams: int = 2, blocks: int = 3, cell: str = "packed000000", noise: Callable = wobble,
           method: dict[str, Any] | None = None, n_predict: int = 41, **config: Any) -> Cell:
    """Independent prompts in one batch, each decode of which costs `cost` plain ones of 20 ms."""
    arms = {
        "baseline": Arm(round_ms=20.0, streams=streams), "solo": Arm(round_ms=20.0, streams=streams),
        "again": Arm(round_ms=20.0, streams=streams),
        "treatment": Arm(round_ms=20.0 * cost, streams=streams, together=True),
    }  # fmt: skip
    builder = Builder(default_config(streams=streams, method=method or {"name": "packed"}, **config), arms,
                      n_predict)  # fmt: skip
    for block in range(blocks):
        prompt = "+".join(f"p{block}{stream}" for stream in range(streams))
        order = ("baseline", "again", "solo", "treatment", "treatment", "solo", "again", "baseline")
        builder.block(block, order, prompt, noise=noise)
    return builder.build(cell=cell)


def profile(costs: dict[int, float], pairs: list[dict[int, float]] | None = None, **over: Any) -> Cell:
    """A curve, and by pair what llama-batched-bench's widths cost over a plain step of 20 ms."""
    cell = profile_cell({1: 20.0} | {width: 20.0 * cost for width, cost in costs.items()}, layout="sequences", **over)
    cell.facts["peers"] = [
        {"tool": "llama-batched-bench", "pair": number, "width": width, "n_gen": 64, "tok_s": 50.0 * width / cost,
         "ours_tok_s": 50.0, "ratio": 1.0}
        for number, pair in enumerate(pairs or []) for width, cost in pair.items()
    ]  # fmt: skip
    return cell


def check(*cells: Any) -> Any:
    """The only check of the only curve."""
    (row,) = [row for row in judge(list(cells)).controls if row.control == "step_cost"]
    return row


def void(findings: Findings) -> dict[str, set[bool]]:
    tables = ("step_cost", "predictions", "speedup", "memory")
    return {name: {bool(row.get("void", False)) for row in getattr(findings, name)} for name in tables}


def test_a_curve_that_the_rounds_agree_with_is_sound() -> None:
    findings = judge([profile({2: 1.06, 4: 1.5}), packed(1.05), packed(1.52, streams=4, cell="packed000001")])
    (row,) = [row for row in findings.controls if row.control == "step_cost"]
    assert (row.severity, row.ok, row.cell) == ("ok", True, "profile00000")
    assert list(row.cells) == ["profile00000", "packed000000", "packed000001"]
    assert "width 4 costs 1.500 in the curve" in row.sentence and "the largest of 2 differences" in row.sentence
    assert void(findings) == {"step_cost": {False}, "predictions": {False}, "speedup": {False}, "memory": set()}


def test_a_curve_that_timed_the_capture_of_a_graph_is_void_with_all_that_rests_on_it() -> None:
    findings = judge([profile({2: 1.38}), packed(1.06)])
    (row,) = [row for row in findings.controls if row.control == "step_cost"]
    assert (row.severity, row.ok) == ("void", False)
    assert row.value == pytest.approx(1.38 / 1.06, rel=0.01)
    assert "more than 5 % apart, so nothing is priced by this curve; run `rm -r results/box/profile0" in row.sentence
    assert void(findings) == {"step_cost": {True}, "predictions": {True}, "speedup": {False}, "memory": set()}
    assert all(row.sentence in priced["void_reason"] for priced in (*findings.step_cost, *findings.predictions))
    assert {one["cell"]: one["void"] for one in findings.cells} == {"profile00000": True, "packed000000": False}


def test_what_is_void_already_keeps_its_own_reason() -> None:
    wrong = packed(1.06, cell="packed000001")
    wrong.runs.loc[0, "n_prompt_evaluated"] = 1
    findings = judge([profile({2: 1.38}), packed(1.06), wrong])
    (row,) = [row for row in findings.predictions if row.cells == ["packed000001"] and row.prompt_class == "all"]
    assert "prefill: cached" in row.void_reason and "step_cost: width 2" in row.void_reason


@pytest.mark.parametrize(("curve", "severity"), [(1.06, "ok"), (1.10, "ok"), (1.14, "void"), (0.99, "void")])
def test_five_percent_is_the_border_on_both_sides(curve: float, severity: str) -> None:
    assert check(profile({2: curve}), packed(1.06)).severity == severity


def test_llama_batched_bench_alone_can_void_a_curve() -> None:
    steady = [{1: 1.0, 2: 1.05, 4: 1.43}, {1: 1.01, 2: 1.05, 4: 1.44}, {1: 1.0, 2: 1.06, 4: 1.43}]
    assert check(profile({2: 1.04, 4: 1.45}, steady)).severity == "ok"
    row = check(profile({2: 1.04, 4: 1.81}, steady))
    assert row.severity == "void" and "width 4 costs 1.810 in the curve and 1.42" in row.sentence
    assert "in llama-batched-bench" in row.sentence


def test_a_pair_without_width_1_and_other_programs_say_nothing() -> None:
    cell = profile({2: 1.81}, [{2: 1.05}, {2: 1.05}])
    cell.facts["peers"] += [{"tool": "llama-bench", "pair": 0, "width": 1, "tok_s": 50.0, "ours_tok_s": 50.0}]
    row = check(cell)
    assert row.severity == "warning" and "nothing checks this curve" in row.sentence


def test_a_curve_that_nothing_checks_is_a_warning_and_counted_as_one() -> None:
    findings = judge([profile({2: 1.05, 3: 1.2}), packed(1.5, streams=4)])
    (row,) = [row for row in findings.controls if row.control == "step_cost"]
    assert row.severity == "warning" and "add method=packed to the sweep" in row.sentence
    assert math.isnan(row.value) and void(findings)["step_cost"] == {False}
    assert next(one for one in findings.cells if one["kind"] == "profile")["warnings"] == 1


def test_a_difference_within_the_noise_is_a_warning() -> None:
    def noisy(arm: str, block: int, order: int) -> float:
        return {0: 0.7, 1: 1.0, 2: 1.5}[block] if arm == "treatment" else 1.0

    row = check(profile({2: 1.20}), packed(1.06, noise=noisy))
    assert row.severity == "warning" and "too noisy to tell" in row.sentence
    assert row.ci_low < 1 < row.ci_high
    one = check(profile({2: 1.20}, [{1: 1.0, 2: 1.0}]))
    assert one.severity == "warning" and "of one run, so without an interval" in one.sentence


def test_a_layout_without_packed_rounds_is_not_compared() -> None:
    cell = profile_cell({1: 20.0, 2: 60.0}, layout="tokens")
    assert [row for row in judge([cell, packed(1.06)]).controls if row.control == "step_cost"] == []


@pytest.mark.parametrize(
    "other",
    [packed(1.06, engine={**default_config()["engine"], "threads": 4}),
     packed(1.06, method={"name": "packed", "drafter": "lookup"}),
     replace(packed(1.06), machine="elsewhere"),
     replace(packed(1.06), status={"state": "failed", "reason": "killed", "seconds": 1.0}),
     guess_cell()],
)  # fmt: skip
def test_other_conditions_guesses_and_failed_cells_check_nothing(other: Cell) -> None:
    rows = [row for row in judge([profile({2: 1.38}), other]).controls if row.control == "step_cost"]
    assert ["nothing checks this curve" in row.sentence for row in rows] == [True]


def test_a_void_packed_cell_checks_nothing() -> None:
    wrong = packed(1.06)
    wrong.runs.loc[0, "n_prompt_evaluated"] = 1
    assert "nothing checks this curve" in check(profile({2: 1.38}), wrong).sentence


def with_decodes(cell: Cell, times: Callable[[Any], Any]) -> Cell:
    """The cell with other decode times of its treatment, in ms by round; the rest of a round is sampling."""
    treated = cell.rounds["run"].isin(cell.runs[cell.runs["arm"] == "treatment"]["run"])
    numbers = cell.rounds.loc[treated, "round"]
    cell.rounds.loc[treated, "decode_ns"] = (times(numbers) * MS).astype(np.int64)
    parts = cell.rounds.loc[treated, ["draft_ns", "decode_ns", "rollback_ns"]].sum(axis=1)
    cell.rounds.loc[treated, "sample_ns"] = cell.rounds.loc[treated, "total_ns"] - parts
    return cell


def test_unsettled_rounds_and_stalls_are_outside_the_cost() -> None:
    cell = with_decodes(packed(4.0), lambda numbers: np.where((numbers < 2) | (numbers % 9 == 5), 70.0, 21.2))
    row = check(profile({2: 1.06}), cell)
    assert row.severity == "ok" and row.value == pytest.approx(1.0, abs=0.02)


def test_runs_of_few_settled_rounds_have_no_cost() -> None:
    assert "nothing checks this curve" in check(profile({2: 1.38}), packed(1.06, n_predict=6)).sentence
    assert check(profile({2: 1.38}), packed(1.06, n_predict=7)).severity == "void"


def test_ratio_and_interval_are_those_of_a_computation_of_their_own() -> None:
    # Rounds that grow, so that leaving out the unsettled ones moves the median.
    own, other = profile({2: 1.10}), with_decodes(packed(1.6), lambda numbers: 21.2 + 0.2 * numbers)
    row = check(own, other)
    times = own.steps[own.steps["repeat"] > 0].set_index(["repeat", "width"])["decode_ns"].unstack()
    curve = np.log(times[2] / times[1]).to_numpy()
    rounds = other.rounds[other.rounds["round"] % 40 >= 2].merge(other.runs, on="run")
    medians = rounds.groupby(["block", "arm", "order"])["decode_ns"].median()
    logs: list[float] = []
    for block in range(3):
        logs += list(np.log(medians[block, "treatment"].to_numpy() / medians[block, "baseline"].to_numpy()))
    assert len(logs) == 6
    assert row.value == pytest.approx(np.exp(curve.mean() - np.mean(logs)))
    halves = [stats.sem(values) * stats.t.ppf(0.975, len(values) - 1) for values in (curve, logs)]
    assert row.ci_high / row.value == pytest.approx(np.exp(np.hypot(*halves)), rel=1e-3)


def test_more_comparisons_ask_for_more_certainty() -> None:
    pair = [{1: 1.0, 2: 1.05, 4: 1.43}, {1: 1.0, 2: 1.02, 4: 1.40}, {1: 1.0, 2: 1.08, 4: 1.46}]
    alone = check(profile({2: 1.15}, pair))
    among = check(profile({2: 1.15, 4: 1.43}, pair))
    assert (alone.value, alone.severity) == (pytest.approx(among.value), "void")
    assert among.ci_high > alone.ci_high and among.severity == "warning"


@pytest.fixture(scope="module")
def real() -> tuple[StoredCell, list[StoredCell]]:
    """A profile of the reference on a GPU, and the packed cells of the same model there."""
    folders = [folder for folder in whole_cells(REFERENCE) if folder.parent.name == "h200"]
    cells = [cell for cell in map(read_cell, folders) if isinstance(cell, StoredCell)]
    own = next(cell for cell in cells if cell.config["kind"] == "profile")
    mine = [cell for cell in cells if cell.config["model"]["name"] == own.config["model"]["name"]]
    return own, [cell for cell in mine if (cell.config.get("method") or {}).get("name") == "packed"]


def test_real_records_agree_and_a_tenth_more_at_one_width_is_seen(real: tuple[StoredCell, list[StoredCell]]) -> None:
    own, others = real
    assert others and check(own, *others).severity == "ok"
    width = others[0].config["streams"]
    wide = (np.array(own.steps["width"]) == width) & (np.array(own.steps["layout"]) == "sequences")
    times = np.array(own.steps["decode_ns"]) * np.where(wide, 1.1, 1.0)
    row = check(replace(own, steps={**own.steps, "decode_ns": times}), *others)
    assert row.severity == "void" and f"width {width}" in row.sentence


def test_times_are_in_the_same_unit() -> None:
    # A guard for the stand-ins: the packed rounds above are made in nanoseconds, as steps are.
    assert packed(1.0).rounds["decode_ns"].median() == pytest.approx(20 * MS, rel=0.02)
