"""Counters beside what the weights have, and what SSQ saves. Every number is invented."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench.judge.findings import Findings
from bench.judge.kernels.findings import judge_kernels
from tests.judge import kernel_runs
from tests.judge.kernel_runs import case, ncu, whole_run

WEIGHTS = 17408 * 5120 * 34 / 32
FULL = ncu(
    "void quick<4>(const int *, int)", dram=("Mbyte", 95.2), l2=("Mbyte", 189.4), hits=("%", 61.5), us=("us", 26.1),
    share=("%", 76.5), registers=("register/thread", 84),
)  # fmt: skip


def judged(tmp_path, counters: dict[str, str]) -> Findings:
    return judge_kernels(Findings(), [kernel_runs.write(tmp_path / "gpubox", whole_run(), counters)])


def test_a_row_a_kernel_with_its_traffic_over_the_weights(tmp_path) -> None:
    (row,) = judged(tmp_path, {"ncu_quick_Q8_0_n4_17408x5120.csv": FULL}).counters
    assert (row["kernel"], row["variant"], row["format"], row["width"], row["tool"]) == (
        "quick<4>", "quick", "Q8_0", 4, "ncu",
    )  # fmt: skip
    assert (row["dram_bytes"], row["us"], row["registers"]) == (95.2e6, 26.1, 84)
    assert (row["l2_hit_rate"], row["share_of_peak"]) == pytest.approx((0.615, 0.765))
    assert row["dram_over_weights"] == pytest.approx(95.2e6 / WEIGHTS)
    assert row["other_l2_over_weights"] == pytest.approx((189.4e6 - WEIGHTS) / WEIGHTS)
    assert not row["void"] and not row["helper"]


def test_kernels_that_only_prepare_are_told_apart(tmp_path) -> None:
    both = FULL + ncu("quantise_plain(float)", dram=("Kbyte", 20)).split("\n", 2)[2].replace('"0",', '"1",')
    rows = judged(tmp_path, {"ncu_quick_Q8_0_n4_17408x5120.csv": both}).counters
    assert [(row["kernel"], row["helper"]) for row in rows] == [("quick<4>", False), ("quantise_plain", True)]
    assert math.isnan(rows[1]["dram_over_weights"])


def test_launches_of_one_kernel_give_their_median(tmp_path) -> None:
    head, *lines = ncu("k(int)", dram=("byte", 10)).splitlines()[1:]
    text = "\n".join([head, *(line.replace('"0",', f'"{n}",').replace('"10"', f'"{10 * n}"')
                              for n in (1, 2, 9) for line in lines)])  # fmt: skip
    (row,) = judged(tmp_path, {"ncu_quick_Q8_0_n4_17408x5120.csv": text}).counters
    assert (row["launches"], row["dram_bytes"]) == (3, 20)


def test_a_counter_that_was_not_collected_is_missing(tmp_path) -> None:
    text = ncu("k(int)", dram=("byte", 0), us=("us", 5))
    (row,) = judged(tmp_path, {"ncu_quick_Q8_0_n4_17408x5120.csv": text}).counters
    assert math.isnan(row["dram_bytes"]) and row["missing"] == "dram__bytes_read.sum"


def test_a_file_that_cannot_be_read_is_a_void_row_that_names_file_and_line(tmp_path) -> None:
    found = judged(tmp_path, {"ncu_quick_Q8_0_n4_17408x5120.csv": FULL + '"0","k"\n'})
    (row,) = found.counters
    assert row["void"] and str(tmp_path) not in row["void_reason"]
    assert row["void_reason"].startswith("ncu_quick_Q8_0_n4_17408x5120.csv, line 9: has 2 fields, the header has 6")


def test_a_share_above_its_whole_is_void(tmp_path) -> None:
    text = ncu("k(int)", share=("%", 101.5))
    assert judged(tmp_path, {"ncu_quick_Q8_0_n4_17408x5120.csv": text}).counters[0]["void"]


def test_twins_of_one_model_move_twice_the_bytes_of_one_shared_matrix(tmp_path) -> None:
    counted = {"ncu_ssq_twin_SSQ_n2_17408x5120.csv": ncu("ssq_twin(int)", dram=("Mbyte", 190.0))}
    rows = [row for row in judged(tmp_path, counted).ssq if row["rows"] == 17408]
    found = {row["layout"]: row for row in rows}
    assert {name: row["bytes_per_multiply"] for name, row in found.items()} == {
        "shared_q8": 34 / 64, "ssq_identical": 68 / 64, "two_q8": 68 / 64, "ssq_different": 68 / 64,
    }  # fmt: skip
    assert found["ssq_identical"]["weight_bytes"] == 2 * found["shared_q8"]["weight_bytes"]
    assert found["ssq_different"]["weight_bytes"] == found["two_q8"]["weight_bytes"]
    assert found["ssq_identical"]["measured_over_one_model"] == pytest.approx(190e6 / WEIGHTS)
    assert found["ssq_identical"]["us_over_one_model"] == pytest.approx(2 * 0.92 / 0.90, rel=5e-3)
    assert (found["shared_q8"]["variant"], found["two_q8"]["evidence"]) == ("quick", "derived")
    assert found["two_q8"]["us_over_one_model"] == pytest.approx(2.0)
    assert math.isnan(found["shared_q8"]["measured_over_one_model"])
    assert math.isnan(found["two_q8"]["us_over_one_model_low"]), "nobody timed two matrices together"


def test_the_interval_of_two_times_is_that_of_independent_errors(tmp_path) -> None:
    found = judged(tmp_path, {})
    (row,) = [row for row in found.ssq if (row["rows"], row["layout"]) == (17408, "ssq_identical")]
    rows = {(one["variant"], one["streams"]): one for one in found.kernels if one["rows"] == 17408 and one["fastest"]}
    logs = [np.log([rows[key][f"share_of_read_peak_{end}"] for end in ("low", "high")])
            for key in (("ssq_twin", 2), ("quick", 1))]  # fmt: skip
    spread = np.random.default_rng(3).normal(0, [np.diff(ends)[0] / 2 / 1.96 for ends in logs], (400_000, 2))
    ends = row["us_over_one_model"] * np.exp(np.quantile(spread[:, 0] - spread[:, 1], [0.025, 0.975]))
    assert (row["us_over_one_model_low"], row["us_over_one_model_high"]) == pytest.approx(tuple(ends), rel=1e-3)


def test_without_an_ssq_kernel_there_is_nothing_to_say_about_it(tmp_path) -> None:
    assert judge_kernels(Findings(), [kernel_runs.write(tmp_path / "box", [case()])]).ssq == []
