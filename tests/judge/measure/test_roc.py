"""Telling two kinds of prompts apart: figures against scipy or a count of all pairs, and the interval's coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from bench.judge.measure.roc import Scores, area, area_interval, drop, errors, side_mean, threshold


def scores_of(on: list[list[float]], off: list[list[float]]) -> Scores:
    """One list of answers' scores a prompt."""
    rows = [(score, prompt, side) for prompt, (answers, side) in
            enumerate([(one, True) for one in on] + [(one, False) for one in off]) for score in answers]  # fmt: skip
    return Scores(*(np.array(column) for column in zip(*rows, strict=True)))


def drawn(seed: int, shift: float = 0.0, n_on: int = 6, n_off: int = 18, answers: int = 2) -> Scores:
    rng = np.random.default_rng(seed)
    sides = [rng.binomial(16, 0.6 + move, (n, answers)) / 16 for n, move in ((n_on, shift), (n_off, 0.0))]
    return scores_of(*(side.tolist() for side in sides))


@pytest.mark.parametrize("seed", range(5))
def test_the_area_is_the_mann_whitney_statistic(seed: int) -> None:
    scores = drawn(seed, 0.1)
    oracle = stats.mannwhitneyu(scores.score[scores.on], scores.score[~scores.on]).statistic
    assert area(scores).value == pytest.approx(oracle / (12 * 36))


def test_every_prompt_weighs_the_same_however_many_answers_it_has() -> None:
    scores = scores_of([[0.9], [0.1, 0.1, 0.1, 0.1]], [[0.5], [0.1]])
    pairs = [np.mean([[(a > b) + 0.5 * (a == b) for b in low] for a in high])
             for high in ([0.9], [0.1] * 4) for low in ([0.5], [0.1])]  # fmt: skip
    assert area(scores).value == pytest.approx(np.mean(pairs))


@pytest.mark.parametrize(("value", "n_on", "n_off"), [(0.5, 6, 18), (0.8, 6, 18), (0.93, 11, 24), (0.2, 5, 5)])
def test_the_interval_solves_newcombes_equation(value: float, n_on: int, n_off: int) -> None:
    def gap(true: float) -> float:
        shape = 1 + ((n_on + n_off) / 2 - 1) * ((1 - true) / (2 - true) + true / (1 + true))
        return (true - value) ** 2 - stats.norm.ppf(0.975) ** 2 * true * (1 - true) * shape / (n_on * n_off)

    found = area_interval(value, n_on, n_off)
    assert found == pytest.approx(
        (optimize.brentq(gap, 1e-12, value), optimize.brentq(gap, value, 1 - 1e-12)), abs=1e-6
    )


def test_the_interval_has_a_width_where_all_are_told_apart() -> None:
    low, high = area_interval(1.0, 6, 18)
    assert 0.6 < low < 0.95 and high == 1.0


def test_the_interval_holds_the_true_area() -> None:
    """Normal scores one standard deviation apart have the area Phi(1 / sqrt 2)."""
    rng, inside = np.random.default_rng(7), 0
    for _ in range(400):
        found = area(scores_of(rng.normal(1, 1, (6, 1)).tolist(), rng.normal(0, 1, (18, 1)).tolist()))
        inside += found.low <= stats.norm.cdf(1 / np.sqrt(2)) <= found.high
    assert 0.92 <= inside / 400 <= 0.99


def test_means_and_their_difference_are_student_s_and_welch_s() -> None:
    scores = drawn(3, 0.2)
    sides = [scores.score[scores.on == on].reshape(-1, 2).mean(axis=1) for on in (True, False)]
    for side, on in zip(sides, (True, False), strict=True):
        found, oracle = side_mean(scores, on), stats.ttest_1samp(side, 0).confidence_interval()
        assert (found.value, found.low, found.high) == pytest.approx((side.mean(), oracle.low, oracle.high))
    found, oracle = drop(scores), stats.ttest_ind(*sides, equal_var=False).confidence_interval()
    assert (found.low, found.high) == pytest.approx((oracle.low, oracle.high))


@pytest.mark.parametrize("seed", range(3))
def test_errors_are_those_of_a_threshold_made_without_the_prompt(seed: int) -> None:
    scores = drawn(seed, 0.15)
    wrong: dict[bool, list[float]] = {True: [], False: []}
    for prompt in np.unique(scores.prompt):
        rest = scores.prompt != prompt
        cut = threshold(Scores(scores.score[rest], scores.prompt[rest], scores.on[rest]))
        on = bool(scores.on[~rest][0])
        wrong[on].append(float(np.mean((scores.score[~rest] < cut) == on)))
    for share, shares in zip(errors(scores), (wrong[True], wrong[False]), strict=True):
        assert share.value == pytest.approx(np.mean(shares))
        assert share.low <= share.value <= share.high


def test_wilsons_interval_of_errors_counts_prompts_and_not_answers() -> None:
    one, many = (errors(drawn(1, 0.3, answers=1))[1], errors(drawn(1, 0.3, answers=8))[1])
    oracle = stats.binomtest(round(one.value * 18), 18).proportion_ci(0.95, method="wilson")
    assert (one.low, one.high) == pytest.approx((oracle.low, oracle.high))
    assert many.high - many.low > 0.1


def test_an_answer_at_the_threshold_is_no_alarm() -> None:
    flat = scores_of([[0.5], [0.5]], [[0.5], [0.5]])
    false_alarm, miss = errors(flat)
    assert (false_alarm.value, miss.value) == (0.0, 1.0)
    assert area(flat).value == 0.5
