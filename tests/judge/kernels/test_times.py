"""Kernel times against ceilings, streams and llama.cpp. The records are invented and follow from a rule."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bench.judge.kernels.times import kernel_rows
from bench.records.kernels import kernel_folders, load_kernels
from tests.judge import kernel_runs
from tests.judge.kernel_runs import READ_GB_S, case, whole_run, without_times


def rows_of(folder: Path, *samples: list, **env) -> list[dict]:
    return kernel_rows(load_kernels(kernel_runs.write(folder / "gpubox", samples, **env)))


def test_shares_and_ratios_are_those_of_the_rule(tmp_path) -> None:
    (row,) = rows_of(tmp_path, case(share=0.9, peer=1.5))
    size = 17408 * 5120 * 34 / 32
    assert row["share_of_read_peak"] == pytest.approx(0.9, rel=2e-3)
    assert row["share_of_read_peak_low"] < 0.9 < row["share_of_read_peak_high"]
    assert row["ratio_to_llama_cpp"] == pytest.approx(1.5)
    assert row["llama_cpp_share"] == pytest.approx(0.6, rel=2e-3)
    assert row["us"] == pytest.approx(size / READ_GB_S * 1e-3 / 0.9, rel=5e-3)
    assert row["gb_s"] == pytest.approx((size + 4 * 5120) / row["us"] * 1e-3)
    assert row["read_gb_s"] == pytest.approx(READ_GB_S, rel=5e-3)
    assert row["share_of_chip_peak"] == pytest.approx(row["gb_s"] / 5000)
    assert row["gflop_s"] == pytest.approx(2 * 17408 * 5120 / row["us"] * 1e-3)
    assert (row["machine"], row["build"], row["cells"]) == ("gpubox", "abc1234", ["kernels"])
    assert not row["void"]


def test_a_variant_that_was_not_timed_again_keeps_the_hash_of_its_sources(tmp_path) -> None:
    earlier = {"source_hash": "before", "variants": ["old"]}
    found = rows_of(tmp_path, case("old"), case("new"), source_hash="now", earlier=earlier)
    assert {row["variant"]: row["source_hash"] for row in found} == {"old": "before", "new": "now"}
    for place, damaged in enumerate(("damaged", {"variants": 5}, {})):
        (row,) = rows_of(tmp_path / str(place), case("new"), source_hash="now", earlier=damaged)
        assert row["source_hash"] == "now"


def test_cost_of_streams_is_paired_in_blocks_and_divides_by_its_own_single_stream(tmp_path) -> None:
    quick = case("quick", streams=1, share=0.9)
    slow = [case("slow", streams=1, share=0.45), case("slow", streams=4, share=0.40)]
    # A block that is twice as slow for everybody changes no ratio.
    for samples in (quick, *slow):
        for name in ("us", "ceiling_us", "peer_us"):
            samples[2][name] *= 2
    found = {(row["variant"], row["streams"]): row for row in rows_of(tmp_path, quick, *slow)}
    four = found["slow", 4]
    assert four["relative_cost"] == pytest.approx(0.45 / 0.40)
    assert four["relative_cost_high"] - four["relative_cost_low"] < 0.01
    # A kernel that is slow alone gains nothing by it.
    assert four["cost_over_best_single"] == pytest.approx(0.9 / 0.40)
    assert four["llama_cpp_relative_cost"] == pytest.approx(0.45 / 0.40)
    assert math.isnan(rows_of(tmp_path / "x", case(streams=4))[0]["relative_cost"])


def test_what_multiplies_nothing_is_no_single_stream(tmp_path) -> None:
    read = case("stream_read", share=1.0, max_rel_err=0, tolerance=0)
    own = [case("own", share=0.8), case("own", streams=2, share=0.8)]
    found = rows_of(tmp_path, read, case("weight_only", share=0.95), *own)
    assert [row["cost_over_best_single"] for row in found][2:] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("error", [0.02, math.nan, math.inf])
def test_a_kernel_that_failed_its_check_has_no_time(tmp_path, error: float) -> None:
    wrong = case(max_rel_err="" if math.isnan(error) else error)
    (row,) = rows_of(tmp_path, wrong)
    assert row["status"] == "failed" and "not found right" in row["reason"]
    told = ("us", "gb_s", "share_of_read_peak", "relative_cost", "ratio_to_llama_cpp")
    assert all(math.isnan(row[name]) for name in told)


def test_one_bad_block_is_enough(tmp_path) -> None:
    samples = case()
    samples[3]["max_rel_err"] = 0.5
    assert rows_of(tmp_path, samples)[0]["status"] == "failed"


def test_what_could_not_run_is_a_row_with_its_reason(tmp_path) -> None:
    (row,) = rows_of(tmp_path, without_times("unsupported", "needs matrix units", variant="wide"))
    assert (row["status"], row["reason"]) == ("unsupported", "needs matrix units")
    assert math.isnan(row["us"]) and not row["fastest"]


def test_a_time_below_that_of_a_plain_read_is_void(tmp_path) -> None:
    (row,) = rows_of(tmp_path, case(share=1.2))
    assert row["void"] and "120." in row["void_reason"] and "plain read" in row["void_reason"]
    # Within the noise of the read itself it is not.
    assert not rows_of(tmp_path / "x", case(share=1.001))[0]["void"]


def test_a_void_time_is_no_best_single(tmp_path) -> None:
    impossible, ours = rows_of(tmp_path, case("quick", share=1.2) + case("ours", share=0.9))
    assert impossible["void"]
    assert ours["cost_over_best_single"] == pytest.approx(1.0)


def test_more_than_the_chip_can_read_is_void_when_cold(tmp_path) -> None:
    assert "chip's peak" in rows_of(tmp_path, case(share=0.9), peak_gb_s=3000.0)[0]["void_reason"]
    assert not rows_of(tmp_path / "x", case(share=0.9, cache="warm"), peak_gb_s=3000.0)[0]["void"]


def test_bytes_for_each_multiply(tmp_path) -> None:
    found = rows_of(tmp_path, case(streams=1), case(streams=4), case("ssq_twin", "SSQ", 2))
    assert [row["bytes_per_multiply"] for row in found] == pytest.approx([34 / 32, 34 / 128, 68 / 64])


def test_records_that_are_damaged_name_file_and_line(tmp_path) -> None:
    def told(folder: Path) -> str:
        (sentence,) = load_kernels(folder).damage
        return sentence

    folder = kernel_runs.write(tmp_path / "a", [case(us=0)])
    assert told(folder) == "timings.csv.gz: line 2: a time is not above 0"
    folder = kernel_runs.write(tmp_path / "b", [case(block="x")])
    assert told(folder) == "timings.csv.gz: line 2: block is 'x', expected a number"
    folder = kernel_runs.write(tmp_path / "c", [case()])
    whole = (folder / "timings.csv.gz").read_bytes()
    (folder / "timings.csv.gz").write_bytes(whole[:-20])
    assert told(folder).startswith("timings.csv.gz: Compressed file ended")
    (folder / "timings.csv.gz").write_bytes(whole)
    (folder / "env.json").write_text("{")
    assert told(folder).startswith("env.json: Expecting property name")
    folder = kernel_runs.write(tmp_path / "d", [], {"strange.csv": "x"})
    assert told(folder).startswith("counters/strange.csv: the name does not tell the case")


def test_folders_of_the_reference_are_read_where_there_are_no_others(tmp_path) -> None:
    reference = kernel_runs.write(tmp_path / "reference" / "box", whole_run())
    assert kernel_folders(tmp_path) == [reference]
    own = kernel_runs.write(tmp_path / "mine", whole_run())
    assert kernel_folders(tmp_path) == [own]
