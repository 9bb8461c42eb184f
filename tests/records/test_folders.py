"""Which folders are cells: nothing that hides a cell, or shows one twice, does so without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.host.pins import ROOT
from bench.records.cells import DamagedCell, StoredCell, load_cells, read_cell, write_cell
from bench.records.folders import UNREADABLE, cell_folders
from bench.records.kernels import kernel_folders

DONE = {"state": "done", "reason": "", "seconds": 1.0}


def plant(folder: Path) -> Path:
    write_cell(folder, config={"streams": 2}, env={}, status=DONE)
    return folder


def names(root: Path) -> list[str]:
    return [f"{path.parent.name}/{path.name}" for path in cell_folders(root)]


def test_a_cell_without_its_status_is_a_damaged_one(tmp_path: Path) -> None:
    whole = plant(tmp_path / "box" / "cell")
    (whole / "status.json").unlink()
    (found,) = load_cells(tmp_path)
    assert isinstance(found, DamagedCell) and found.reason == "status.json: No such file or directory"


@pytest.mark.parametrize("target", ["gone", "status.json"])
def test_a_status_that_leads_nowhere_hides_no_cell(tmp_path: Path, target: str) -> None:
    status = plant(tmp_path / "box" / "cell") / "status.json"
    status.unlink()
    status.symlink_to(target)
    (found,) = load_cells(tmp_path)
    assert isinstance(found, DamagedCell) and found.reason.startswith("status.json: ")


def test_what_is_no_folder_of_a_cell_is_passed_over(tmp_path: Path) -> None:
    plant(tmp_path / "box" / "cell")
    os.mkfifo(tmp_path / "box" / "pipe")
    (tmp_path / "box" / "file").write_text("")
    (tmp_path / "box" / "empty").mkdir()
    (tmp_path / "box" / "loop").symlink_to("loop")
    (tmp_path / "machine").symlink_to("machine")
    (tmp_path / "file").write_text("")
    plant(tmp_path / "box" / ".cell.elsewhere.1.abcdefgh.partial")
    plant(tmp_path / "reference" / "box" / "cell")
    assert names(tmp_path) == ["box/cell"]


def test_a_folder_that_is_linked_twice_counts_once(tmp_path: Path) -> None:
    plant(tmp_path / "box" / "cell")
    (tmp_path / "another").symlink_to("box")
    (tmp_path / "box" / "again").symlink_to("cell")
    assert names(tmp_path) == ["box/cell"]
    kernels = tmp_path / "box" / "kernels"
    kernels.mkdir()
    (kernels / "timings.csv.gz").write_bytes(b"")
    assert kernel_folders(tmp_path) == [kernels]


def test_folders_that_nobody_may_list_or_enter_are_told(tmp_path: Path) -> None:
    for name in ("locked", "open"):
        plant(tmp_path / name / "cell")
        plant(tmp_path / name / "other")
    (tmp_path / "locked").chmod(0o000)
    (tmp_path / "open" / "other").chmod(0o000)
    try:
        told = as_nobody(tmp_path)
    finally:
        (tmp_path / "locked").chmod(0o755)
        (tmp_path / "open" / "other").chmod(0o755)
    assert told == ["locked/* damaged", "open/cell whole", "open/other damaged"]
    found = read_cell(tmp_path / "locked" / UNREADABLE)
    assert isinstance(found, DamagedCell) and "cannot be listed" in found.reason


LIST = """import os, sys
from pathlib import Path
from bench.records.cells import DamagedCell, load_cells
if os.getuid() == 0:
    for folder in [Path(sys.argv[1]), *Path(sys.argv[1]).parents][:-2]:
        folder.chmod(folder.stat().st_mode | 0o055)
    os.setuid(65534)
for one in load_cells(Path(sys.argv[1])):
    print(f"{one.machine}/{one.cell} {'damaged' if isinstance(one, DamagedCell) else 'whole'}")
"""


def as_nobody(root: Path) -> list[str]:
    """What somebody who is not root makes of a folder."""
    done = subprocess.run([sys.executable, "-c", LIST, str(root)], cwd=ROOT, capture_output=True, text=True)
    assert not done.stderr
    return done.stdout.splitlines()


def test_every_other_cell_is_read(tmp_path: Path) -> None:
    for number in range(3):
        plant(tmp_path / "box" / f"cell{number}")
    (tmp_path / "box" / "cell1" / "cell.yaml").unlink()
    kinds = [type(found) for found in load_cells(tmp_path)]
    assert kinds == [StoredCell, DamagedCell, StoredCell]
