"""Kernel times, counters and the SSQ table with round figures: each column by hand, each threshold from both sides."""

from __future__ import annotations

import math
from typing import Any

import pytest

from bench.judge.kernels.counters import _figures
from bench.judge.kernels.ssq import economics
from bench.judge.kernels.times import fastest, is_sound, kernel_rows
from bench.judge.tables.kernels import Counter, Kernel
from bench.records.kernels import KernelRecords, Sample, Summary
from kernels.counters import short_name


def sample(block: int = 0, us: float = 100.0, **more: Any) -> Sample:
    values: dict[str, Any] = {
        "variant": "ours",
        "format": "Q8_0",
        "streams": 1,
        "rows": 1000,
        "cols": 200,
        "cache": "cold",
        "status": "ok",
        "reason": "",
        "layout": "file",
        "bytes_per_weight": 1.0,
        "weight_bytes": 200_000.0,
        "bytes_read": 250_000.0,
        "max_rel_err": 0.01,
        "tolerance": 0.01,
        "block": block,
        "us": us,
        "ceiling_us": 80.0,
        "copy_gb_s": 3.0,
        "peer_us": 150.0,
    }
    return Sample(**{**values, **more})


def rows(*samples: Sample, **env: Any) -> list[Kernel]:
    return kernel_rows(KernelRecords("box", {"peak_gb_s": 5.0, **env}, list(samples), [], []))


def test_a_row_by_hand() -> None:
    (row,) = rows(sample(), sample(1, 100.0), sample(2, 100.0))
    assert (row.us, row.gb_s, row.read_gb_s, row.copy_gb_s) == (100.0, 2.5, 2.5, 3.0)
    assert (row.share_of_chip_peak, row.gflop_s, row.blocks) == (0.5, 4.0, 3)
    assert (row.share_of_read_peak, row.ratio_to_llama_cpp) == (0.8, 1.5)
    assert row.llama_cpp_share == pytest.approx(80 / 150) and row.bytes_per_multiply == 1.0
    assert rows(sample(weight_bytes=0.0))[0].read_gb_s == 250_000 / 80 * 1e-3, "what is read where there are no weights"
    assert math.isnan(rows(sample(), peak_gb_s=None)[0].share_of_chip_peak)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"max_rel_err": 0.0101}, "the error is 0.01, the tolerance 0.01"),
        ({"max_rel_err": math.nan}, "no error was"),
        ({"status": "failed", "reason": "it broke", "us": math.nan}, "it broke"),
        ({}, ""),
    ],
)
def test_a_result_that_was_not_right_has_no_time(more: dict[str, Any], reason: str) -> None:
    (row,) = rows(sample(), sample(1, **more))
    assert row.status == ("failed" if reason else "ok") and reason in row.reason
    assert math.isnan(row.us) == bool(reason) and is_sound(row) != bool(reason)


def test_a_time_below_that_of_a_read_is_void() -> None:
    quick, fair = (rows(*(sample(block, us) for block in range(3)))[0] for us in (79.9, 80.1))
    assert quick.void and "100.1 % of the time that a plain read" in quick.void_reason and not fair.void
    assert not rows(*(sample(block, 79.9, variant="stream_read") for block in range(3)))[0].void
    peak, below = (rows(sample(bytes_read=size))[0] for size in (500_100.0, 499_900.0))
    assert peak.void and "5 GB/s from memory, 100 % of the chip's peak" in peak.void_reason and not below.void
    assert not rows(sample(bytes_read=600_000.0, cache="warm"))[0].void


