"""The distribution test against scipy and brute force: it keeps its size, and sees the faults that loops have had."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bench.judge.measure.chi_square import (
    ALPHA,
    DIFFERENT,
    SAME,
    TOO_FEW,
    Group,
    assess,
    needed_noncentrality,
    pooled,
    simulated,
    total_variation,
    visible,
)
from pti_loop.ledger import Trace
from pti_loop.loop import verify
from pti_loop.sampling import Sampler

C39 = np.array([0.5, 0.3, 0.2])


def softmax(logits: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    weights = np.exp((logits - logits.max()) / temperature)
    return weights / weights.sum()


def of(*pairs) -> list[Group]:
    return [Group(np.array(counts), np.array(share, dtype=float)) for counts, share in pairs]


def quick(groups, **more):
    return assess(groups, simulations=50, **more)


def test_the_case_of_three_tokens_and_a_guess_that_is_always_the_first():
    """20000 draws of p = .5, .3, .2: matching gives p and accepts half; accepting the argmax gives token 0 alone."""
    logits = np.log(C39).astype(np.float32)
    sampler, trace = Sampler(3, 1.0, seed=7), Trace(0, lambda: 0)
    matched, greedy, accepted = np.zeros(3, dtype=int), np.zeros(3, dtype=int), 0
    for position in range(20_000):
        choice = sampler.draw(logits, 0, 0, position)
        accepted += verify([9, 0], [choice], trace, position)[1]
        matched[choice.token] += 1
        greedy[0 if logits.argmax() == 0 else choice.token] += 1
    assert accepted == matched[0]
    assert accepted / 20_000 == pytest.approx(0.5, abs=0.01)
    sound, faulty = assess(of((matched, C39))), assess(of((greedy, C39)))
    assert sound.verdict == SAME
    assert sound.tv < sound.tv_high < 0.02
    assert greedy.tolist() == [20_000, 0, 0]
    assert faulty.verdict == DIFFERENT
    assert faulty.tv == pytest.approx(0.5)


def test_one_group_is_scipys_chi_square():
    rng = np.random.default_rng(3)
    share = rng.dirichlet(np.ones(6) * 5)
    counts = rng.multinomial(900, share)
    found, known = assess(of((counts, share))), stats.chisquare(counts, 900 * share)
    assert (900 * share >= 5).all()
    assert found.chi2 == pytest.approx(known.statistic)
    assert found.p == pytest.approx(known.pvalue)
    assert found.df == 5


def test_groups_add_up_and_rare_tokens_are_pooled():
    first = (np.array([40, 50, 6, 3, 1]), np.array([0.4, 0.5, 0.06, 0.025, 0.015]))
    second = (np.array([130, 70]), np.array([0.6, 0.4]))
    found = assess(of(first, second))
    # 2.5 and 1.5 expected make 4, which is below five too and joins the smallest cell, of 6.
    one, other = stats.chisquare([40, 50, 10], [40, 50, 10]), stats.chisquare([130, 70], [120, 80])
    assert found.chi2 == pytest.approx(one.statistic + other.statistic)
    assert found.df == 3
    assert found.p == pytest.approx(stats.chi2.sf(one.statistic + other.statistic, 3))
    assert found.tv == pytest.approx((100 * 0.005 + 200 * 0.05) / 300)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.integers(1, 400))
@settings(max_examples=60, deadline=None)
def test_pooling_is_a_partition_into_cells_that_expect_five(weights, n):
    share = np.array(weights) + 1e-9
    share /= share.sum()
    group = Group(np.bincount([0] * n, minlength=len(share)), share)
    cells = pooled(group)
    assert sorted(np.concatenate(cells).tolist()) == list(range(len(share)))
    if len(cells) > 1:
        assert min(n * share[cell].sum() for cell in cells) >= 5 - 1e-6


def multinomials(n: int, share: np.ndarray):
    """Every outcome of n draws of three tokens, with its probability."""
    for a, b in product(range(n + 1), repeat=2):
        if a + b <= n:
            counts = np.array([a, b, n - a - b])
            yield counts, comb(n, a) * comb(n - a, b) * np.prod(share**counts)


def test_expected_total_variation_is_that_of_all_outcomes():
    n, outcomes = 12, list(multinomials(12, C39))
    assert sum(chance for _, chance in outcomes) == pytest.approx(1)
    exact = sum(chance * total_variation(counts / n, C39) for counts, chance in outcomes)
    draws = simulated(of((np.array([6, 4, 2]), C39)), np.random.default_rng(1), 40_000)
    assert draws.mean() == pytest.approx(exact, abs=4 * draws.std() / 200)


def test_the_null_is_rejected_as_often_as_promised():
    rng = np.random.default_rng(11)
    shares = [rng.dirichlet(np.ones(30) * 0.4) for _ in range(3)]
    p = []
    for _ in range(600):
        p.append(quick(of(*[(rng.multinomial(n, share), share) for n, share in zip((400, 150, 60), shares,
                                                                                   strict=True)])).p)  # fmt: skip
    p = np.array(p)
    assert (p < 0.05).mean() == pytest.approx(0.05, abs=0.03)
    assert (p < ALPHA).sum() <= 5


def biased(rule, share: np.ndarray, n: int, guesses: np.ndarray, rng) -> np.ndarray:
    """Counts of a loop that takes the guess where `rule` says so, and else the model's own draw."""
    own = rng.choice(len(share), size=n, p=share)
    taken = np.array([rule(share, guess) for guess in guesses])
    return np.bincount(np.where(taken, guesses, own), minlength=len(share))


