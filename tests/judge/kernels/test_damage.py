"""Damaged kernel records: a row of the table of cells with the reason, and every other file's figures as they were."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.cli import main
from bench.judge.findings import Findings
from bench.judge.kernels.findings import judge_kernels
from tests.judge import kernel_runs
from tests.judge.kernel_runs import case, ncu, whole_run

PROFILE = "ncu_ours_Q8_0_n1_17408x5120.csv"
STATIC = "arch,kernel,vgprs\nsm_90,gemv,84\n"


def folder(root: Path) -> Path:
    made = kernel_runs.write(root, whole_run(), {PROFILE: ncu("gemv(int)", us=("us", 20.0), dram=("byte", 1e8))})
    (made / "static.csv").write_text(STATIC)
    return made


def judged(*folders: Path) -> Findings:
    return judge_kernels(Findings(), folders)


def cut(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-15])


def put(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content)


def edited(old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "timings.csv.gz"
        path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).decode().replace(old, new).encode()))

    return change


def other_kind(name: str, make: Callable[[Path], None]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return change


DAMAGE = {
    "timings cut": (cut("timings.csv.gz"), "timings.csv.gz: Compressed file ended", ("counters", "kernel_resources")),
    "a bit": (put("timings.csv.gz", b"\x1f\x8b\x08" + b"x" * 80), "timings.csv.gz: ", ("counters", "kernel_resources")),
    "no column": (edited("bytes_read", "bytes_written"), "timings.csv.gz: it lacks the column bytes_read",
                  ("counters", "kernel_resources")),
    "no format": (edited(",17408,", ",0,"), "it cannot be judged (", ("kernel_resources",)),
    "env empty": (put("env.json", b""), "env.json: ", ()),
    "env list": (put("env.json", b"[1]"), "env.json: it holds no mapping", ()),
    "env deep": (put("env.json", b"[" * 100_000), "env.json: it is nested too deep", ()),
    "peak text": (put("env.json", b'{"peak_gb_s": "fast"}'), "it cannot be judged (ValueError",
                  ("counters", "kernel_resources")),
    "static bytes": (put("static.csv", b"\xff\xfe\0"), "static.csv: ", ("kernels", "counters", "ssq")),
    "static column": (put("static.csv", b"arch,colour\nsm_90,red\n"), "static.csv has the column 'colour'",
                      ("kernels", "counters", "ssq")),
    "odd name": (put("counters/odd.csv", b"x"), "counters/odd.csv: the name does not tell the case",
                 ("kernels", "counters", "ssq", "kernel_resources")),
    "pipe": (other_kind("timings.csv.gz", os.mkfifo), "timings.csv.gz: it is a pipe", ("counters", "kernel_resources")),
    "folder": (other_kind("static.csv", Path.mkdir), "static.csv: Is a directory", ("kernels", "counters", "ssq")),
    "loop": (other_kind("static.csv", lambda path: path.symlink_to(path)), "static.csv: Too many levels",
             ("kernels", "counters", "ssq")),
    "nowhere": (other_kind("timings.csv.gz", lambda path: path.symlink_to("gone")), "timings.csv.gz: No such file",
                ("counters", "kernel_resources")),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_a_row_and_the_other_files_are_judged(tmp_path: Path, kind: str) -> None:
    damage, reason, left = DAMAGE[kind]
    place, other = folder(tmp_path / "box"), folder(tmp_path / "other")
    sound, beside = judged(place), judged(other)
    assert not sound.cells and sound.kernels and sound.counters and sound.kernel_resources and sound.ssq
    damage(place)
    found = judged(place, other)
    (told,) = found.cells
    assert (told.machine, told.cell, told.kind, told.state) == ("box", "kernels", "kernels", "damaged")
    assert reason in told.reason and told.reason.endswith("; run `python -m bench kernels` again")
    assert str(tmp_path) not in told.reason
    for name in ("kernels", "counters", "kernel_resources", "ssq"):
        rows = getattr(found, name)
        assert repr([row for row in rows if row.machine == "other"]) == repr(getattr(beside, name))
        if name in left and kind != "timings cut":
            assert len([row for row in rows if row.machine == "box"]) == len(getattr(sound, name)), name


def test_a_report_over_it_says_so_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut("timings.csv.gz")(folder(tmp_path / "results" / "box"))
    folder(tmp_path / "results" / "other")
    reports = tmp_path / "reports"
    assert main(["report", f"results={tmp_path / 'results'}", f"reports={reports}"]) == 1
    assert "  box/kernels: timings.csv.gz: Compressed file ended" in capsys.readouterr().err
    assert "| kernels | timings.csv.gz: Compressed" in (reports / "report.md").read_text().partition("## ")[2]
    with (reports / "kernels.csv").open(newline="") as file:
        assert {row["machine"] for row in csv.DictReader(file)} == {"other"}


def test_many_damaged_files_are_counted(tmp_path: Path) -> None:
    place = kernel_runs.write(tmp_path / "box", [case()], {f"odd{number}.csv": "" for number in range(9)})
    (told,) = judged(place).cells
    assert told.reason.count(".csv: ") == 3 and "; and 6 more; " in told.reason
