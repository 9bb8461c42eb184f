"""What docs/limits.md says that a forger can still do comes out as sound, and what it says that he cannot, does not."""

from __future__ import annotations

import pytest

from bench.judge.damage import judge_whole
from bench.records.cells import read_cell
from tests.faults.forged import FORGED, OF_BASELINE, OF_TREATMENT, another_machine, stretch
from tests.faults.records import LOOKUP, MTP, WHOLE
from tests.faults.stored import Record, judged, record

NEWEST = "b3ace169c1b2"
GAIN = {"all of time is scaled": 1.0, "the treatment's times are scaled": 4 / 3, "the baseline waited": 1.3,
        "it was another machine": 1.0}  # fmt: skip


def speed(folder) -> float:
    rows = judge_whole(read_cell(folder), []).findings.speedup
    return next(float(row["speedup"]) for row in rows if row["prompt_class"] == "all")


@pytest.mark.parametrize("cell", [LOOKUP, WHOLE, MTP, NEWEST])
@pytest.mark.parametrize("name", FORGED)
def test_no_check_tells_a_cell_whose_columns_all_agree(name: str, cell: str, tmp_path) -> None:
    honest, forged = record(cell), record(cell)
    FORGED[name](forged)
    folders = honest.write(tmp_path / "honest"), forged.write(tmp_path / "forged")
    before, after = map(judged, folders)
    assert (after.verdict, set(after.said)) == (before.verdict, set(before.said)), after
    # Which of the runs that a stall disturbed are left out may change with the times.
    assert speed(folders[1]) / speed(folders[0]) == pytest.approx(GAIN[name], rel=0.03)


def _two_fifths(forged: Record) -> None:
    stretch(forged, 0.4, OF_TREATMENT)


def _thrice(forged: Record) -> None:
    stretch(forged, 3, OF_BASELINE)


def _with_the_old_folder(forged: Record) -> None:
    another_machine(forged)
    forged.machine = "amd-epyc-2c"


@pytest.mark.parametrize(
    ("edit", "cell", "check"),
    [(_two_fifths, LOOKUP, "decodes"), (_two_fifths, MTP, "sabotage"), (_thrice, LOOKUP, "decodes"),
     (_thrice, LOOKUP, "seconds"), (_thrice, MTP, "seconds"), (_with_the_old_folder, LOOKUP, "machine")],
)  # fmt: skip
def test_where_he_goes_further_a_check_tells(edit, cell: str, check: str, tmp_path) -> None:
    forged = record(cell)
    edit(forged)
    found = judged(forged.write(tmp_path))
    assert found.verdict == "void" and check in found.said, found
