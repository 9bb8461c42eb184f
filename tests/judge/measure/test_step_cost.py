"""The step-cost curve: warm-up, passes, cliffs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bench.errors import UserError
from bench.judge.measure.curve import curves
from bench.judge.measure.step_cost import expected_tokens, predicted_tok_s, step_cost_rows
from bench.records.rows import Step
from tests.judge.judge_cells import MS, case_of, frame, profile_cell


def steps(rows: list[tuple[int, int, float]], layout: str = "tokens") -> pd.DataFrame:
    """Rows of (repeat, width, milliseconds)."""
    return frame("steps", [Step(width, repeat, 0, layout, round(ms * MS), 16) for repeat, width, ms in rows])


def test_c17_the_warm_up_pass_of_every_width_is_left_out() -> None:
    rows = [(repeat, 4, ms) for repeat, ms in enumerate([900.0, 100.0, 100.0])]
    rows += [(repeat, 1, ms) for repeat, ms in enumerate([500.0, 50.0, 50.0])]
    curve = curves(steps(rows))[0]
    assert curve.step_ms == pytest.approx({1: 50.0, 4: 100.0})
    assert curve.relative[4].ratio == pytest.approx(2.0)
    assert (curve.relative[4].n_units, curve.warm_ups) == (2, 2)


def test_a_first_pass_like_the_others_is_kept() -> None:
    rows = [(repeat, width, ms) for width, times in ((1, [52.0, 50.0, 51.0]), (4, [104.0, 100.0, 102.0]))
            for repeat, ms in enumerate(times)]  # fmt: skip
    curve = curves(steps(rows))[0]
    assert (curve.relative[4].n_units, curve.warm_ups) == (3, 0)
    assert curve.step_ms[1] == pytest.approx(stats.gmean([52.0, 50.0, 51.0]))


def test_steps_of_a_pass_are_averaged_before_passes_are() -> None:
    rows = [(repeat, width, ms * (1 + 0.1 * step)) for repeat in range(3) for width, ms in ((1, 50.0), (4, 100.0))
            for step in range(4)]  # fmt: skip
    cost = curves(steps(rows).assign(n_past=[32 + index % 4 for index in range(24)]))[0].relative[4]
    assert (cost.n_units, cost.ratio) == (3, pytest.approx(2.0))


def test_relative_cost_is_the_geometric_mean_of_ratios_inside_a_pass() -> None:
    rng = np.random.default_rng(2)
    ones, fours = rng.uniform(40, 60, 7), rng.uniform(70, 90, 7)
    # The machine's pace changes from pass to pass; a ratio inside a pass does not notice.
    pace = np.r_[1.0, rng.uniform(0.5, 2.0, 6)]
    rows = [(index, width, ms) for index in range(7)
             for width, ms in ((1, ones[index] * pace[index]), (4, fours[index] * pace[index]))]  # fmt: skip
    cost = curves(steps(rows))[0].relative[4]
    logs = np.log(fours / ones)
    low, high = stats.t.interval(0.95, 6, logs.mean(), stats.sem(logs))
    assert cost.ratio == pytest.approx(stats.gmean(fours / ones), rel=1e-6)
    assert cost.interval() == pytest.approx((np.exp(low), np.exp(high)), rel=1e-6)


def test_c46_a_cliff_makes_one_more_guess_a_loss() -> None:
    curve = curves(profile_cell({1: 50, 8: 95, 9: 150, 16: 155}, pace=0.0).steps)[0]
    assert expected_tokens(0.9, 7) == pytest.approx(5.70, abs=0.005)
    assert expected_tokens(0.9, 8) == pytest.approx(6.13, abs=0.005)
    assert predicted_tok_s(curve, 0.9, 7) == pytest.approx(60.0, abs=0.1)
    assert predicted_tok_s(curve, 0.9, 8) == pytest.approx(40.8, abs=0.1)


def test_a_width_that_was_not_timed_has_no_cost() -> None:
    curve = curves(profile_cell({1: 50, 8: 95, 16: 155}).steps)[0]
    with pytest.raises(UserError, match=r"width 9 was not timed \(timed: 1, 8, 16\)"):
        predicted_tok_s(curve, 0.9, 8)


def test_c21_high_acceptance_can_be_a_loss() -> None:
    curve = curves(profile_cell({1: 33.3, 2: 58.0}, pace=0.0).steps)[0]
    assert predicted_tok_s(curve, 0.82, 1, draft_ms=6.1) == pytest.approx(28.4, abs=0.05)


@pytest.mark.parametrize(("p", "tokens"), [(0.75, 2.734), (0.60, 2.176), (0.40, 1.624), (0.0, 1.0), (1.0, 4.0)])
def test_expected_tokens_of_three_guesses(p: float, tokens: float) -> None:
    assert expected_tokens(p, 3) == pytest.approx(tokens, abs=0.0005)


def test_rows_say_what_full_acceptance_would_give() -> None:
    cell = profile_cell({1: 50, 4: 100})
    row = next(row for row in step_cost_rows(case_of(cell)) if row["width"] == 4)
    assert row["predicted_tok_s_all_accepted"] == pytest.approx(4 / row["step_ms"] * 1000)
    assert row["step_ms"] == pytest.approx(100, rel=0.01)
    assert row["relative_cost"] == pytest.approx(2.0)
    assert row["ci_low"] <= row["relative_cost"] <= row["ci_high"]


def test_layouts_are_curves_of_their_own() -> None:
    both = pd.concat([profile_cell({1: 50, 4: 100}).steps, profile_cell({1: 50, 4: 120}, layout="sequences").steps])
    found = {curve.layout: curve.relative[4].ratio for curve in curves(both)}
    assert found == pytest.approx({"tokens": 2.0, "sequences": 2.4})


def test_a_layout_without_width_1_borrows_the_other_ones() -> None:
    both = pd.concat([profile_cell({1: 50, 4: 100}).steps, profile_cell({4: 120}, layout="sequences").steps])
    found = {curve.layout: curve for curve in curves(both)}
    assert found["sequences"].relative[4].ratio == pytest.approx(2.4)
    assert curves(frame("steps", [])) == []


def test_only_settled_steps_are_a_cost_and_the_others_are_what_a_change_of_width_costs() -> None:
    """40 and 27.5 ms before the 16 of the steady state, as on a device that makes graphs."""
    rows, order = [], 0
    for repeat in range(3):
        for width, early, late in ((1, [12.0], 10.0), (4, [40.0, 16.0, 27.5], 16.0), (1, [11.0, 10.0], 10.0)):
            for place, ms in enumerate([*early, *[late] * 4]):
                rows.append(Step(width, repeat, order, "tokens", round(ms * MS), 16, int(place >= len(early))))
                order += 1
    cell = profile_cell({1: 50})
    cell = replace(cell, steps=frame("steps", rows))
    curve = curves(cell.steps)[0]
    assert curve.step_ms == pytest.approx({1: 10.0, 4: 16.0})
    assert curve.relative[4].ratio == pytest.approx(1.6)
    assert curve.change[4] == pytest.approx((3, 24.0 + 0.0 + 11.5))
    assert curve.change[1] == pytest.approx((1.5, 1.5)), "two series of width 1 a pass: 2 ms over one, 1 ms over two"
    row = next(row for row in step_cost_rows(case_of(cell)) if row["width"] == 4)
    assert (row["change_decodes"], row["change_ms"]) == pytest.approx((3, 35.5))


def test_a_profile_of_settled_steps_alone_has_no_cost_of_a_change() -> None:
    cell = profile_cell({1: 50, 4: 100})
    row = step_cost_rows(case_of(cell))[0]
    assert np.isnan([row["change_decodes"], row["change_ms"]]).all()
