"""The cost model against numbers worked out by hand, and its intervals against a simulated truth."""

from __future__ import annotations

import numpy as np
import pytest

from bench.judge.measure.curve import curves
from bench.judge.predict.cost_model import (
    CLIFF,
    INTERPOLATED,
    MEASURED,
    UNMEASURED,
    Answer,
    Prices,
    Terms,
    accepted_guesses,
    all_accepted,
    best_length,
    break_even,
    conditional,
    log_interval,
    measured_depth,
    planted,
    resamples,
    round_costs,
    speedups,
)
from tests.judge.judge_cells import profile_cell

CLIFFS = Prices({width: ms / 50 for width, ms in {1: 50, 8: 95, 9: 150, 16: 155}.items()})
"""Case C46 of a device whose kernels change at width 9."""


def flat(chance: float, length: int) -> np.ndarray:
    return np.full(length, chance)


def test_high_acceptance_is_no_gain_where_verifying_and_drafting_cost_more() -> None:
    # C21: 82 % of one guess accepted; 33.3 ms a plain step, 58 ms to verify, 6.1 ms to draft: 28.4 against 30.0 tok/s.
    costs = Prices({1: 1.0, 2: 58 / 33.3}).array()
    found = float(speedups(costs, flat(0.82, 1), Terms(guess=6.1 / 33.3))[0])
    assert found * 1000 / 33.3 == pytest.approx(28.4, abs=0.05)
    assert found == pytest.approx(1.82 / 64.1 * 33.3)


def test_a_longer_draft_that_falls_off_a_cliff_is_worse() -> None:
    # C46 at an acceptance of 0.9: 5.70 tokens in 95 ms with 7 guesses, 6.13 in 150 ms with 8.
    found = speedups(CLIFFS.array(), flat(0.9, 15), Terms())
    assert found[6] * 1000 / 50 == pytest.approx(60.0, abs=0.1)
    assert found[7] * 1000 / 50 == pytest.approx(40.8, abs=0.1)
    best = best_length(found)
    assert best is not None and best.length == 7
    assert CLIFFS.cliffs == [9]


def test_prices_only_between_timed_neighbours_and_never_across_a_cliff() -> None:
    between = CLIFFS.price(12)
    assert (between.how, between.low, between.high) == (INTERPOLATED, 3.0, 3.1)
    assert between.cost == pytest.approx(3.0 + 0.1 * 3 / 7)
    assert CLIFFS.price(9).how == MEASURED
    assert CLIFFS.price(17).how == UNMEASURED
    holed = Prices({1: 1.0, 8: 1.9, 10: 3.1})
    assert holed.price(9).how == CLIFF
    assert np.isnan(holed.price(9).cost)
    assert np.isnan(speedups(holed.array(), flat(0.9, 9), Terms())[7])
    assert np.isnan(speedups(holed.array(), flat(0.9, 12), Terms())[9:]).all()


def test_a_curve_gives_its_ratios_and_a_spread_pooled_over_widths() -> None:
    # Width 2 takes 1.5 of width 1 in every pass; width 4 takes 2.0 +- 5 % from pass to pass.
    profile = profile_cell({1: 10, 2: 15, 4: 20}, passes=6, warm_up=1.0, pace=0.0)
    steps = profile.steps
    odd = (steps["width"] == 4) & (steps["repeat"] % 2 == 1)
    steps.loc[odd, "decode_ns"] = (steps.loc[odd, "decode_ns"] * 1.05).astype(int)
    prices = Prices.of(curves(steps)[0])
    assert prices.cost == pytest.approx({1: 1.0, 2: 1.5, 4: 2.0 * 1.05**0.5})
    own = float(np.log([1.0, 1.05] * 3).std(ddof=1) / np.sqrt(6))
    assert prices.log_se == pytest.approx(own / np.sqrt(2), rel=1e-3)


