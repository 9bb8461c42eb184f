"""Decoding and rounding against the gguf package, which says what a type means."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType as Type

from kernels.ssq import block, quantize

KINDS = [kind.name for kind in Type if kind.name not in quantize.INTEGERS and quantize.can_decode(kind.name)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_is_decoded_as_gguf_does(kind: str) -> None:
    weights, size = quantize.block_size(kind)
    data = np.random.default_rng(7).integers(0, 256, 40 * max(32 // weights, 1) * size, dtype=np.uint8)
    with np.errstate(all="ignore"):
        if kind == "F16":
            expected = data.view(np.float16).astype(np.float32)
        else:
            expected = gguf.quants.dequantize(data.reshape(-1, size), Type[kind]).reshape(-1)
        np.testing.assert_array_equal(quantize.decoder(kind)(data), expected)


def test_the_usual_types_are_among_them() -> None:
    assert {"F32", "F16", "BF16", "Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS"} <= set(KINDS)


def test_rounding_is_nearest_with_the_scale_of_q8_0() -> None:
    floats = np.random.default_rng(1).standard_normal(32 * 500).astype(np.float32)
    ours = quantize.to_q8_0(floats.view(np.uint8), "F32")
    theirs = gguf.quants.quantize(floats.reshape(-1, 32), Type.Q8_0)
    assert np.array_equal(ours[:, :2], theirs[:, :2])
    steps = ours[:, 2:].view(np.int8).astype(int) - theirs[:, 2:].view(np.int8)
    # Both are nearest; a factor that is rounded differently decides what lies within 1e-6 of a half.
    assert np.abs(steps).max() <= 1
    assert (steps != 0).mean() < 1e-3


@pytest.mark.parametrize("route", [quantize.rounded, quantize.quantizer()], ids=["numpy", "here"])
def test_a_weight_is_off_by_half_a_step_at_most(route) -> None:
    floats = np.random.default_rng(2).standard_normal(32 * 300).astype(np.float32)
    # The f16 scale is off by up to 2^-11 of itself, times 127 steps.
    steps = np.abs(floats).reshape(-1, 32).max(axis=1) / 127
    off = np.abs(block.values(route(floats)) - floats.reshape(-1, 32))
    assert (off <= steps[:, None] * (0.5 + 127 * 2.0**-11 + 1e-3)).all()


def test_zeros_stay_zeros() -> None:
    assert not quantize.to_q8_0(np.zeros(64, np.float32).view(np.uint8), "F32").any()


@pytest.mark.parametrize(("bad", "words"), [(np.nan, "finite"), (np.inf, "finite"), (1e7, "f16")])
def test_what_q8_0_cannot_hold_is_refused(bad: float, words: str) -> None:
    floats = np.ones(64, np.float32)
    floats[40] = bad
    with pytest.raises(ValueError, match=words):
        quantize.to_q8_0(floats.view(np.uint8), "F32")


def test_a_scale_that_is_no_number_is_refused() -> None:
    data = np.zeros(34 * 2, np.uint8)
    data[18:20] = np.frombuffer(np.float16(np.nan).tobytes(), np.uint8)
    with pytest.raises(ValueError, match="f16"):
        quantize.to_q8_0(data[:36], "Q4_0")
