"""The estimator and its intervals, against scipy, brute force and simulated contrasts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from bench.judge.measure.intervals import (
    Estimate,
    clustered_share,
    detectable_shift,
    direction,
    mean_estimate,
    mean_interval,
    middle_of,
    skewness,
    wilson,
)
from bench.judge.measure.layout import design


def layout(blocks: Sequence[tuple[str, str]], **options: object):
    """Design of treatment against baseline for blocks of (prompt, order of arms); 'A' baseline, 'B' treatment."""
    names = {"A": "baseline", "B": "treatment", "C": "again"}
    rows = [(names[arm], number, prompt, place) for number, (prompt, order) in enumerate(blocks)
            for place, arm in enumerate(order)]  # fmt: skip
    arms, numbers, prompts, places = (np.array(column) for column in zip(*rows, strict=True))
    return design(arms, numbers, prompts, places, "treatment", "baseline", **options), arms  # type: ignore[arg-type]


def test_c13_the_estimator_is_the_geometric_mean_of_per_prompt_mean_log_ratios() -> None:
    base = np.array([[30, 30, 22], [30, 30, 30], [22, 30, 30]], dtype=float)
    spec = np.array([[60, 62, 35], [42, 45, 45], [55, 55, 34]], dtype=float)
    medians = np.median(spec, axis=1) / np.median(base, axis=1)
    assert spec.mean() / base.mean() == pytest.approx(433 / 254)
    assert np.median(spec) / np.median(base) == pytest.approx(1.50)
    assert stats.gmean(medians) == pytest.approx(1.77, abs=0.005)
    plan, arms = layout([(f"p{row}", "ABABAB") for row in range(3)])
    values = np.empty(18)
    values[arms == "baseline"], values[arms == "treatment"] = base.ravel(), spec.ravel()
    found = plan.contrast(np.log(values))
    assert found.ratio == pytest.approx(stats.gmean(stats.gmean(spec, axis=1) / stats.gmean(base, axis=1)))
    assert found.ratio == pytest.approx(1.682, abs=0.001)
    assert (found.units, found.n_units) == ("prompts", 3)
    # None of the three: means follow the fast runs, medians drop the slow ones; every run counts here.
    assert not any(found.ratio == pytest.approx(other, abs=0.02) for other in (1.705, 1.50, 1.77))


def test_c14_noise_is_inconclusive() -> None:
    plan, arms = layout([("p", "ABABAB")])
    values = np.empty(6)
    values[arms == "baseline"], values[arms == "treatment"] = [20.0, 20.4, 19.7], [20.5, 19.9, 20.6]
    assert direction(plan.contrast(np.log(values))) == "inconclusive"


def test_c15_drift_cancels_in_a_palindrome_and_not_in_a_row() -> None:
    rates = 100 * 0.98 ** np.arange(4)
    plan, _ = layout([("p", "ABBA")])
    assert plan.contrast(np.log(rates)).ratio == pytest.approx(1.0, abs=1e-12)
    naive, _ = layout([("p", "AABB")])
    assert naive.contrast(np.log(rates)).ratio == pytest.approx(0.96, abs=0.001)


def test_prompts_weigh_the_same_however_many_blocks_they_have() -> None:
    plan, arms = layout([("p", "ABBA"), ("p", "ABBA"), ("p", "ABBA"), ("q", "BAAB")])
    rates = np.where(arms == "treatment", np.r_[np.full(12, 2.0), np.full(4, 8.0)], 1.0)
    assert plan.contrast(np.log(rates)).ratio == pytest.approx(4.0)
    assert plan.levels(np.log(rates)) == pytest.approx((4.0, 1.0))


@pytest.mark.parametrize(
    ("blocks", "pairs", "units", "count"),
    [([("p", "ABBA"), ("q", "ABBA")], False, "prompts", 2), ([("p", "ABBA"), ("p", "BAAB")], False, "blocks", 2),
     ([("p", "ABBA")], False, "replicate pairs", 2), ([("p", "ABBA"), ("q", "ABBA")], True, "replicate pairs", 4)],
)  # fmt: skip
def test_units_of_the_interval(blocks: list, pairs: bool, units: str, count: int) -> None:
    plan, arms = layout(blocks, pairs=pairs)
    found = plan.contrast(np.zeros(len(arms)))
    assert (found.units, found.n_units) == (units, count)


def test_no_shared_block_means_no_design() -> None:
    assert layout([("p", "AA"), ("q", "BB")])[0] is None


def test_a_nan_of_another_arm_does_not_spread() -> None:
    plan, arms = layout([("p", "ACBBCA"), ("q", "ACBBCA")])
    values = np.where(arms == "again", np.nan, 1.0)
    assert plan.contrast(values).ratio == pytest.approx(1.0)


def test_interval_is_students_on_the_log_scale() -> None:
    logs = np.random.default_rng(1).normal(0.3, 0.1, 7)
    low, high = stats.t.interval(0.95, 6, logs.mean(), stats.sem(logs))
    assert mean_estimate(logs, "prompts").interval() == pytest.approx((np.exp(low), np.exp(high)))
    test = stats.ttest_1samp(logs, np.log(1.2))
    assert mean_estimate(logs, "prompts").excludes(1.2) == (test.pvalue < 0.05)


def test_one_unit_has_no_interval() -> None:
    alone = mean_estimate(np.array([0.5]), "blocks")
    assert alone.interval() == (0.0, float("inf"))
    assert not alone.excludes(1.0)
    assert alone.min_visible_effect == float("inf")
    assert direction(alone) == "inconclusive"


@pytest.mark.parametrize(
    ("low", "high", "word"), [(0.85, 0.89, "slower"), (1.1, 1.3, "faster"), (0.9, 1.1, "inconclusive")]
)
def test_direction_follows_the_interval(low: float, high: float, word: str) -> None:
    middle = (np.log(low) + np.log(high)) / 2
    half = (np.log(high) - np.log(low)) / 2
    assert direction(Estimate(middle, half / stats.t.ppf(0.975, 5), 6, "prompts")) == word


@pytest.mark.parametrize("df", [1, 2, 3, 5, 11, 23])
def test_smallest_visible_effect_is_seen_in_80_percent(df: int) -> None:
    rng = np.random.default_rng(df)
    shift = detectable_shift(df)
    # Brute force: the t statistic of a sample whose mean is `shift` standard errors away from 0.
    t = (rng.standard_normal(200_000) + shift) / np.sqrt(rng.chisquare(df, 200_000) / df)
    assert np.mean(np.abs(t) > stats.t.ppf(0.975, df)) == pytest.approx(0.80, abs=0.005)
    if df >= 5:
        assert stats.nct.sf(stats.t.ppf(0.975, df), df, shift) == pytest.approx(0.80, abs=0.001)


def test_min_visible_effect_is_a_ratio() -> None:
    found = Estimate(0.0, 0.01, 6, "prompts")
    upper = np.sqrt(5 / stats.chi2.ppf(0.2, 5))
    assert found.min_visible_effect == pytest.approx(np.exp(0.01 * detectable_shift(5) * upper))


def test_shares_of_texts_that_differ_hold_the_truth_and_independent_ones_are_no_narrower_than_wilson() -> None:
    rng, held = np.random.default_rng(3), 0
    for _ in range(400):
        chances = rng.normal(0.6, 0.1, 6)
        hits = rng.binomial(100, chances).astype(float)
        low, high = clustered_share(hits, np.full(6, 100.0))
        held += low <= 0.6 <= high
        single = wilson(float(hits.sum()), 600)
        assert low <= single[0] and single[1] <= high
    assert 0.92 <= held / 400 <= 0.99


@pytest.mark.parametrize(("hits", "sizes"), [((58, 60, 31, 60), (60, 60, 40, 60)), ((2, 9, 4), (40, 50, 8)),
                                             ((60, 60, 60), (60, 60, 60)), ((3, 70), (6, 140)), ((0, 0), (5, 9))])
def test_a_share_over_groups_by_hand(hits: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    """The same written out over single trials: the sandwich of a regression on a constant, as CR2 corrects it."""
    y = np.concatenate([np.repeat([1.0, 0.0], [hit, size - hit]) for hit, size in zip(hits, sizes, strict=True)])
    group = np.repeat(np.arange(len(sizes)), sizes)
    share, count = y.mean(), len(y)
    sandwich = 0.0
    for one in range(len(sizes)):
        mine = group == one
        size = int(mine.sum())
        values, vectors = np.linalg.eigh(np.eye(size) - np.full((size, size), 1 / count))
        root = vectors @ np.diag(1 / np.sqrt(values)) @ vectors.T
        sandwich += float(np.ones(size) @ root @ (y[mine] - share)) ** 2 / count**2
    simple = share * (1 - share) / count
    trials = count / max(sandwich / simple, 1) if simple else count
    t = stats.t.ppf(0.975, max(1 / sum((size / count) ** 2 for size in sizes) - 1, 1))
    ends = [(share + t * t / 2 / trials + sign * t * np.sqrt(share * (1 - share) / trials + (t / 2 / trials) ** 2))
            / (1 + t * t / trials) for sign in (-1, 1)]  # fmt: skip
    unseen = 1.959963985 * abs(share - 0.5) / 2 / len(sizes)
    inner = int(share < 0.5)
    ends[inner] = share + (1 if inner else -1) * np.hypot(ends[inner] - share, unseen)
    found = clustered_share(np.array(hits, dtype=float), np.array(sizes, dtype=float))
    assert found == pytest.approx(tuple(ends), abs=1e-9)
    assert 0 <= found[0] <= share <= found[1] <= 1


def test_groups_without_trials_are_none() -> None:
    full = clustered_share(np.array([8.0, 0.0, 3.0]), np.array([10.0, 0.0, 9.0]))
    assert full == clustered_share(np.array([8.0, 3.0]), np.array([10.0, 9.0]))
    assert clustered_share(np.array([8.0, 0.0]), np.array([10.0, 0.0])) == wilson(8, 10)
    assert np.isnan(clustered_share(np.zeros(2), np.zeros(2))).all()


def test_an_interval_of_skewed_units_reaches_further_to_the_long_side() -> None:
    plain = Estimate(0.0, 0.1, 30, "prompts")
    skewed = Estimate(0.0, 0.1, 30, "prompts", skew=1.5)
    assert skewed.interval()[1] > plain.interval()[1] * 1.02
    assert skewed.interval()[0] == pytest.approx(plain.interval()[0])


def test_skewness_agrees_with_scipy() -> None:
    values = np.random.default_rng(5).exponential(1.0, 25)
    assert skewness(values) == pytest.approx(stats.skew(values, bias=False))


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (10, 10), (9, 19), (1, 328), (236, 328), (0, 1)])
def test_wilson_agrees_with_scipy(hits: int, trials: int) -> None:
    oracle = stats.binomtest(hits, trials).proportion_ci(0.95, method="wilson")
    assert wilson(hits, trials) == pytest.approx((oracle.low, oracle.high), abs=1e-12)
    assert wilson(hits, trials)[0] <= hits / trials <= wilson(hits, trials)[1]


def test_wilson_solves_the_score_equation() -> None:
    z = stats.norm.ppf(0.975)
    for end in wilson(13, 40):
        assert abs(13 / 40 - end) == pytest.approx(z * np.sqrt(end * (1 - end) / 40))
    assert np.isnan(wilson(0, 0)).all()


def test_mean_interval_agrees_with_scipy() -> None:
    values = np.random.default_rng(5).normal(size=40)
    oracle = stats.ttest_1samp(values, 0).confidence_interval()
    assert mean_interval(values)[1:] == pytest.approx((oracle.low, oracle.high))
    assert mean_interval(np.array([1.0])) == (1.0, float("-inf"), float("inf"))
    assert np.isnan(mean_interval(np.array([]))).all()


def noisy_logs(rng: np.random.Generator, blocks: int, runs: int) -> np.ndarray:
    """Log rates with no true difference: 2 % a run, a level and a drift a block, slow wandering, a few slow runs."""
    logs = rng.normal(0, 0.02, (blocks, runs)) + rng.normal(0, 0.1, (blocks, 1))
    logs += rng.normal(0, 0.01, (blocks, 1)) * np.arange(runs)
    slow = np.empty(blocks * runs)
    state = 0.0
    for index, step in enumerate(rng.normal(0, 0.005, blocks * runs)):
        state = slow[index] = 0.9 * state + step
    logs += slow.reshape(blocks, runs)
    return logs - rng.exponential(0.05, (blocks, runs)) * (rng.random((blocks, runs)) < 0.03)


@pytest.mark.parametrize(
    ("prompts", "blocks_each", "pairs", "lowest"),
    [(24, 1, False, 0.03), (6, 1, False, 0.03), (4, 2, False, 0.03), (1, 6, False, 0.03),
     # Drift moves the two pairs of a block apart, so intervals over pairs are wide: never too many alarms.
     (2, 1, True, 0.0), (1, 1, False, 0.0)],
)  # fmt: skip
def test_a_against_a_leaves_one_outside_in_3_to_7_percent(
    prompts: int, blocks_each: int, pairs: bool, lowest: float
) -> None:
    rng = np.random.default_rng(20260701 + prompts)
    outside = 0
    for _ in range(2000):
        # The first arm of a block is drawn at random, as in a sweep.
        blocks = [(f"p{prompt}", "ACBBCA" if rng.random() < 0.5 else "BCAACB")
                  for prompt in range(prompts) for _ in range(blocks_each)]  # fmt: skip
        plan, _ = layout(blocks, pairs=pairs)
        outside += plan.contrast(noisy_logs(rng, len(blocks), 6).ravel()).excludes(1.0)
    assert lowest <= outside / 2000 <= 0.07


def test_a_true_effect_of_the_smallest_visible_size_is_found() -> None:
    rng = np.random.default_rng(9)
    found, effect = 0, np.exp(detectable_shift(11) * 0.02 / np.sqrt(12))
    plan, arms = layout([(f"p{prompt}", "ABBA") for prompt in range(12)])
    for _ in range(2000):
        # Two runs an arm and block: 0.02 is the spread of a block's log ratio.
        logs = rng.normal(0, 0.02, len(arms)) + np.where(arms == "treatment", np.log(effect), 0)
        found += plan.contrast(logs).excludes(1.0)
    assert found / 2000 == pytest.approx(0.80, abs=0.03)


@pytest.mark.parametrize("count", [6, 7, 20, 33])
def test_a_median_lies_in_its_own_interval(count: int) -> None:
    """Against scipy's interval of a quantile, one outlier in ten."""
    rng = np.random.default_rng(count)
    values = np.exp(rng.normal(0, 0.01, count) + (rng.random(count) < 0.1) * 2)
    middle, low, high = middle_of(values)
    wanted = stats.quantile_test(values, q=0, p=0.5).confidence_interval(0.95)
    assert middle == np.median(values) and (low, high) == (wanted.low, wanted.high)


def test_the_median_of_a_few_lies_in_students_interval() -> None:
    values = np.array([1.0, 1.1, 1.3])
    middle, low, high = middle_of(values)
    wanted = stats.t.interval(0.95, 2, np.log(values).mean(), stats.sem(np.log(values)))
    assert middle == pytest.approx(1.1) and np.log([low, high]) == pytest.approx(wanted)
    assert np.isnan(middle_of(np.array([]))).all()
    for count in (2, 3, 4, 5):
        for far in (1.5, 30.0):
            middle, low, high = middle_of(np.array([1.0] * (count - 1) + [far]))
            assert low <= middle <= high


@pytest.mark.parametrize("values", [[1.0, 5.0], [3.0], [2.0, 2.0, 2.0], [7.0] * 9])
def test_few_or_equal_units_have_no_skew(values: list[float]) -> None:
    assert skewness(np.array(values)) == 0