RULES = {
    "argmax": lambda share, guess: guess == share.argmax(),
    "above 0.1": lambda share, guess: share[guess] > 0.1,
    "top two": lambda share, guess: guess in np.argsort(share)[-2:],
}


@pytest.mark.parametrize("rule", RULES)
def test_wrong_acceptance_is_seen_and_matching_is_not(rule):
    """Guesses drawn from the model itself, as a good drafter's are: the mildest form of each fault."""
    rng, n = np.random.default_rng(5), 1000
    logits = np.array([2.0, 1.6, 1.2, 0.5, 0.2, 0.0, -0.4, -1.0])
    share = softmax(logits, 0.7)
    assert 0.2 < share.max() < 0.5
    guesses = rng.choice(len(share), size=n, p=share)
    assert quick(of((biased(RULES[rule], share, n, guesses, rng), share))).verdict == DIFFERENT
    assert quick(of((biased(lambda share, guess: False, share, n, guesses, rng), share))).verdict == SAME


def test_a_temperature_off_by_a_tenth_is_seen():
    rng = np.random.default_rng(8)
    logits = 2 * rng.standard_normal(40)
    told, used = softmax(logits, 0.7), softmax(logits, 0.8)
    assert quick(of((rng.multinomial(4000, used), told))).verdict == DIFFERENT
    assert quick(of((rng.multinomial(4000, told), told))).verdict == SAME


def test_what_is_called_visible_is_seen_in_four_of_five():
    rng, n = np.random.default_rng(2), 500
    share = softmax(np.array([1.0, 0.6, 0.2, 0.0, -0.5]))
    group = Group(rng.multinomial(n, share), share)
    bias = visible([group], 4)
    toward = np.eye(5)[share.argmax()]
    mixed = share + (bias / (1 - share.max())) * (toward - share)
    assert total_variation(mixed, share) == pytest.approx(bias)
    seen = np.mean([quick(of((rng.multinomial(n, mixed), share))).verdict == DIFFERENT for _ in range(1000)])
    assert seen == pytest.approx(0.8, abs=0.04)


def test_needed_noncentrality_is_scipys():
    for df, allowed in [(1, 0.0), (7, 0.0), (30, 0.0), (7, 12.5)]:
        critical = stats.ncx2.isf(ALPHA, df, allowed) if allowed else stats.chi2.isf(ALPHA, df)
        assert stats.ncx2.sf(critical, df, needed_noncentrality(df, allowed)) == pytest.approx(0.8, abs=1e-6)


def test_few_draws_say_nothing():
    share = softmax(np.array([1.0, 0.5, 0.0]))
    assert quick(of(([30, 18, 12], share))).verdict == TOO_FEW
    nothing = quick([])
    assert (nothing.draws, nothing.verdict) == (0, TOO_FEW)
    # One cell of sufficient expectation cannot be told from anything.
    assert quick(of(([400, 0], [0.999, 0.001]))).verdict == TOO_FEW
    # A thousand draws of which a fault can be in forty: the other groups do not make up for those.
    rng = np.random.default_rng(1)
    large, small = of((rng.multinomial(1000, share), share), ([20, 12, 8], share))
    assert quick([large, small]).verdict == SAME
    assert quick([large, small], tested=[small]).verdict == TOO_FEW
    assert quick([large, small], tested=[]).verdict == TOO_FEW


def test_what_rounding_moves_is_excused_and_no_more():
    rng = np.random.default_rng(4)
    share, moved = softmax(np.array([1.0, 0.8, 0.0])), softmax(np.array([1.15, 0.7, 0.0]))
    counts = rng.multinomial(4000, moved)
    assert quick([Group(counts, share)]).verdict == DIFFERENT
    excused = quick([Group(counts, share, moved)])
    assert excused.verdict == SAME
    assert excused.rounding_tv == pytest.approx(total_variation(share, moved))
    far = rng.multinomial(4000, softmax(np.array([1.6, 0.4, 0.0])))
    assert quick([Group(far, share, moved)]).verdict == DIFFERENT
    # Where rounding alone is as large as the fault to be seen, nothing is said.
    assert quick([Group(counts, share, softmax(np.array([3.0, 0.0, 0.0])))]).verdict == TOO_FEW
