"""The exponentials of a draw against float64, from numpy and from the engine's own library."""

from __future__ import annotations

from pathlib import Path

import llama_cpp
import numpy as np
import pytest

from pti_loop.sampling import Sampler, cumulative
from pti_loop.weights import by_ggml, by_numpy

GGML = Path(llama_cpp.__file__).parent / "lib" / "libggml-cpu.so"
SOURCES = [by_numpy, by_ggml(GGML)]


def test_the_build_exports_the_vector_code() -> None:
    assert by_ggml(GGML) is not by_numpy
    assert by_ggml(Path("no-such-library.so")) is by_numpy


@pytest.mark.parametrize("weigh", SOURCES)
@pytest.mark.parametrize("size", [1, 7, 8, 49152])
def test_weights_are_exponentials_below_the_greatest(weigh, size) -> None:
    values = (5 * np.random.default_rng(size).standard_normal(size)).astype(np.float32)
    exact = np.exp(values.astype(np.float64) - values.max())
    weigh(values, float(values.max()))
    assert values == pytest.approx(exact, rel=1e-5, abs=1e-30)


@pytest.mark.parametrize("weigh", SOURCES)
def test_banned_and_hopeless_tokens_weigh_next_to_nothing(weigh) -> None:
    values = np.array([0.0, -np.inf, -500.0, -90.0, -1.0, -np.inf, -200.0, -3.0, -np.inf], dtype=np.float32)
    weigh(values, 0.0)
    assert (values[[1, 2, 3, 5, 6, 8]] < 1e-34).all()
    assert values[[0, 4, 7]] == pytest.approx(np.exp([0.0, -1.0, -3.0]), rel=1e-6)


@pytest.mark.parametrize("temperature", [0.3, 1.0])
def test_a_draw_by_the_engine_is_the_inverse_of_the_cumulative_distribution(temperature) -> None:
    rng = np.random.default_rng(3)
    logits = (4 * rng.standard_normal(49152)).astype(np.float32)
    logits[::17] = -np.inf
    sampler = Sampler(len(logits), temperature, 0, by_ggml(GGML))
    exact = cumulative(logits, temperature)
    for u in rng.random(200):
        token = sampler.pick(logits, u).token
        assert logits[token] > -np.inf
        low = exact[token - 1] if token else 0.0
        assert low - 1e-6 <= u <= exact[token] + 1e-6