def test_acceptance_by_depth_and_the_tail_beyond_it() -> None:
    tested, accepted = np.array([100.0, 60.0, 30.0, 8.0]), np.array([60.0, 30.0, 24.0, 4.0])
    assert measured_depth(tested) == 3
    chances = conditional(tested, accepted, 5)
    # Depth 4 has 8 tests only: the tail is that of depths 3 and 4 together.
    assert chances == pytest.approx([0.6, 0.5, 0.8, 28 / 38, 28 / 38])
    assert accepted_guesses(chances)[:2] == pytest.approx([0.6, 0.9])
    assert np.isnan(conditional(np.zeros(1), np.zeros(1), 2)).all()
    shorter = conditional(tested, accepted, 2)
    assert shorter == pytest.approx([0.6, 0.5])


def test_rounds_without_a_guess_are_plain_steps() -> None:
    # A quarter of the rounds guess 3 tokens at a width of 2 steps; looking for a match takes 0.1 in every round.
    costs = Prices({1: 1.0, 4: 2.0}).array()
    terms = Terms(fires=0.25, look=0.1, row=0.01, rest=0.02, baseline=1.05)
    cost = 0.75 * 1.0 + 0.25 * 2.0 + 0.1 + 0.01 * (1 + 0.25 * 3) + 0.02
    found = speedups(costs, np.array([1.0, 0.5, 0.5]), terms)
    assert found[2] == pytest.approx(1.05 * (1 + 0.25 * 1.75) / cost)


def test_several_answers_guess_apart_and_share_a_decode() -> None:
    # Two answers, each guesses one token in half of the rounds: widths 2, 3, 4 with chances 1/4, 1/2, 1/4.
    costs = Prices({1: 1.0, 2: 1.2, 3: 1.6, 4: 1.8}).array()
    found = speedups(costs, flat(1.0, 1), Terms(fires=0.5, streams=2))
    assert found[0] == pytest.approx(2 * 1.5 / (0.25 * 1.2 + 0.5 * 1.6 + 0.25 * 1.8))
    assert np.isnan(round_costs(costs, Terms(fires=0.5, streams=2), 2)[2])


def test_a_loop_that_says_accepted_guesses_again_gains_nothing_by_them() -> None:
    costs = Prices({1: 1.0, 2: 1.25}).array()
    assert float(speedups(costs, flat(1.0, 1), Terms(kept=0.0))[0]) == pytest.approx(0.8)


def test_all_right_guesses_over_an_answer_with_an_end() -> None:
    costs = Prices({1: 1.0, 2: 1.2, 3: 1.4, 4: 1.6}).array()
    assert all_accepted(costs, Terms(), 3) == pytest.approx(4 / 1.6)
    # 9 tokens: 4, 4, 1; the last round is a plain step for a loop that narrows, else as wide as the others.
    narrow = Answer(9, narrows=True)
    assert planted(costs, Terms(), 3, narrow, right=True) == pytest.approx(9 / (1.6 + 1.6 + 1.0))
    assert planted(costs, Terms(), 3, Answer(9), right=True) == pytest.approx(9 / 4.8)
    # Six rounds of width 4, then 3, 2, 1: one token each.
    assert planted(costs, Terms(), 3, narrow, right=False) == pytest.approx(9 / (6 * 1.6 + 1.4 + 1.2 + 1.0))
    assert planted(costs, Terms(), 3, Answer(9), right=False) == pytest.approx(1 / 1.6)


def test_planted_guesses_pay_for_changes_of_width() -> None:
    costs = Prices({1: 1.0, 2: 1.2, 3: 1.4, 4: 1.6}).array()
    # Widths 4, 4, 1: the first decode after a change takes 0.5 more, the second 0.2.
    answer = Answer(9, narrows=True, unsettled=(0.5, 0.2))
    assert planted(costs, Terms(), 3, answer, right=True) == pytest.approx(9 / (4.2 + 0.5 + 0.2 + 0.5))
    # A loop that makes its guesses by decodes of another width never settles.
    rebuilt = Answer(8, unsettled=(0.5, 0.2), settles=False)
    assert planted(costs, Terms(), 3, rebuilt, right=True) == pytest.approx(8 / (2 * (1.6 + 0.5)))


