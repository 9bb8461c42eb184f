"""Bytes of a sequence, against hand-worked figures."""

from __future__ import annotations

import pytest

from bench.errors import UserError
from bench.judge import judge
from bench.judge.memory import Shape, conv_state, delta_net_state, element_bytes, memory_rows
from tests.judge.judge_cells import guess_cell, profile_cell

QWEN_27B = Shape(
    attention_layers=16, kv_heads=4, key_length=256, value_length=256, recurrent_layers=48,
    state_elements=delta_net_state(value_heads=48, key_dim=128, value_dim=128),
    conv_elements=conv_state(kernel=4, key_heads=16, key_dim=128, value_heads=48, value_dim=128),
)  # fmt: skip


def test_27b_attention_cache_is_64_kib_a_token() -> None:
    # 16 layers x 4 heads x (256 keys + 256 values) x 2 B
    assert QWEN_27B.kv_bytes_per_token() == 65_536


def test_27b_recurrent_state_is_149_6_mib_a_sequence() -> None:
    # State: 48 heads x 128 x 128 = 786,432. Convolution: 3 x (2 x 16 x 128 + 48 x 128) = 30,720. f32, 48 layers.
    assert QWEN_27B.state_elements == 786_432
    assert QWEN_27B.conv_elements == 30_720
    assert QWEN_27B.state_bytes() == 48 * 4 * (786_432 + 30_720) == 156_893_184


def test_27b_sequence_of_2048_cells_costs_the_published_278_mib() -> None:
    assert QWEN_27B.sequence_bytes(2048) / 2**20 == pytest.approx(277.6, abs=0.05)


def test_quantised_caches_count_their_scales() -> None:
    assert QWEN_27B.kv_bytes_per_token("q8_0", "q8_0") == 65_536 / 2 * 34 / 32
    assert element_bytes("q4_0") == 18 / 32
    with pytest.raises(UserError, match="did you mean 'q8_0'"):
        element_bytes("q8_O")


def test_an_attention_model_has_no_state() -> None:
    smollm = Shape(attention_layers=30, kv_heads=3, key_length=64, value_length=64)
    assert smollm.kv_bytes_per_token() == 30 * 3 * 128 * 2
    assert smollm.state_bytes() == 0


def test_profile_rows_set_measured_beside_computed() -> None:
    cell = profile_cell({1: 50, 2: 60})
    cell.facts["memory_by_streams"] = [
        {"streams": 2, "kv_bytes": 1100.0, "state_bytes": 50.0, "computed_kv_bytes": 1000.0,
         "computed_state_bytes": 50.0, "measured_bytes": 5000, "per_stream_bytes": 575.0}
    ]  # fmt: skip
    row = memory_rows(cell)[0]
    assert (row["streams"], row["source"], row["per_stream_bytes"]) == (2, "profile", 575.0)
    assert (row["kv_ratio"], row["state_ratio"]) == pytest.approx((1.1, 1.0))


def test_contrast_rows_set_measured_beside_computed_for_the_context_of_each_arm() -> None:
    cell = guess_cell(blocks=1)
    cell.facts["model"]["state_bytes_per_sequence"] = 300
    cell.facts["engine"]["treatment"]["n_ctx"] = 2048
    cell.facts["memory"] = {
        "baseline": {"kv_bytes": 512_000, "state_bytes": 300, "compute_bytes": 7, "process_bytes": 9},
        "treatment": {"kv_bytes": 2_048_000, "state_bytes": 1200, "compute_bytes": 7, "process_bytes": 10},
        "again": {"kv_bytes": 512_000, "state_bytes": 300},
    }
    rows = {row["arm"]: row for row in memory_rows(cell)}
    assert set(rows) == {"baseline", "treatment"}
    assert (rows["baseline"]["streams"], rows["treatment"]["streams"]) == (1, 4)
    assert rows["treatment"]["per_stream_bytes"] == pytest.approx((2_048_000 + 1200) / 4)
    assert rows["treatment"]["computed_kv_bytes"] == 2_048_000
    assert (rows["treatment"]["kv_ratio"], rows["treatment"]["state_ratio"]) == pytest.approx((1.0, 1.0))


def test_contexts_of_contrasts_stand_in_only_where_no_profile_measured_memory() -> None:
    cell, profile = guess_cell(blocks=1), profile_cell({1: 50})
    cell.facts["memory"] = {"baseline": {"kv_bytes": 512_000, "state_bytes": 0}}
    assert [row["source"] for row in judge([cell, profile]).memory] == ["contrast"]
    profile.facts["memory_by_streams"] = [{"streams": 1, "kv_bytes": 1, "computed_kv_bytes": 1, "measured_bytes": 1}]
    assert [row["source"] for row in judge([cell, profile]).memory] == ["profile"]
