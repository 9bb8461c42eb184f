"""The oracles against numpy written another way."""

import numpy as np
import pytest

from kernels import reference


@pytest.fixture
def rng():
    return np.random.default_rng()


def test_ssq_takes_model_a_from_the_high_byte():
    block = np.zeros((1, 1, 68), np.uint8)
    block[0, 0, :2] = np.frombuffer(np.float16(0.5).tobytes(), np.uint8)
    block[0, 0, 2:4] = np.frombuffer(np.float16(2.0).tobytes(), np.uint8)
    block[0, 0, 4:6] = [0xFF, 0x03]  # little-endian word 0x03FF: A = 3, B = -1
    a, b = reference.ssq(block)
    assert (a[0, 0], b[0, 0]) == (1.5, -2.0)
    assert not a[0, 1:].any() and not b[0, 1:].any()


def test_flat_scales_each_32_columns(rng):
    quants, scales = rng.integers(-128, 128, (3, 64)).astype(np.int8), rng.random((3, 2)).astype(np.float16)
    out = reference.flat(quants, scales)
    assert out[2, 31] == float(quants[2, 31]) * float(scales[2, 0])
    assert out[2, 32] == float(quants[2, 32]) * float(scales[2, 1])


def test_softmax_of_large_logits_sums_to_one(rng):
    out = reference.softmax(rng.standard_normal((3, 50)) + 1e4)
    np.testing.assert_allclose(out.sum(axis=1), 1)


def test_scores_are_dot_products_over_the_root_of_the_width(rng):
    q, keys = rng.standard_normal((2, 16)), rng.standard_normal((2, 5, 16))
    assert reference.twin_scores(q, keys)[1, 3] == pytest.approx(q[1] @ keys[1, 3] / 4)


@pytest.mark.parametrize("drafts,accepted", [([4, 1, 2], 3), ([4, 1, 0], 2), ([0, 1, 2], 0), ([4, 0, 2], 1)])
def test_verify_stops_at_the_first_difference(drafts, accepted):
    logits = np.eye(5)[[4, 1, 2, 3]]
    tokens, count = reference.verify(logits, np.array(drafts))
    assert list(tokens) == [4, 1, 2, 3] and count == accepted


def test_relative_error():
    expected = np.array([3.0, 4.0])
    assert reference.relative_error(np.array([3.0, 4.5]), expected) == pytest.approx(0.1)
    assert reference.relative_error(np.array([3.0, np.nan]), expected) == float("inf")