@pytest.mark.parametrize(
    ("costs", "terms", "acceptance", "length"),
    [
        ({1: 1.0, 2: 1.5, 3: 2.5}, Terms(), 0.5, 1),  # 1 + a = 1.5
        ({1: 1.0, 2: 1.9, 3: 1.75}, Terms(), 0.5, 2),  # 1 + a + a^2 = 1.75
        ({1: 1.0, 2: 1.5}, Terms(guess=0.2), 0.7, 1),
        ({1: 1.0, 2: 1.5}, Terms(guess=0.6), float("nan"), 0),
        ({1: 1.0, 2: 1.4}, Terms(fires=0.5), 0.4, 1),  # 1 + a/2 = (1 + 1.4) / 2
        ({1: 1.0, 2: 1.5}, Terms(baseline=1.2), 0.25, 1),
    ],
)
def test_break_even(costs: dict[int, float], terms: Terms, acceptance: float, length: int) -> None:
    found, at = break_even(Prices(costs).array(), terms, max(costs) - 1)
    assert found == pytest.approx(acceptance, abs=1e-5, nan_ok=True)
    assert at == length


def test_break_even_and_speed_up_agree() -> None:
    costs, terms = Prices({1: 1.0, 2: 1.3, 3: 1.45, 4: 1.9}).array(), Terms(fires=0.7, guess=0.05, rest=0.03)
    acceptance, length = break_even(costs, terms, 3)
    assert speedups(costs, flat(acceptance, 3), terms)[length - 1] == pytest.approx(1.0, abs=1e-5)
    assert (speedups(costs, flat(acceptance - 0.01, 3), terms) < 1).all()


def test_no_price_no_best_length() -> None:
    assert best_length(speedups(Prices({1: 1.0}).array(), flat(0.9, 4), Terms())) is None


def test_the_best_length_of_one_unit_has_no_interval() -> None:
    best = best_length(np.array([1.1, 1.3]), np.array([[1.1, 1.3]] * 5), units=1)
    assert best is not None
    assert np.isnan([best.low, best.high]).all()


@pytest.mark.parametrize("units", [4, 12])
def test_the_interval_covers_the_truth_as_often_as_it_says(units: int) -> None:
    """Prompts differ in their acceptance; the truth is that of their population. 95 %, within what 200 trials allow."""
    rng = np.random.default_rng(7)
    costs, terms, trials, covered = Prices({1: 1.0, 2: 1.2, 3: 1.4, 4: 1.6}).array(), Terms(), 200, 0
    truth = float(speedups(costs, flat(0.6, 3), terms)[2])
    for trial in range(trials):
        tested, accepted = _draws(rng, units)
        weights = resamples(units, 200, trial)
        point = float(speedups(costs, conditional(tested.sum(0), accepted.sum(0), 3), terms)[2])
        chances = conditional(weights @ tested, weights @ accepted, 3, tested.sum(0))
        low, high = log_interval(point, speedups(costs, chances, terms)[:, 2], units)
        covered += low <= truth <= high
    assert 0.90 <= covered / trials <= 0.995


def _draws(rng: np.random.Generator, units: int) -> tuple[np.ndarray, np.ndarray]:
    """Tests and hits by prompt and depth: 60 rounds of 3 guesses at a chance around 0.6 that each prompt has itself."""
    tested, accepted = np.zeros((units, 3)), np.zeros((units, 3))
    for unit, chance in enumerate(np.clip(0.6 + 0.05 * rng.standard_normal(units), 0, 1)):
        alive = 60
        for depth in range(3):
            tested[unit, depth] = alive
            alive = accepted[unit, depth] = rng.binomial(alive, chance)
    return tested, accepted
