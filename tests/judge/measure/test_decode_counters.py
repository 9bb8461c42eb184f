"""Counters of a decode with round figures: every column by hand, what voids a cell, and what the page shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bench.judge.cell import judge_cell
from bench.judge.claims.facts import load_facts
from bench.judge.claims.sheet import load_sheet
from bench.judge.claims.verdicts import judge_claims
from bench.judge.measure import decode_counters as measure
from bench.judge.measure.kernel_classes import ATTENTION, CLASSES, COPIES, GEMM, GEMV, QUANTISED, SMALL, STATE, class_of
from bench.plan.config import CONFIGS
from bench.records.cells import StoredCell, load_cell, write_cell
from bench.records.identity import cell_id
from bench.records.rows import Launch
from bench.report.page.kernel_sections import decode_counters
from bench.report.tables.csv_files import Ordered

GB = 1e9
FACTS = load_facts(CONFIGS / "facts")
BUILD = "0.3.36-0c1e57098-cuda"


def launches(width: int, decodes: int = 1) -> list[Launch]:
    """Two GEMVs, one norm: 3 GB from memory, 4 GB through L2, 1000 us a decode."""
    rows = [
        ("mul_mat_vec_q<14, 1, 0>", 600.0, 1.6 * GB, 0.1 * GB, 2 * GB, 0.25),
        ("mul_mat_vec_q<8, 1, 0>", 300.0, 1.4 * GB, 0.1 * GB, 1 * GB, 0.5),
        ("rms_norm_f32<1024>", 100.0, 0.0, 0.1 * GB, 1 * GB, 1.0),
    ]
    return [Launch(width, decode, order, *row) for decode in range(decodes) for order, row in enumerate(rows)]


def timed(*widths: int) -> list[dict[str, Any]]:
    """900 us without a profiler, of which the host takes 100 until the decode is queued."""
    return [{"width": width, "graphs": graphs, "ns": [900_000, 800_000, 1_000_000],
             "queued_ns": [90_000, 100_000, 120_000]}
            for width in widths for graphs in (True, False)]  # fmt: skip


def stored(folder: Path, rows: list[Launch], widths: list[int], machine: str = "h200", step_bytes: float = 2.9 * GB,
           **told: Any) -> StoredCell:  # fmt: skip
    """A cell as the sweep writes it; `told` are facts in place of the usual ones."""
    config = {
        "kind": "counters", "machine": machine, "counters": "ncu", "weights": "w", "engine": {"threads": 4},
        "model": {"name": "qwen3.6-27b", "engine": "llama"},
        "measure": {"counted_widths": widths, "step_depth": 32},
    }  # fmt: skip
    facts = {
        "tool": "ncu", "decodes": timed(*widths), "left_out": [],
        "bandwidth": {"read_gb_s": 6200.0, "repeats": [6200.0]},
        "model": {"name": "qwen3.6-27b", "quantization": "Q6_K", "step_bytes": step_bytes, "tensor_bytes": 4e9,
                  "sha256": "w", "layers_offloaded": 65},
    } | told  # fmt: skip
    env = {"machine": {"name": machine, "gpus": [{"name": "NVIDIA H200"}]}, "engine": {"build": BUILD}}
    place = folder / machine / cell_id(config, BUILD)
    status = {"state": "done", "reason": "", "seconds": 9.0}
    write_cell(place, config=config, env=env, status=status, facts=facts, tables={"launches": rows})
    return load_cell(place)


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [("mul_mat_vec_q<14, 4, 0, 0, 0>", GEMV), ("mul_mat_vec_f<float, float, 1, 256>", GEMV),
     ("mul_mat_packed<1, 2>", GEMV),
     ("mul_mat_q<(ggml_type)14, 16, 1>", GEMM), ("mul_mat_q_stream_k_fixup<14, 128, 0>", GEMM),
     ("ampere_sgemm_32x32_sliced1x4_nn", GEMM), ("Cijk_Ailk_Bljk_HHS_BH_MT64x64", GEMM),
     ("flash_attn_ext_vec<256, 1, 1, 1, 0>", ATTENTION), ("flash_attn_stream_k_fixup<256, 8>", ATTENTION),
     ("rope_multi<1, 0, __half>", ATTENTION), ("gated_delta_net_cuda<128, 0>", STATE),
     ("ssm_conv_f32<1, 128, 4>", STATE),
     ("quantize_q8_1", QUANTISED), ("packed_quantise", QUANTISED), ("quantize_mmq_q8_1<0>", QUANTISED),
     ("cpy_scalar<&cpy_1_flt>", COPIES), ("concat_f32_dim0", COPIES), ("k_get_rows_float<float, float>", COPIES),
     ("k_set_rows<float, long, __half>", COPIES), ("rms_norm_f32<1024, 1, 0>", SMALL), ("l2_norm_f32<32>", SMALL),
     ("k_bin_bcast<&op_mul, float>", SMALL), ("unary_gated_op_kernel<&op_silu, float>", SMALL), ("anything", SMALL)],
)  # fmt: skip
def test_a_kernel_s_class_is_read_from_its_name(kernel, kind):
    assert class_of(kernel) == kind
    assert kind in CLASSES


def test_a_decode_by_hand(tmp_path):
    judged = judge_cell(stored(tmp_path, launches(2, decodes=2), [2])).findings
    rows = {row.kernel: row for row in judged.counters}
    assert list(rows) == [GEMV, GEMM, SMALL, *measure.PARTS[-5:]]
    gemv, whole = rows[GEMV], rows[measure.ALL]
    assert (gemv.launches, gemv.us, gemv.dram_bytes, gemv.l2_bytes) == (2, 900.0, 3 * GB, 3 * GB)
    assert gemv.l2_hit_rate == pytest.approx((2 * 0.25 + 1 * 0.5) / 3), "by the bytes that went through"
    assert (gemv.dram_bytes_per_token, gemv.share_of_time, gemv.share_of_products) == (1.5 * GB, 0.9, 1.0)
    assert gemv.gb_s == pytest.approx((3 + 0.2) * GB / 900e-6 / 1e9)
    assert gemv.share_of_copy == pytest.approx(gemv.gb_s / 6200)
    assert (rows[GEMM].launches, rows[GEMM].us, rows[GEMM].share_of_products) == (0, 0.0, 0.0)
    assert (whole.us, whole.launches, whole.weight_bytes) == (1000.0, 3, 2.9 * GB)
    assert [rows[name].us for name in (measure.ALONE, measure.QUEUED, measure.UNGRAPHED, measure.BESIDE)] == [
        900.0, 100.0, 900.0, -100.0]  # fmt: skip
    assert {row.of for row in rows.values()} == {"decode"} and not whole.void
    assert whole.model == "qwen3.6-27b"


def test_a_counter_that_was_not_collected_is_missing_and_never_0(tmp_path):
    rows = [Launch(1, 0, 0, "mul_mat_vec_q<14, 1>", 10.0), Launch(1, 0, 1, "rms_norm_f32<1024>", 2.0, l2_hit_rate=0.5)]
    (row,) = [row for row in judge_cell(stored(tmp_path, rows, [1])).findings.counters if row.kernel == measure.ALL]
    assert row.us == 12.0 and row.l2_hit_rate == 0.5
    assert all(value != value for value in (row.dram_bytes, row.l2_bytes, row.gb_s, row.share_of_copy))


@pytest.mark.parametrize(
    ("step_bytes", "severity"), [(2.9 * GB, "ok"), (3.3 * GB, "ok"), (3.4 * GB, "void"), (0.74 * GB, "warning")]
)
def test_fewer_bytes_than_the_weights_have_void_the_cell(tmp_path, step_bytes, severity):
    """Half of them is what one of two memory ports tells."""
    cell = stored(tmp_path, launches(1), [1], step_bytes=step_bytes)
    judged = judge_cell(cell).findings
    (control,) = [row for row in judged.controls if row.control == "traffic"]
    assert control.severity == severity
    assert {row.void for row in judged.counters} == {severity == "void"}


@pytest.mark.parametrize(
    ("change", "said"),
    [({"widths": [1, 2]}, r"widths \[1, 2\] were configured, \[1\] are counted and \[\] are told"),
     ({"left_out": [{"width": 1, "reason": "r"}]}, "told as left out"),
     ({"decodes": []}, "not decoded without a profiler"),
     ({"rows": [*launches(1), launches(1)[0]]}, "not numbered from 0"),
     ({"rows": [*launches(1), *(Launch(1, 1, place, "other", 1.0) for place in range(3))]}, "launch different kernels"),
     ({"decodes": [row | {"ns": [10], "queued_ns": [20]} for row in timed(1)]},
      "queued after it has ended")],
)  # fmt: skip
def test_what_contradicts_itself_is_void(tmp_path, change, said):
    given = {"rows": launches(1), "widths": [1]} | change
    judged = judge_cell(stored(tmp_path, **given)).findings
    assert any(re.search(said, row.sentence) and row.severity == "void" for row in judged.controls)
    assert all(row.void for row in judged.counters)


def test_a_width_that_was_left_out_has_its_times_and_no_kernels(tmp_path):
    cell = stored(tmp_path, launches(1), [1, 8], left_out=[{"width": 8, "reason": "too long"}])
    rows = [row for row in judge_cell(cell).findings.counters if row.width == 8]
    assert [row.kernel for row in rows] == [measure.ALONE, measure.QUEUED, measure.UNGRAPHED]


def verdicts(cell: StoredCell) -> dict[str, Any]:
    sheet = [claim for claim in load_sheet(CONFIGS / "claims" / "pti.yaml") if claim.scope.get("of") == "decode"]
    return {row.claim_id: row for row in judge_claims(sheet, judge_cell(cell).findings, FACTS)}


def test_what_is_said_of_kernels_on_the_mi50_is_judged_by_counters_there_and_not_elsewhere(tmp_path):
    elsewhere = verdicts(stored(tmp_path, launches(4) + launches(1), [4, 1]))
    assert set(elsewhere) >= {"pti.step_cost.gemm_path", "pti.step_cost.state_update", "pti.bandwidth.rate_444.counted"}
    assert {row.verdict for row in elsewhere.values()} <= {"not_comparable", "not_run"}
    assert elsewhere["pti.step_cost.gemm_path"].verdict == "not_comparable"
    there = verdicts(stored(tmp_path / "there", launches(4) + launches(1), [4, 1], machine="mi50"))
    assert there["pti.step_cost.gemm_path"].verdict == "refuted"
    assert "0" in str(there["pti.step_cost.gemm_path"].measured)
    assert there["pti.bandwidth.rate_444.counted"].verdict == "refuted", "3.3 TB/s"


def test_the_page_shows_the_classes_in_their_order(tmp_path):
    section = decode_counters(Ordered(judge_cell(stored(tmp_path, launches(8) + launches(1), [8, 1])).findings))
    (made,) = section.tables
    text = str(made)
    assert text.index(GEMV) < text.index(SMALL) < text.index(measure.ALL) < text.index(measure.ALONE)
    assert "counted by ncu" in text and "n/a" in text
