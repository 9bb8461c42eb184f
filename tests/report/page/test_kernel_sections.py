"""Kernel records on the page and in the figures, through the command. Every number is invented."""

from __future__ import annotations

import csv

import pytest

from bench.cli import main
from tests.judge import kernel_runs
from tests.judge.kernel_runs import case, ncu, whole_run

STATIC = "arch,kernel,vgprs,agprs,sgprs,lds_bytes,scratch_bytes,spilled,waves_per_simd,source,status,reason\n" + (
    "gfx906,quick<4>,63,,32,0,0,0,4,q.cu,ok,\nsm_90,quick<4>,84,,,0,0,12,5,q.cu,ok,\nsm_80,,,,,,,,,q.cu,failed,why\n"
)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report over kernel records alone."""
    folder = tmp_path_factory.mktemp("kernels")
    counters = {"ncu_quick_Q8_0_n4_17408x5120.csv": ncu("void quick<4>(int)", dram=("Mbyte", 95.2))}
    wrong = case("wrong_one", streams=2, max_rel_err=0.7, us=0.123456)
    impossible = case("too_good", streams=2, share=3.0)
    kernels = kernel_runs.write(folder / "results" / "gpubox", [*whole_run(), wrong, impossible], counters)
    (kernels / "static.csv").write_text(STATIC)
    assert main(["report", f"results={folder / 'results'}", f"reports={folder / 'reports'}"]) == 0
    return folder / "reports"


def test_every_case_has_a_row_and_none_without_a_check_a_time(report) -> None:
    rows = list(csv.DictReader((report / "kernels.csv").open()))
    assert list(rows[0])[:11] == [
        "variant", "format", "streams", "rows", "cols", "us", "gb_s", "share_of_read_peak", "relative_cost",
        "ratio_to_llama_cpp", "max_rel_err",
    ]  # fmt: skip
    failed = [row for row in rows if row["status"] != "ok"]
    assert {row["variant"] for row in failed} == {"wide", "wrong", "wrong_one"}
    assert {row["us"] for row in failed} == {"n/a"}


def test_the_page_shows_the_fastest_sound_kernel_and_why_others_have_no_time(report) -> None:
    page = (report / "report.md").read_text()
    section = page[page.index("## Kernels") : page.index("## Counters")]
    assert "| 17408 x 5120 | Q8_0 | 4 | quick | repacked, 1.0625 B a weight |" in section
    assert "| slow |" not in section
    why = "its result was not found right: the error is 0.7, the tolerance 0.01"
    assert f"| failed | wrong_one | 1 | {why} |" in section
    assert "| void | too_good | 1 | impossible: 300." in section
    assert "compiler an invented compiler" in section
    assert "| one Q8_0 matrix, two activation vectors | identical | 0.5312 |" in page
    assert "| quick<4> | 63 / 4 | 84 / 5, 12 spilled |" in page


def test_figures_are_drawn_and_say_what_they_rest_on(report) -> None:
    lines = {row["figure"]: row for row in csv.DictReader((report / "figures" / "figures.csv").open())}
    assert set(lines) == {"kernel_share", "kernel_cost", "kernel_roofline"}
    assert all(row["cells"] == "kernels" and "machine gpubox" in row["condition"] for row in lines.values())
    drawn = (report / "figures" / "kernel_share.svg").read_text()
    assert drawn.startswith("<?xml")


def test_counters_and_ssq_have_files_of_their_own(report) -> None:
    (row,) = csv.DictReader((report / "counters.csv").open())
    assert (row["kernel"], row["width"], row["dram_bytes"], row["l2_bytes"]) == ("quick<4>", "4", "95200000", "n/a")
    assert len(list(csv.DictReader((report / "ssq.csv").open()))) == 8
    assert len(list(csv.DictReader((report / "kernel_resources.csv").open()))) == 3


def test_a_report_without_kernel_records_has_no_trace_of_them(tmp_path, report) -> None:
    from bench.judge.findings import Findings
    from bench.report import write_report

    (tmp_path / "kernels.csv").write_text("of an earlier report\n")
    write_report(Findings(), [], tmp_path, figures=False)
    assert not [path for path in tmp_path.iterdir() if path.stem in ("kernels", "counters", "ssq", "kernel_resources")]
    assert "ernel" not in (tmp_path / "report.md").read_text()
