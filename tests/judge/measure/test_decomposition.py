"""speed-up = tokens per round / relative round cost, and which step-cost curve prices a cell."""

from __future__ import annotations

import pytest

from bench.judge import judge
from bench.judge.measure.case import Case, profile_of
from bench.judge.measure.curve import Curve
from tests.judge.judge_cells import Arm, Cell, guess_cell, profile_cell

GUESS = {"per_round": 2, "drafted": 2, "accepted": 1}


def row_of(cell: Cell) -> dict:
    return next(row for row in judge([cell]).speedup if row["prompt_class"] == "all")


def prediction_of(cell: Cell, *profiles: Cell) -> dict:
    rows = judge([cell, *profiles]).predictions
    return next(row for row in rows if (row["arm"], row["prompt_class"]) == ("treatment", "all"))


def control_of(cell: Cell) -> dict:
    return next(row for row in judge([cell]).controls if row["control"] == "decomposition")


def test_the_factors_multiply_to_the_speedup() -> None:
    row = row_of(guess_cell())
    assert row["tokens_per_round"] == pytest.approx(2.0)
    assert row["relative_round_cost"] == pytest.approx(1.25, rel=0.02)
    assert row["tokens_per_round"] / row["relative_round_cost"] / row["outside_rounds"] == pytest.approx(row["speedup"])


@pytest.mark.parametrize(("gap_ms", "severity"), [(0.0, "ok"), (40.0, "warning"), (200.0, "void")])
def test_time_that_no_round_accounts_for_does_not_close(gap_ms: float, severity: str) -> None:
    # A treatment run has 20 rounds of 62.5 ms: 1250 ms.
    control = control_of(guess_cell(Arm(round_ms=62.5, gap_ms=gap_ms, **GUESS)))
    assert control["severity"] == severity


def test_prediction_uses_the_price_of_the_width_and_keeps_the_rest_as_measured() -> None:
    # Rounds of 62.5 ms, 12.5 of them outside llama_decode; the profile says width 3 costs 40 ms, width 1 50 ms.
    cell = guess_cell(Arm(round_ms=62.5, host_ms=12.5, **GUESS), noise=lambda arm, block, order: 1.0)
    predicted = prediction_of(cell, profile_cell({1: 50, 3: 40}, warm_up=1.0))
    assert predicted["curve_only"] == pytest.approx(2 * 50 / (40 + 12.5), rel=0.005)
    assert predicted["predicted_from"] == "profile00000"
    row = row_of(cell)
    assert row["speedup"] == pytest.approx(2 * 50 / 62.5)
    assert row["host_share"] == pytest.approx(0.2)


def test_time_of_draws_is_told_beside_the_ratio_without_it() -> None:
    # Rounds of 50 and 62.5 ms, of which drawing takes 10 and 2.5: 2 x 40 / 60 without it, whatever the ratio is.
    cell = guess_cell(Arm(round_ms=62.5, **GUESS), noise=lambda arm, block, order: 1.0)
    baseline = cell.runs["run"][cell.runs["arm"] == "baseline"]
    slow = cell.rounds["run"].isin(baseline)
    for rows, sample_ms in ((slow, 10), (~slow, 2.5)):
        cell.rounds.loc[rows, "sample_ns"] = int(sample_ms * 1e6)
        cell.rounds.loc[rows, "decode_ns"] -= int(sample_ms * 1e6)
    row = row_of(cell)
    assert row["sample_share"] == pytest.approx(2.5 / 62.5)
    assert row["baseline_sample_share"] == pytest.approx(10 / 50)
    assert row["speedup"] == pytest.approx(2 * 50 / 62.5)
    assert row["unsampled_speedup"] == pytest.approx(2 * 40 / 60)


def test_a_rebuild_is_priced_by_its_sequential_decodes() -> None:
    cell = guess_cell(Arm(round_ms=200.0, redecoded=3, **GUESS), noise=lambda arm, block, order: 1.0)
    cell.rounds.loc[cell.rounds["redecoded"] > 0, ["draft_ns", "decode_ns"]] = [150_000_000, 50_000_000]
    predicted = prediction_of(cell, profile_cell({1: 50, 3: 50}, warm_up=1.0))
    assert predicted["curve_only"] == pytest.approx(2 * 50 / 200, rel=0.005)
    assert row_of(cell)["host_share"] == pytest.approx(0.0, abs=1e-9)


def test_a_cell_is_predicted_in_one_table_only() -> None:
    """Two figures under one name in two tables would be two answers to one question."""
    found = judge([guess_cell(blocks=1), profile_cell({1: 50, 3: 60})])
    assert found.predictions
    assert not [name for name in found.speedup[0] if "predict" in name and name != "n_predict"]


def priced_by(cell: Cell, *profiles: Cell) -> tuple[str, Curve] | None:
    return Case(cell, [profile_of(profile) for profile in profiles]).priced_by


@pytest.mark.parametrize("change", ["threads", "machine", "build", "weights"])
def test_only_a_curve_of_equal_conditions_prices_a_cell(change: str) -> None:
    cell, profile = guess_cell(blocks=1), profile_cell({1: 50, 3: 60})
    fit = priced_by(cell, profile)
    assert fit is not None and fit[1].layout == "tokens"
    if change == "threads":
        profile.config["engine"]["threads"] = 1
    elif change == "machine":
        profile = type(profile)(**{**profile.__dict__, "machine": "other"})
    elif change == "build":
        profile.env["engine"]["build"] = "b2"
    else:
        profile.facts["model"]["sha256"] = "cd"
    assert priced_by(cell, profile) is None


@pytest.mark.parametrize(
    ("method", "layout"),
    [({"name": "stagger"}, "sequences"), ({"name": "packed"}, "sequences"),
     ({"name": "packed", "drafter": "lookup"}, "tokens"), ({"name": "jacobi"}, "tokens")],
)  # fmt: skip
def test_an_arm_is_priced_by_the_layout_that_it_declares(method: dict, layout: str) -> None:
    cell = guess_cell(blocks=1, method=method)
    profiles = {name: profile_cell({1: 50, 3: 60}, layout=name, cell=name) for name in ("sequences", "tokens")}
    fit = priced_by(cell, *profiles.values())
    assert fit is not None and fit[1].layout == layout
    # The other layout stands in when it is all there is, and the row says so.
    (other,) = profiles.keys() - {layout}
    assert judge([cell, profiles[other]]).predictions[0]["predicted_layout"] == other


def test_parts_of_a_round_add_up_to_it() -> None:
    rows = judge([guess_cell(Arm(round_ms=62.5, host_ms=2.5, gap_ms=10.0, **GUESS))]).decomposition
    assert [row["arm"] for row in rows] == ["baseline", "again", "treatment", "sabotage", "oracle"]
    for row in rows:
        parts = sum(row[f"{name}_ms"] for name in ("draft", "decode", "sample", "rollback", "host"))
        assert parts == pytest.approx(row["total_ms"])
    treated = next(row for row in rows if row["arm"] == "treatment")
    assert treated["host_ms"] == pytest.approx(2.5, rel=0.02)
    assert treated["between_ms"] == pytest.approx(10 / 20, rel=0.02)
    assert treated["host_share"] == pytest.approx((20 * 2.5 + 10) / (20 * 62.5 + 10), rel=0.02)
