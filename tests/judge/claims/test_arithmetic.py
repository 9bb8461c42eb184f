"""Formulas against numbers worked out apart, and the checks around them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.judge.claims.arithmetic import (
    FORMULAS,
    check_inputs,
    half_last_digit,
    in_unit,
    other_reading,
    reachable,
    recompute,
)
from pti_loop.gguf.file import GgufFile

SHAPE_27B = {
    "attention_layers": 16, "kv_heads": 4, "head_size": 256, "kv_value_bytes": 2, "tokens": 2048, "delta_layers": 48,
    "value_heads": 48, "key_heads": 16, "delta_head_size": 128, "convolution_width": 4, "state_value_bytes": 4,
}  # fmt: skip


def published_loop(rounds: int, streams: int) -> list[int]:
    """Positions that the published loop emits: the prefill's token, then `streams` overlapping positions a round."""
    return [0] + [first + offset for first in range(1, rounds + 1) for offset in range(streams)]


@pytest.mark.parametrize("streams", [2, 3, 4, 8])
@pytest.mark.parametrize("rounds", [1, 5, 79])
def test_counts_are_those_of_the_simulated_loop(rounds: int, streams: int) -> None:
    positions = published_loop(rounds, streams)
    assert recompute("counted_tokens", {"rounds": rounds, "streams": streams}) == len(positions)
    assert recompute("distinct_tokens", {"rounds": rounds, "streams": streams}) == len(set(positions))


def test_published_rate_becomes_ten() -> None:
    rate = recompute("distinct_rate", {"counted_rate": 38.1, "rounds": 79, "streams": 4})
    assert rate == pytest.approx(83 / (317 / 38.1))
    assert round(rate, 1) == 10.0


@pytest.mark.parametrize(("p", "expected"), [(1.0, 4.0), (0.75, 2.734375), (0.6, 2.176), (0.4, 1.624)])
def test_expected_tokens(p: float, expected: float) -> None:
    q = Fraction(p).limit_denominator(100)
    assert float(1 + q + q**2 + q**3) == expected
    assert recompute("expected_tokens", {"p": p, "streams": 4}) == pytest.approx(expected)


def test_bytes_of_a_sequence_of_the_27b_shape() -> None:
    kv = recompute("kv_bytes", {"attention_layers": 16, "kv_heads": 4, "head_size": 256, "value_bytes": 2, "tokens": 1})
    state = recompute(
        "delta_state_bytes",
        {"layers": 48, "value_heads": 48, "key_heads": 16, "head_size": 128, "convolution_width": 4, "value_bytes": 4},
    )
    assert kv == 64 * 1024
    assert state == 48 * (48 * 128 * 128 + 3 * (2 * 16 * 128 + 48 * 128)) * 4 == 156_893_184
    assert recompute("sequence_bytes", SHAPE_27B) == 2048 * kv + state
    assert recompute("sequence_bytes", SHAPE_27B) / 2**20 == pytest.approx(277.6, abs=0.05)


@pytest.mark.parametrize(
    "odd",
    [{}, {"attention_layers": 3, "delta_layers": 9, "kv_heads": 1, "head_size": 96},
     {"value_heads": 12, "key_heads": 2, "delta_head_size": 64, "convolution_width": 3}, {"kv_value_bytes": 4}],
)  # fmt: skip
def test_a_sheet_s_formula_and_the_engine_s_sizing_agree(odd: dict[str, int]) -> None:
    """One starts from the numbers of a model card, the other from a GGUF file's metadata and llama.cpp's source."""
    shape = SHAPE_27B | odd
    heads, size = shape["value_heads"], shape["delta_head_size"]
    keys = {
        "block_count": shape["attention_layers"] + shape["delta_layers"], "embedding_length": 5120,
        "attention.head_count": 24, "attention.head_count_kv": shape["kv_heads"],
        "attention.key_length": shape["head_size"], "attention.value_length": shape["head_size"],
        "full_attention_interval": 4, "ssm.conv_kernel": shape["convolution_width"], "ssm.inner_size": heads * size,
        "ssm.state_size": size, "ssm.group_count": shape["key_heads"],
    }  # fmt: skip
    metadata = {"general.architecture": "qwen35"} | {f"qwen35.{key}": value for key, value in keys.items()}
    file = GgufFile(Path("m.gguf"), (Path("m.gguf"),), metadata, (), 0)
    cache = "f32" if shape["kv_value_bytes"] == 4 else "f16"
    total = shape["tokens"] * file.kv_bytes_per_token(cache, cache) + file.state_bytes_per_sequence()
    assert recompute("sequence_bytes", shape) == total


def test_activation_traffic_is_mebibytes_over_a_thousand() -> None:
    value = recompute("byte_product", {"blocks": 17408, "streams": 4, "columns": 5120, "bytes": 4})
    assert value == 1_426_063_360
    assert in_unit("byte_product", value, "GB", "it") == pytest.approx(1.42606336)
    assert in_unit("byte_product", value, "GiB", "it") == pytest.approx(1.328125)
    assert "1360 MiB over 1000" in other_reading(value, 1.36, 0.005, "GB")
    assert "GiB" in other_reading(value, 1.33, 0.005, "GB")
    assert other_reading(value, 1.50, 0.005, "GB") == ""


def test_increments_that_grow_are_counted() -> None:
    assert recompute("grown_increments", {"w1": 1.0, "w2": 1.27, "w3": 1.71, "w4": 2.04}) == 1
    assert recompute("grown_increments", {"w1": 1.0, "w2": 1.5, "w3": 1.8, "w4": 2.0}) == 0


def test_fewer_bits_do_not_change_the_bytes_of_a_line() -> None:
    assert recompute("line_bytes_gain", {"line_bits": 1024, "bits": 5, "other_bits": 8}) == pytest.approx(0)


def test_last_printed_digit() -> None:
    assert [half_last_digit(text) for text in ("1.36", "89", "2.0", "4.00")] == pytest.approx([0.005, 0.5, 0.05, 0.005])
    with pytest.raises(ValueError, match="not a number"):
        half_last_digit("nan")


def test_rounding_of_the_inputs_moves_every_corner() -> None:
    low, high = reachable("product", {"a": 21.1, "b": 18.6}, {"a": 0.05, "b": 0.05})
    assert (low, high) == pytest.approx((21.05 * 18.55, 21.15 * 18.65))
    low, high = reachable("ratio", {"numerator": 384, "denominator": 10.2}, {"denominator": 0.05})
    assert (low, high) == pytest.approx((384 / 10.25, 384 / 10.15))


def test_unknown_formula_and_inputs_name_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'expected_tokens'"):
        check_inputs("expected_token", ["p", "streams"], "claim 'a'")
    with pytest.raises(UserError, match=r"'stream'.*did you mean 'streams'"):
        check_inputs("expected_tokens", ["p", "stream"], "claim 'a'")
    with pytest.raises(UserError, match="lacks the input streams"):
        check_inputs("expected_tokens", ["p"], "claim 'a'")
    with pytest.raises(UserError, match="no inputs"):
        check_inputs("product", [], "claim 'a'")


def test_bytes_need_a_unit_of_bytes() -> None:
    with pytest.raises(UserError, match=r"gives bytes.*'GBs'"):
        in_unit("kv_bytes", 1.0, "GBs", "claim 'a'")
    assert in_unit("ratio", 2.0, "x", "claim 'a'") == 2.0


def test_every_formula_has_a_text() -> None:
    assert all(formula.text for formula in FORMULAS.values())
