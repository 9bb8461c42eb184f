"""`report results=A,B` and `report --check BASE` on real cells; edits of them are slower, or another measurement."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from bench.cli import main
from tests.faults.stored import REFERENCE, Record, record

LOOKUP, PACKED, PROFILE, STAGGER = "9528e9b90995", "ada684ddac68", "35b43824814e", "1c94b71e9a01"
CELLS = (LOOKUP, PACKED, PROFILE, STAGGER)
SEALED = "089d8099b842"
MACHINE = "amd-epyc-2c"
TIMES = ("draft_ns", "decode_ns", "sample_ns", "rollback_ns", "total_ns")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return copied(tmp_path / "base")


def copied(root: Path, *cells: str) -> Path:
    for cell in cells or CELLS:
        shutil.copytree(REFERENCE / MACHINE / cell, root / MACHINE / cell)
    return root


def edited(root: Path, cell: str, edit, machine: str = MACHINE) -> Path:
    """A folder with the same cells, one of them edited."""
    copied(root, *(one for one in CELLS if one != cell))
    changed = record(cell)
    edit(changed)
    changed.machine = machine
    changed.config["machine"] = machine
    changed.write(root)
    return root


def slowed(arm: str, factor: float):
    """An edit: every timed window of an arm takes so many times as long, and what came behind it comes later."""

    def edit(found: Record) -> None:
        runs, ledger = found.tables["runs"], found.tables["ledger"]
        found.scale("runs", ("decode_window_ns",), factor, arm)
        found.scale("rounds", TIMES, factor, arm)
        late = 0
        for place in runs.sort_values("start_ns").index:
            start, end = int(runs.loc[place, "start_ns"]), int(runs.loc[place, "end_ns"])
            scale = factor if runs.loc[place, "arm"] == arm else 1.0
            mine = ledger["run"] == runs.loc[place, "run"]
            ledger.loc[mine, "t_ns"] = (start + late + (ledger.loc[mine, "t_ns"] - start) * scale).astype("int64")
            runs.loc[place, "start_ns"] = start + late
            late += int((end - start) * (scale - 1))
            runs.loc[place, "end_ns"] = end + late

    return edit


def report(*words, capsys) -> tuple[int, str, str]:
    code = main(["report", *map(str, words)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def rows_of(base: Path, present: Path, tmp_path: Path, capsys) -> list[dict[str, str]]:
    code, _, err = report(f"results={base},{present}", f"reports={tmp_path / 'reports'}", capsys=capsys)
    assert code == 0 and not err
    return list(csv.DictReader((tmp_path / "reports" / "compare.csv").open()))


def test_equal_folders_have_the_ratio_1_throughout_and_pass(base, tmp_path, capsys):
    present = copied(tmp_path / "present")
    rows = rows_of(base, present, tmp_path, capsys)
    assert {row["outcome"] for row in rows} == {"no difference"}
    assert {row["ratio"] for row in rows} == {"1", "n/a"}
    assert {row["figure"] for row in rows if row["ratio"] == "n/a"} == {"output"}
    assert {row["figure"] for row in rows} == {"speed-up", "plain tok/s", "output", "acceptance", "step cost"}
    assert {row["cell"] for row in rows} == set(CELLS) and not any(row["changed"] != "n/a" for row in rows)
    code, out, err = report("--check", base, f"results={present}", capsys=capsys)
    assert (code, err) == (0, "") and "nothing is worse beyond its interval" in out


@pytest.mark.parametrize(("arm", "figure", "better"), [
    ("treatment", "speed-up", "speed-up"), ("baseline", "plain tok/s", "speed-up"),
])  # fmt: skip
def test_a_slower_arm_is_the_one_row_that_is_worse(base, tmp_path, capsys, arm, figure, better):
    present = edited(tmp_path / "present", STAGGER, slowed(arm, 1.3))
    rows = rows_of(base, present, tmp_path, capsys)
    worse = [row for row in rows if row["outcome"] == "worse"]
    assert [(row["cell"], row["figure"]) for row in worse] == [(STAGGER, figure)]
    assert float(worse[0]["ratio"]) == pytest.approx(1 / 1.3, rel=0.01)
    assert [row["figure"] for row in rows if row["outcome"] == "better"] == ([] if figure == better else [better])
    code, out, _ = report("--check", base, f"results={present}", capsys=capsys)
    assert code == 1 and "worse: 1 figure" in out
    code, _, _ = report("--check", present, f"results={base}", capsys=capsys)
    assert code == (0 if figure == better else 1), "the other way round it got better"