def test_costs_of_streams_divide_by_one_stream_of_the_same_matrix() -> None:
    found = rows(
        sample(),
        sample(1),
        sample(us=300.0, streams=4),
        sample(1, 300.0, streams=4),
        sample(us=50.0 + 40, variant="best"),
        sample(1, 90.0, variant="best"),
        sample(us=10.0, variant="softmax", ceiling_us=9.0),
        sample(us=60.0, cols=400),
        sample(us=81.0, variant="void", ceiling_us=82.0),
        sample(1, 81.0, variant="void", ceiling_us=82.0),
    )
    four = next(row for row in found if row.streams == 4)
    assert four.relative_cost == pytest.approx(3.0) and four.cost_over_best_single == pytest.approx(300 / 90)
    assert four.llama_cpp_relative_cost == pytest.approx(1.0)
    assert [row.variant for row in found if row.fastest] == ["ours", "best", "ours"], (
        "four streams, one, the other shape"
    )
    assert next(row for row in found if row.variant == "void").void
    assert [row["us"] for row in fastest([dict(row) for row in found if row.streams == 4])] == [300.0]


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void gemv<4>(const float *)", "gemv<4>"),
        ("gemv(float*)", "gemv"),
        ("gemv<1>(float*) [clone .kd]", "gemv<1>"),
        ("void gemv<(int)4>(const float *)", "gemv<(int)4>"),
        ("plain", "plain"),
    ],
)
def test_a_kernels_name_without_its_arguments(name: str, short: str) -> None:
    assert short_name(name) == short


def summary(**figures: float) -> Summary:
    names = Summary.__dataclass_fields__
    return Summary(**{name: figures.get(name) for name in names})  # type: ignore[arg-type]


def test_counters_over_the_weights() -> None:
    found = _figures(
        "gemv",
        [
            summary(dram_bytes=100.0, l2_bytes=150.0),
            summary(dram_bytes=120.0, l2_bytes=170.0),
            summary(dram_bytes=900.0),
        ],
        100.0,
    )
    assert (found["dram_bytes"], found["dram_over_weights"], found["launches"]) == (120.0, 1.2, 3)
    assert found["other_l2_over_weights"] == pytest.approx(0.6) and math.isnan(found["us"]) and not found["void"]
    helper = _figures("quantize_rows", [summary(dram_bytes=100.0, l2_bytes=150.0)], 100.0)
    assert helper["helper"] and math.isnan(helper["dram_over_weights"]) and math.isnan(helper["other_l2_over_weights"])
    for name in ("share_of_peak", "l2_hit_rate"):
        assert _figures("gemv", [summary(**{name: 1.01})], 1.0)["void"]
        assert not _figures("gemv", [summary(**{name: 1.0})], 1.0)["void"]


def test_the_four_ways_to_serve_two_streams() -> None:
    shape = {"rows": 320, "cols": 10}
    more = {"weight_bytes": 3400.0, "bytes_read": 3400.0, **shape}
    kernels = rows(
        *(sample(block, 100.0, **more) for block in range(3)),
        *(sample(block, 110.0, streams=2, **more) for block in range(3)),
        *(sample(block, 130.0, format="SSQ", streams=2, variant="twin", **more) for block in range(3)),
    )
    counters = [
        Counter(
            machine="box",
            build="b",
            cells=["kernels"],
            tool="ncu",
            width=2,
            variant="twin",
            format="SSQ",
            streams=2,
            kernel="twin",
            rows=320,
            cols=10,
            dram_bytes=7000.0,
            helper=False,
            void=False,
        ),
    ]
    found = {row.layout: row for row in economics(kernels, counters)}
    assert list(found) == ["shared_q8", "ssq_identical", "two_q8", "ssq_different"]
    assert [row.weight_bytes for row in found.values()] == [3400, 6800, 6800, 6800]
    assert [row.bytes_over_one_model for row in found.values()] == [1, 2, 2, 2]
    assert [row.bytes_per_multiply for row in found.values()] == pytest.approx([0.53125, 1.0625, 1.0625, 1.0625])
    assert [row.us for row in found.values()] == [110, 130, 200, 130]
    assert [row.us_over_one_model for row in found.values()] == pytest.approx([1.1, 1.3, 2.0, 1.3])
    assert [row.evidence for row in found.values()] == ["measured", "measured", "derived", "measured"]
    twin = found["ssq_different"]
    assert (twin.dram_bytes, twin.measured_over_one_model) == (7000.0, pytest.approx(7000 / 3400))
    assert twin.measured_bytes_per_multiply == pytest.approx(7000 / 6400)
    assert twin.us_over_one_model_low < 1.3 <= twin.us_over_one_model_high and math.isnan(
        found["two_q8"].us_over_one_model_low
    )
    assert math.isnan(found["shared_q8"].dram_bytes)
    assert math.isnan(
        economics(kernels, [counters[0].__class__(**{**dict(counters[0]), "helper": True})])[1].dram_bytes
    )
