"""Cells judged in several processes: the same findings in the same order, and the same errors."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from bench.children import children
from bench.errors import UserError
from bench.judge import judge
from bench.records.cells import load_cells, whole_cells
from bench.records.identity import cell_id
from bench.records.rows import TABLES
from bench.stored import judge_stored
from tests.judge.judge_cells import Arm, Cell, guess_cell, profile_cell

BEFORE_MANIFESTS = 2


def profile(curve: dict[int, float], **how: str) -> Cell:
    """A profile under its own id: a void one would price nothing."""
    made = profile_cell(curve, **how)  # type: ignore[arg-type]
    made.config["measure"] = {"step_widths": max(curve)}
    object.__setattr__(made, "cell", cell_id({"schema": BEFORE_MANIFESTS, **made.config}, "b1"))
    return made


PROFILE = profile({1: 50, 3: 40}).cell


def store(cell: Cell, root: Path) -> None:
    """Write a stand-in as a cell folder, in the store's format."""
    folder = root / cell.machine / cell.cell
    folder.mkdir(parents=True)
    (folder / "cell.yaml").write_text(yaml.safe_dump({"schema": BEFORE_MANIFESTS, **cell.config}))
    for name in ("env", "facts", "status"):
        (folder / f"{name}.json").write_text(json.dumps(getattr(cell, name)))
    for name in TABLES:
        if len(getattr(cell, name)):
            getattr(cell, name).to_csv(folder / f"{name}.csv.gz", index=False, na_rep="nan")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Contrasts on both sides of the profiles, a loop that repeats itself, a failed cell, a void one, a steps table."""
    repeating = Arm(round_ms=62.5, repeat=3, drafted=2, accepted=1)
    failed = guess_cell(cell="cell-failed")
    failed.status.update(state="failed", reason="no memory")
    stepped = guess_cell(cell="cell-stepped")
    object.__setattr__(stepped, "steps", profile_cell({1: 50}).steps)
    cells = [
        *(guess_cell(cell=f"cell{number:02d}") for number in range(9)), failed, stepped,
        guess_cell(repeating, cell="cell-twice", method={"name": "stagger"}),
        guess_cell(cell="cell-void", change=lambda builder: builder.runs.pop()),
        profile({1: 50, 3: 40}), profile({1: 20, 3: 30, 5: 60}, layout="sequences"),
        guess_cell(cell="zz-after"),
    ]  # fmt: skip
    for cell in cells:
        store(cell, tmp_path)
    return tmp_path


def test_processes_and_order_change_nothing(root: Path) -> None:
    expected = judge(load_cells(root))
    assert expected.predictions[0]["predicted_from"] == PROFILE and expected.timeline and expected.step_cost
    assert {row["state"] for row in expected.cells} == {"done", "failed"}
    # As text, because nan is not equal to itself.
    for processes in (1, 2):
        assert repr(judge_stored(whole_cells(root), processes)) == repr(expected)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("cell", ["cell04", PROFILE])
def test_a_damaged_cell_is_a_row_wherever_it_is_read(root: Path, cell: str, processes: int) -> None:
    (root / "box" / cell / "facts.json").write_text("{")
    findings = judge_stored(whole_cells(root), processes)
    assert repr(findings) == repr(judge(load_cells(root)))
    (row,) = (row for row in findings.cells if row["state"] == "damaged")
    assert (row["cell"], row["machine"]) == (cell, "box")
    assert row["reason"].startswith("facts.json: ")
    assert not [row for row in findings.speedup + findings.step_cost if cell in row["cells"]]
    assert len(findings.cells) == len(whole_cells(root))


def test_a_process_that_is_ended_from_outside_is_a_user_error() -> None:
    with pytest.raises(UserError, match="ended from outside"), children(1) as pool:
        pool.submit(os._exit, 9).result()
