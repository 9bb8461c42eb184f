"""Draws against a float64 reference, and the keys of the randomness."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pti_loop.sampling import Sampler, cumulative, uniform


def test_uniform_numbers_are_uniform_and_differ_by_every_part_of_the_key():
    numbers = np.array([uniform(s, t, p) for s in range(10) for t in range(10) for p in range(100)])
    assert stats.kstest(numbers, "uniform").pvalue > 0.001
    assert len(set(numbers)) == len(numbers)
    pairs = numbers.reshape(-1, 2)
    assert abs(np.corrcoef(pairs[:, 0], pairs[:, 1])[0, 1]) < 0.05


def test_a_key_gives_the_same_number_again():
    assert uniform(7, 3, 11) == uniform(7, 3, 11)
    assert uniform(7, 3, 11) != uniform(7, 11, 3)


@pytest.mark.parametrize("n_vocab", [3, 255, 256, 257, 49152])
@pytest.mark.parametrize("temperature", [0.2, 0.7, 1.0, 2.0])
def test_pick_is_the_inverse_of_the_cumulative_distribution(n_vocab, temperature):
    rng = np.random.default_rng(n_vocab)
    logits = (4 * rng.standard_normal(n_vocab)).astype(np.float32)
    sampler = Sampler(n_vocab, temperature, seed=0)
    exact = cumulative(logits, temperature)
    for u in rng.random(200):
        token = sampler.pick(logits, u).token
        low = exact[token - 1] if token else 0.0
        assert low - 1e-6 <= u <= exact[token] + 1e-6


def test_collision_is_the_sum_of_squares():
    logits = np.log(np.array([0.5, 0.3, 0.2], dtype=np.float32))
    assert Sampler(3, 1.0, 0).pick(logits, 0.1).collision == pytest.approx(0.25 + 0.09 + 0.04, rel=1e-6)
    rng = np.random.default_rng(1)
    wide = rng.standard_normal(5000).astype(np.float32)
    probabilities = np.exp(wide.astype(np.float64)) / np.exp(wide.astype(np.float64)).sum()
    assert Sampler(5000, 1.0, 0).pick(wide, 0.5).collision == pytest.approx((probabilities**2).sum(), rel=1e-5)


def test_draws_follow_the_distribution():
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05], dtype=np.float32))
    sampler = Sampler(4, 1.0, seed=5)
    counts = np.bincount([sampler.draw(logits, 0, 0, position).token for position in range(20000)], minlength=4)
    assert stats.chisquare(counts, 20000 * np.array([0.5, 0.3, 0.15, 0.05])).pvalue > 0.001


def test_a_biased_draw_would_be_noticed():
    """The same test fails for a sampler that takes the most likely token a little too often."""
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05], dtype=np.float32))
    sampler = Sampler(4, 1.0, seed=5)
    tokens = [0 if position % 25 == 0 else sampler.draw(logits, 0, 0, position).token for position in range(20000)]
    counts = np.bincount(tokens, minlength=4)
    assert stats.chisquare(counts, 20000 * np.array([0.5, 0.3, 0.15, 0.05])).pvalue < 0.001


def test_banned_tokens_are_never_drawn():
    logits = np.array([0.0, -np.inf, 0.0, -np.inf], dtype=np.float32)
    sampler = Sampler(4, 1.0, 0)
    assert {sampler.pick(logits, u).token for u in np.linspace(0, 1, 101, endpoint=False)} == {0, 2}


def test_greedy_takes_the_lowest_id_on_a_tie():
    assert Sampler(4, 0.0, 0).draw(np.array([1, 3, 3, 0], dtype=np.float32), 0, 0, 0).token == 1


@pytest.mark.parametrize("temperature", [-0.1, float("nan"), float("inf")])
def test_a_temperature_that_is_none_is_refused(temperature):
    with pytest.raises(ValueError, match="temperature"):
        Sampler(4, temperature, 0)


def test_sample_and_match_is_unbiased_and_accepting_the_argmax_is_not():
    """p = (.5, .3, .2), every guess 0: emitting the model's own draw gives p, taking the guess gives (1, 0, 0)."""
    probabilities = np.array([0.5, 0.3, 0.2])
    logits = np.log(probabilities).astype(np.float32)
    sampler = Sampler(3, 1.0, seed=9)
    own = [sampler.draw(logits, 0, 0, position).token for position in range(20000)]
    assert stats.chisquare(np.bincount(own, minlength=3), 20000 * probabilities).pvalue > 0.001
    assert np.mean(np.array(own) == 0) == pytest.approx(0.5, abs=0.02)
    lossy = [0 if logits.argmax() == 0 else token for token in own]
    assert stats.chisquare(np.bincount(lossy, minlength=3), 20000 * probabilities).pvalue < 1e-6


@pytest.mark.parametrize("temperature", [0.05, 1e-3, 1e-9, 1e-38, 1e-45, 1e-300, 5e-324])
def test_a_temperature_near_0_draws_as_the_exact_distribution_does(temperature):
    """Where 1 / temperature or a logit over it has no float32, the argmax is what is left."""
    rng = np.random.default_rng(4)
    for size in (11, 1000):
        logits = (4 * rng.standard_normal(size)).astype(np.float32)
        logits[rng.integers(0, size)] = -np.inf
        logits[:2] = logits.max() - np.float32(1e-3)  # close to the likeliest, and not as likely
        exact = cumulative(logits, temperature)
        assert np.isfinite(exact).all()
        for u in (0.0, 1e-9, 0.3, 0.9, 1 - 2**-53):
            choice = Sampler(size, temperature, 0).pick(logits, u)
            low = exact[choice.token - 1] if choice.token else 0.0
            assert low - 1e-6 <= u <= exact[choice.token] + 1e-6
            assert 0 < choice.collision <= 1 + 1e-6


def test_small_differences_survive_a_small_temperature():
    """20000.0 and 20000.00195 are the next float32 to each other: the odds of logits 20 and 20.0001 at 0.001."""
    logits = np.array([20.0001, 20.0, 0.0], dtype=np.float32)
    exact = cumulative(logits, 1e-3)
    sampler = Sampler(3, 1e-3, 0)
    assert sampler.pick(logits, float(exact[0]) - 1e-5).token == 0
    assert sampler.pick(logits, float(exact[0]) + 1e-5).token == 1


def test_the_smallest_random_number_draws_no_banned_token():
    logits = np.array([-np.inf, -np.inf, 1.0, 2.0], dtype=np.float32)
    for temperature in (0.01, 1.0):
        assert Sampler(4, temperature, 0).pick(logits, 0.0).token == 2 if temperature == 1.0 else 3
