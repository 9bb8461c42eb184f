"""The list of invariants: the guide has each, a profile is asked its own, and a void profile has no rows."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from bench.judge import judge
from bench.judge.invariants import INVARIANTS, invariants
from bench.machine_name import machine_id
from bench.records.cells import load_cell, load_cells
from bench.records.identity import cell_id, stored_id
from tests.faults.stored import folder_of
from tests.judge.judge_cells import case_of, guess_cell, profile_cell

ROOT = Path(__file__).parents[3]


def test_the_guide_has_every_invariant_in_its_words():
    guide = (ROOT / "docs" / "method.md").read_text()
    rows = dict(re.findall(r"^\| (\w+) \| (.*) \|$", guide, re.MULTILINE))
    assert {one.name: one.words for one in INVARIANTS}.items() <= rows.items()


def test_names_are_told_apart_and_are_none_of_the_other_controls():
    names = [one.name for one in INVARIANTS]
    assert len(set(names)) == len(names)
    others = {row["control"] for row in judge([guess_cell()]).controls} - {"invariants"}
    assert not others & set(names)


def test_a_sound_cell_says_how_many_hold():
    (told,) = invariants(case_of(guess_cell()))
    assert told.severity == "ok" and "invariants hold" in told.sentence
    assert invariants(case_of(profile_cell({1: 50, 2: 55})))[0].severity == "ok"


def test_an_id_that_cannot_be_recomputed_is_told():
    adapter, lookup = (invariants(case_of(load_cell(folder_of(one))))[0].sentence
                       for one in ("1a115669726f", "9528e9b90995"))  # fmt: skip
    assert "cannot be recomputed" in adapter and "cannot be recomputed" not in lookup


def test_a_decode_that_is_booked_as_rollback_altogether_is_one():
    cell = guess_cell()
    mine = cell.rounds["run"].isin(cell.runs["run"][cell.runs["arm"] == "treatment"])
    cell.rounds.loc[mine, "rollback_ns"] = cell.rounds["decode_ns"]
    cell.rounds.loc[mine, "decode_ns"] = 0
    assert invariants(case_of(cell))[0].severity == "ok"
    cell.rounds.loc[mine, "rollback_ns"] = 0
    assert [one.control for one in invariants(case_of(cell))] == ["parts", "decodes"]


def test_a_void_profile_has_no_row_and_prices_nothing():
    wrong = profile_cell({1: 50, 2: 55})
    wrong.steps.loc[wrong.steps["width"] == 2, "decode_ns"] = 1
    findings = judge([wrong, guess_cell()])
    assert findings.step_cost == [] and findings.predictions == []
    assert {cell.kind: cell.void for cell in findings.cells} == {"profile": True, "contrast": False}
    assert "bound" in findings.cells[0].void_reason


def test_no_cell_of_the_reference_fails_an_invariant():
    names = {one.name for one in INVARIANTS}
    found = judge(load_cells(ROOT / "results" / "reference"))
    assert [row for row in found.controls if row.control in names] == []


@pytest.mark.parametrize("machine", ["amd-epyc-2c", "h200"])
def test_ids_of_the_reference_are_recomputed(machine):
    cells = [cell for cell in load_cells(ROOT / "results" / "reference") if cell.machine == machine]
    made = [stored_id(cell.config, cell.env["engine"]["build"], cell.facts["model"]["sha256"]) for cell in cells]
    known = np.array([one is not None for one in made])
    assert known.sum() >= len(made) - 3
    assert [one for one in made if one] == [cell.cell for cell, told in zip(cells, known, strict=True) if told]


def test_ids_of_today_are_those_of_the_plan():
    model = {"name": "m", "path": "m.gguf"}
    config = {"schema": 2, "machine": "box", "kind": "contrast", "model": model, "weights": "w"}
    assert stored_id(config, "b", "") == cell_id(config, "b")
    assert stored_id({"kind": "contrast"}, "b", "") is None
    assert stored_id({"schema": 1}, "b", "") is None


def test_a_machine_is_called_by_its_parts():
    assert machine_id("AMD EPYC", 2, []) == "amd-epyc-2c"
