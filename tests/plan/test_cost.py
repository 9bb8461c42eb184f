"""What a cell will cost, from cells of the reference, each left out once: how far off that is, and what says so."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from bench.plan.config import CONFIGS
from bench.plan.cost import ITSELF, LIKE, MODEL, OTHER_MODEL, SAME_MODEL, UNSEEN, past_cells
from bench.records.cells import StoredCell, read_cell

REFERENCE = CONFIGS.parent / "results" / "reference"
MACHINES = sorted(path.name for path in REFERENCE.iterdir() if path.is_dir())


def cells_of(machine: str) -> list[Path]:
    return sorted(path.parent for path in (REFERENCE / machine).glob("*/status.json"))


def guess(costs, folder: Path, weights: str = ""):
    cell = read_cell(folder)
    assert isinstance(cell, StoredCell)
    model = cell.facts["model"]
    config = {**cell.config, "weights": weights or cell.config.get("weights") or model["sha256"]}
    found = costs.guess(folder.name, config["kind"], config, not model.get("layers_offloaded"), model["file_bytes"])
    return found, cell.status["seconds"]


@pytest.mark.parametrize("machine", MACHINES)
def test_a_cell_that_was_left_out_takes_about_what_was_said(machine: str) -> None:
    folders = cells_of(machine)
    inside, off = 0, []
    for folder in folders:
        found, seconds = guess(past_cells([one for one in folders if one != folder]), folder)
        assert found.low <= found.seconds <= found.high and found.source in (LIKE, SAME_MODEL, OTHER_MODEL)
        inside += found.low <= seconds <= found.high
        off.append(abs(math.log(found.seconds / seconds)))
    assert sorted(off)[len(off) // 2] < math.log(1.3), "half of them are within 30 %"
    assert inside >= 0.7 * len(folders)


def test_a_cell_that_was_measured_here_takes_what_it_took() -> None:
    folders = cells_of(MACHINES[0])
    found, seconds = guess(past_cells(folders), folders[0])
    assert (found.source, found.seconds) == (ITSELF, seconds)
    assert found.bytes == sum(path.stat().st_size for path in folders[0].iterdir())


def test_other_weights_and_nothing_at_all_are_said_to_be_that() -> None:
    folders = cells_of(MACHINES[0])
    rest = past_cells([one for one in folders if one != folders[0]])
    found, _ = guess(rest, folders[0], weights="others")
    assert found.source == OTHER_MODEL and "other weights" in rest.told(found.source, True)
    nothing = past_cells([])
    found, seconds = guess(nothing, folders[0])
    assert found.source == MODEL and found.low < seconds < found.high
    assert "10 GB/s (assumed)" in nothing.told(found.source, True)
    assert "measured in a stored cell" in rest.told(MODEL, True)


def test_tokens_before_prompts_take_time_and_leave_no_rows() -> None:
    costs = past_cells(cells_of(MACHINES[0])[1:])
    flat, deep = (costs.guess("x", "contrast", {**read(), "depth": depth}, True, 1e8, 2e-4) for depth in (0, 4096))
    assert deep.seconds > 2 * flat.seconds and deep.bytes == flat.bytes


def test_weights_that_are_not_here_are_said_to_be_unseen() -> None:
    for costs in (past_cells([]), past_cells(cells_of(MACHINES[0]))):
        found = costs.guess("x", "contrast", {**read(), "weights": "of a server"}, True, 0)
        assert found.source == UNSEEN and found.high / found.low > 50 and "bare assumption" in costs.told(UNSEEN, True)


def test_damaged_records_say_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "box" / "0123456789ab"
    shutil.copytree(cells_of(MACHINES[0])[0], folder)
    for name, text in (("cell.yaml", "kind: [x"), ("facts.json", "{}"), ("status.json", '{"state": "done"}')):
        whole = (folder / name).read_bytes()
        (folder / name).write_text(text)
        assert past_cells([folder]).guess("x", "contrast", read(), True, 1e8).source == MODEL
        (folder / name).write_bytes(whole)
    assert past_cells([folder]).guess("x", "contrast", read(), True, 1e8).source != MODEL


def read() -> dict[str, Any]:
    cell = read_cell(cells_of(MACHINES[0])[0])
    assert isinstance(cell, StoredCell)
    return cell.config
