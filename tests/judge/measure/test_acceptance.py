"""Acceptance: five definitions side by side, evidence counted once, and the collision probability."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bench.judge.measure.acceptance import Counters, acceptance_rows, certain, draws_disagree, logged_definition
from bench.judge.measure.runs import run_table
from bench.records.rows import Draw
from pti_loop.ledger import RecordError
from tests.judge.judge_cells import Arm, Builder, case_of, frame, guess_cell


def test_c22_every_definition_under_its_own_name() -> None:
    counts = Counters(rounds=10, drafted=30, verified=24, accepted=12, bonus=10)
    assert counts.rates() == pytest.approx(
        {"per_tested": 0.50, "per_drafted": 0.40, "per_round": 1.2, "per_emitted": 12 / 22, "smoothed": 13 / 31,
         "mean_length": 2.2}
    )  # fmt: skip
    assert counts.emitted == 22


def test_c22_a_log_that_no_definition_gives_is_inconsistent() -> None:
    counts = Counters(rounds=10, drafted=30, verified=24, accepted=12, bonus=10)
    assert logged_definition(counts, 0.50) == "per_tested"
    assert logged_definition(counts, 0.40) == "per_drafted"
    assert logged_definition(counts, 0.45) == "inconsistent"
    # .55 is accepted over emitted: a share of the output, and no acceptance rate of guesses.
    assert logged_definition(counts, 0.55) == "inconsistent"
    assert logged_definition(counts, round(13 / 31, 2)) == "inconsistent"


def test_c22_nothing_accepted_is_zero_and_not_a_quarter() -> None:
    counts = Counters(rounds=1, drafted=3, verified=1, accepted=0, bonus=1)
    assert counts.rates()["per_drafted"] == 0.0
    assert counts.rates()["smoothed"] == pytest.approx(0.25)


def test_impossible_counters_cannot_be_built() -> None:
    with pytest.raises(RecordError, match="accepted 5 <= verified 4"):
        Counters(rounds=1, drafted=4, verified=4, accepted=5, bonus=0)


def test_runs_that_repeat_each_other_are_evidence_once() -> None:
    cold = guess_cell(blocks=1)
    rows = acceptance_rows(case_of(cold))
    # 20 rounds of 2 tested guesses; the second run of the prompt draws the same tokens.
    assert (rows[0]["depth"], rows[0]["tested"], rows[0]["accepted"]) == (0, 40, 20)
    warm = guess_cell(blocks=1, temperature=0.7)
    assert acceptance_rows(case_of(warm))[0]["tested"] == 80


def test_rows_by_depth_with_intervals_over_texts() -> None:
    cell = guess_cell(blocks=3)
    rows = {row["depth"]: row for row in acceptance_rows(case_of(cell))}
    assert set(rows) == {0, 1, 2}
    assert (rows[1]["rate"], rows[2]["rate"]) == (1.0, 0.0)
    # All three texts are alike, so their guesses say as much as independent ones; three texts say it with Student's t.
    z, n = stats.t.ppf(0.975, 2), 120
    half = z / (1 + z * z / n) * np.sqrt(0.25 / n + z * z / (4 * n * n))
    assert (rows[0]["ci_low"], rows[0]["ci_high"]) == pytest.approx((0.5 - half, 0.5 + half))
    assert rows[0]["clusters"] == 3
    assert rows[0]["bonus"] == 60 and rows[0]["mean_length"] == pytest.approx(2.0)
    assert np.isnan(rows[0]["collision_mean"])


def test_accepted_minus_collision_is_paired_a_draw() -> None:
    rng = np.random.default_rng(4)

    def draw_like_the_model(builder: Builder) -> None:
        p = rng.uniform(0.2, 1.0, len(builder.draws))
        hits = rng.random(len(p)) < p
        builder.draws[:] = [Draw(old.run, old.round, old.depth, old.position, 7, 7 if hit else 8, float(chance))
                            for old, hit, chance in zip(builder.draws, hits, p, strict=True)]  # fmt: skip

    cell = guess_cell(Arm(per_round=2, drafted=2, accepted=1), temperature=0.6, change=draw_like_the_model)
    row = acceptance_rows(case_of(cell))[0]
    treated = cell.runs[cell.runs["arm"] == "treatment"]["run"]
    draws = cell.draws[cell.draws["run"].isin(treated)]
    paired = (draws["guess"] == draws["drawn"]).astype(float) - draws["collision"]
    oracle = stats.ttest_1samp(paired, 0).confidence_interval()
    assert row["collision_mean"] == pytest.approx(draws["collision"].mean())
    assert (row["difference_low"], row["difference_high"]) == pytest.approx((oracle.low, oracle.high))
    assert row["difference_low"] < 0 < row["difference_high"]


def test_draws_that_do_not_add_up_to_the_counters_are_told() -> None:
    cell = guess_cell()
    assert draws_disagree(run_table(cell)) is None
    lost = guess_cell(change=lambda builder: builder.draws.pop())
    assert "draws" in str(draws_disagree(run_table(lost)))


def test_a_method_that_does_not_guess_has_no_rows() -> None:
    cell = guess_cell(Arm())
    assert acceptance_rows(case_of(cell)) == []


@pytest.mark.parametrize(
    ("method", "temperature", "draws", "sure"),
    [("stagger", 0.0, "independent", True), ("stagger", 0.7, "coupled", True),
     ("stagger", 0.7, "independent", False), ("jacobi", 0.0, "independent", False)],
)  # fmt: skip
def test_what_is_true_by_construction(method: str, temperature: float, draws: str, sure: bool) -> None:
    own = {"draws": draws} if method == "stagger" else {}
    cell = guess_cell(blocks=1, temperature=temperature, method={"name": method, **own})
    assert certain(case_of(cell)) is sure
    assert acceptance_rows(case_of(cell))[0]["by_construction"] is sure


def test_no_draws_stored_still_gives_the_pooled_row() -> None:
    cell = guess_cell(blocks=1)
    bare = type(cell)(**{**cell.__dict__, "draws": frame("draws", [])})
    assert [row["depth"] for row in acceptance_rows(case_of(bare))] == [0]


def test_the_depth_can_be_asked_for_by_its_former_name() -> None:
    rows = acceptance_rows(case_of(guess_cell(blocks=1)))
    assert [row["position"] for row in rows] == [row.depth for row in rows] == [0, 1, 2]
    assert "position" in rows[0] and "position" not in [*rows[0]]
