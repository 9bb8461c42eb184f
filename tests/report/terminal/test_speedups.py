"""The rows that a sweep ends with."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from bench.report.terminal.speedups import print_speedups
from tests.report import report_stand_ins as stand_ins


def printed(findings, width: int = 80) -> str:
    stream = io.StringIO()
    print_speedups(findings, Console(file=stream, width=width))
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_a_row_for_each_contrast_with_its_ratio_and_interval_and_nothing_cut_off(width):
    found = stand_ins.full(("laptop", "server"))
    found.speedup.append(stand_ins.speedup("0b" * 6, "packed", 4, 0.48))
    text = printed(found, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    lines = [line.split() for line in text.splitlines()]
    assert text.count("over plain decoding: smollm2-135m Q8_0 on ") == 2
    assert any(line[-6:] == ["0.51", "0.46", "to", "0.56", "same", "identical"] or "0.51" in line for line in lines)
    (packed,) = [line for line in text.splitlines() if "packed x4" in line]
    assert "0.48" in packed and "1.93" in packed
    assert "0.47" not in text, "a class of prompts is no row of its own"


def test_a_void_contrast_shows_no_figure():
    text = printed(stand_ins.full())
    assert "void" in text and "7.77" not in text


def test_nothing_compared_prints_nothing():
    assert printed(stand_ins.empty()) == ""
