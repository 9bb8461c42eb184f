"""The cost model against plain loops over every case, and each of its edges by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from bench.judge.predict.cost_model import (
    Answer,
    Prices,
    Terms,
    _acceptance_for,
    all_accepted,
    best_length,
    break_even,
    conditional,
    log_interval,
    measured_depth,
    planted,
    round_costs,
    speedups,
)

COSTS = np.array([np.nan, 1.0, 1.1, 1.25, 1.3, 1.4, 1.7, 1.9, 2.0, 2.2])
TERMS = Terms(fires=0.6, kept=1.0, streams=2, look=0.03, guess=0.05, row=0.01, rest=0.02, switch=0.04, startup=0.1,
              baseline=1.05)  # fmt: skip


def one_round(length: int, terms: Terms) -> float:
    """Mean cost over every combination of answers that guess or do not."""
    total = 0.0
    for guessing in itertools.product((False, True), repeat=terms.streams):
        chance = math.prod(terms.fires if one else 1 - terms.fires for one in guessing)
        total += chance * COSTS[terms.streams + length * sum(guessing)] if chance else 0.0
    rows = terms.streams * terms.fires * length
    return float(
        total + terms.switch + terms.look + terms.guess * rows + terms.row * (terms.streams + rows) + terms.rest
    )


@pytest.mark.parametrize("fires", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("streams", [1, 2, 3])
def test_a_round_is_the_mean_over_who_guesses(fires: float, streams: int) -> None:
    terms = Terms(fires=fires, streams=streams, look=0.03, guess=0.05, row=0.01, rest=0.02, switch=0.04)
    found = round_costs(COSTS, terms, 2)
    assert found == pytest.approx([one_round(length, terms) for length in range(3)])
    chances = np.array([0.8, 0.5])
    terms = Terms(**{**terms.__dict__, "startup": 0.1, "baseline": 1.05, "kept": 0.5})
    tokens = [streams * (1 + 0.5 * fires * 0.8), streams * (1 + 0.5 * fires * (0.8 + 0.4))]
    wanted = [1.05 / (one_round(k + 1, terms) / tokens[k] + 0.1) for k in range(2)]
    assert speedups(COSTS, chances, terms) == pytest.approx(wanted)


def test_a_width_without_a_price_gives_none_unless_nobody_is_that_wide() -> None:
    assert np.isnan(round_costs(COSTS, Terms(), 12)).tolist() == [False] * 9 + [True] * 4
    assert np.isfinite(round_costs(COSTS, Terms(fires=0.0), 12)).all()
    assert round_costs(COSTS, Terms(streams=2), 4)[-1] != round_costs(COSTS, Terms(streams=2), 4)[-1], "width 10"
    many = round_costs(np.stack([COSTS, 2 * COSTS]), Terms(guess=np.array([0.1, 0.2])), 2)
    assert many == pytest.approx(np.array([[1.0, 1.2, 1.45], [2.0, 2.4, 2.9]]))


def test_the_ceiling_of_a_length() -> None:
    full = one_round(3, Terms(**{**TERMS.__dict__, "fires": 1.0}))
    assert all_accepted(COSTS, TERMS, 3) == pytest.approx(1.05 / (full / (1 + 3) / 2 + 0.1))
    free = TERMS.free()
    assert (free.guess, free.look, free.row) == (0.0, 0.0, 0.01)


def answered(length: int, answer: Answer, right: bool, terms: Terms) -> float:
    """An answer said round by round."""
    left, spent, before, age = answer.tokens, 0.0, None, 0
    always = Terms(**{**terms.__dict__, "fires": 1.0, "switch": 0.0})
    while left > 0:
        guesses = min(length, left - 1) if answer.narrows else length
        age = age + 1 if before == guesses and answer.settles else 0
        spent += one_round(guesses, always) + (answer.unsettled[age] if age < len(answer.unsettled) else 0.0)
        left -= (1 + guesses) if right else 1
        before = guesses
    return terms.baseline / (spent / answer.tokens / terms.streams + terms.startup)


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("narrows", [True, False])
@pytest.mark.parametrize("settles", [True, False])
@pytest.mark.parametrize("tokens", [1, 7, 8, 40])
def test_an_answer_whose_guesses_are_all_right_or_all_wrong(right, narrows, settles, tokens) -> None:
    answer = Answer(tokens, narrows, (0.3, 0.2), settles)
    assert planted(COSTS, TERMS, 3, answer, right) == pytest.approx(answered(3, answer, right, TERMS))


@pytest.mark.parametrize("length", [1, 2, 3])
def test_break_even_is_where_a_length_is_worth_one(length: int) -> None:
    terms = Terms(fires=0.7, guess=0.05, rest=0.02, startup=0.01, baseline=1.02)
    costs = np.array([np.nan, 1.0, *([9.0] * (length - 1)), 1.35, 9.0, 9.0])
    needed, best = break_even(costs, terms, 3)
    assert best == length
    chances = np.full(length, needed)
    assert float(speedups(costs, chances, terms)[length - 1]) == pytest.approx(1.0, abs=1e-5)
    assert break_even(np.array([np.nan, 1.0, 9.0, 9.0, 9.0]), terms, 3)[1] == 0
    assert math.isnan(break_even(costs, Terms(kept=0.0), 3)[0])
    assert break_even(np.array([np.nan, 1.0, 0.9]), Terms(), 1) == (pytest.approx(0.0, abs=1e-6), 1)


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("chance", [0.0, 0.2, 0.7, 0.999])
def test_an_acceptance_is_found_from_its_guesses(length: int, chance: float) -> None:
    guesses = sum(chance**k for k in range(1, length + 1))
    assert _acceptance_for(guesses, length) == pytest.approx(chance, abs=2e-7)
    assert math.isnan(_acceptance_for(length + 0.01, length)) and math.isnan(_acceptance_for(math.nan, length))


def test_prices_at_a_cliff() -> None:
    steep, even = Prices({1: 1.0, 2: 3.01}), Prices({1: 1.0, 2: 2.99})
    assert steep.cliffs == [2] and even.cliffs == []
    assert Prices({2: 1.0, 4: 3.01}).cliffs == [4] and Prices({2: 1.0, 4: 2.99}).cliffs == []
    found = Prices({1: 1.0, 3: 1.4, 4: 1.5}).price(2)
    assert (found.cost, found.low, found.high, found.how) == (pytest.approx(1.2), 1.0, 1.4, "interpolated")
    assert Prices({2: 1.0}).price(1).how == "unmeasured" == Prices({2: 1.0}).price(3).how
    exact = Prices({1: 1.0, 3: 1.4}).price(3)
    assert (exact.cost, exact.low, exact.high, exact.how) == (1.4, 1.4, 1.4, "measured")
    array = Prices({1: 1.0, 3: 1.4}).array()
    assert math.isnan(array[0]) and array[1:].tolist() == pytest.approx([1.0, 1.2, 1.4])
    drawn = Prices({1: 1.0, 3: 1.4}, 0.1).drawn(np.random.default_rng(1), 4000)
    assert (drawn[:, 1] == 1.0).all() and np.log(drawn[:, 3] / 1.4).std() == pytest.approx(0.1, rel=0.05)
    assert np.log(drawn[:, 2] / 1.2).std() == pytest.approx(0.1, rel=0.05)
    assert abs(np.corrcoef(drawn[:, 2], drawn[:, 3])[0, 1]) < 0.1


def test_acceptance_by_depth_and_its_tail() -> None:
    tested, accepted = np.array([40, 20, 19, 5]), np.array([30, 10, 12, 1])
    assert measured_depth(tested) == 2 and measured_depth(np.array([19, 40])) == 0
    assert measured_depth(np.array([20, 20])) == 2
    # The deepest tests that add up to 20 are those of depths 3 and 4: 13 of 24.
    assert conditional(tested, accepted, 5).tolist() == pytest.approx([0.75, 0.5, 13 / 24, 13 / 24, 13 / 24])
    assert conditional(tested, accepted, 1).tolist() == [0.75]
    few = conditional(np.array([3, 2]), np.array([2, 1]), 3)
    assert few.tolist() == pytest.approx([3 / 5] * 3)
    assert np.isnan(conditional(np.array([0, 0]), np.array([0, 0]), 2)).all()
    drawn = conditional(np.array([[10.0, 0.0], [40.0, 40.0]]), np.array([[5.0, 0.0], [30.0, 10.0]]), 2,
                        np.array([40, 40]))  # fmt: skip
    assert drawn[1].tolist() == [0.75, 0.25] and drawn[0, 0] == 0.5 and np.isnan(drawn[0, 1])


def test_the_best_length_and_where_it_lies() -> None:
    found = np.array([1.1, np.nan, 1.3, 1.2])
    plain = best_length(found)
    assert plain is not None and (plain.length, plain.speedup, plain.shortest, plain.longest) == (3, 1.3, 3, 3)
    assert math.isnan(plain.low) and best_length(np.array([np.nan, np.nan])) is None
    draw = np.random.default_rng(2)
    resampled = found * np.exp(0.1 * draw.standard_normal((500, 4)))
    best = best_length(found, resampled, 6)
    assert best is not None
    half = stats.t.ppf(0.975, 5) * np.log(resampled[:, 2]).std(ddof=1) * math.sqrt(6 / 5)
    assert (best.low, best.high) == pytest.approx((1.3 * math.exp(-half), 1.3 * math.exp(half)))
    assert (best.shortest, best.longest) == (1, 4), "argmax over resamples, the length without a price never"
    one = best_length(found, resampled, 1)
    assert one is not None and math.isnan(one.low) and one.shortest == one.longest == 3
    assert math.isnan(log_interval(1.0, np.array([1.0]), 5)[0]) and math.isnan(
        log_interval(1.0, np.array([1.0, 2.0]), 1)[0]
    )
    two = log_interval(2.0, np.array([1.0, np.nan, -1.0, 0.0, math.e]), 2)
    assert math.log(two[1] / 2) == pytest.approx(12.7062 * math.sqrt(0.5) * math.sqrt(2), rel=1e-4)
