"""What a killed sweep leaves is cleared, and nothing else is: no foreign dot-folder, no cell that is being written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench.records import partial_cells
from bench.records.cells import load_cell, read_status, write_cell
from bench.records.partial_cells import clear_leftovers
from bench.records.process_table import host

ROOT = Path(__file__).resolve().parents[2]
DONE = {"state": "done", "reason": "", "seconds": 1.0}


@pytest.fixture
def dead() -> int:
    """The number of a process that has ended and was collected."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def plant(folder: Path, seconds: float = 1.0) -> Path:
    """A whole cell under any name, which stands for a part of one as well."""
    write_cell(folder, config={"streams": 2}, env={}, status=DONE | {"seconds": seconds})
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_leftover_of_a_dead_process_goes_and_everything_else_stays(tmp_path: Path, dead: int) -> None:
    box = tmp_path / "box"
    mine, rest = f"{host()}.{dead}", "a1b2c3d4"
    kept = [
        ".git", ".venv", ".notes", ".cell", ".cell.old", ".cell.k2_x9abc",
        f".cell.{host()}.{os.getpid()}.{rest}.partial", f".cell.elsewhere-7.{dead}.{rest}.partial",
        f".cell.{mine}.{rest}.partial.kept", f".cell.{mine}.{rest}.txt", f".a.cell.{mine}.{rest}.partial",
        f".cell.{mine}.short.partial", f"cell.{mine}.{rest}.partial", f".cell.{host()}.x.{rest}.partial",
    ]  # fmt: skip
    for name in [*kept, f".cell.{mine}.{rest}.partial"]:
        plant(box / name)
    (box / f".link.{mine}.{rest}.partial").symlink_to(box / ".git")
    (box / f".file.{mine}.{rest}.partial").write_text("")
    clear_leftovers(box)
    assert names(box) == sorted([*kept, f".link.{mine}.{rest}.partial", f".file.{mine}.{rest}.partial"])
    assert all((box / name / "status.json").exists() for name in kept)


def test_a_process_that_only_waits_to_be_collected_is_dead(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    plant(tmp_path / f".cell.{host()}.{child.pid}.a1b2c3d4.partial")
    clear_leftovers(tmp_path)
    child.wait()
    assert names(tmp_path) == []


KILLED = """import os, signal, sys
from pathlib import Path
from bench.records.cells import write_cell
real, seen = Path.rename, []
def rename(self, target):
    if len(seen) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    seen.append(self)
    return real(self, target)
Path.rename = rename
write_cell(Path(sys.argv[1]), config={"streams": 3}, env={}, status={"state": "done", "reason": "", "seconds": 2.0})
"""


@pytest.mark.parametrize("renamed", [0, 1])
def test_a_kill_between_the_renamings_loses_no_cell(tmp_path: Path, renamed: int) -> None:
    folder = plant(tmp_path / "box" / "cell")
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(renamed)], cwd=ROOT)
    assert done.returncode == -signal.SIGKILL
    assert folder.exists() == (renamed == 0)
    assert len(names(folder.parent)) == 2
    clear_leftovers(folder.parent)
    assert names(folder.parent) == ["cell"]
    assert load_cell(folder).config["streams"] == 2


def test_a_set_aside_cell_goes_only_where_its_place_holds_a_whole_one(tmp_path: Path, dead: int) -> None:
    aside = plant(tmp_path / f".cell.{host()}.{dead}.a1b2c3d4.aside", seconds=1.0)
    (tmp_path / "cell").mkdir()
    clear_leftovers(tmp_path)
    assert aside.exists()
    (tmp_path / "cell").rmdir()
    plant(tmp_path / "cell", seconds=2.0)
    clear_leftovers(tmp_path)
    assert names(tmp_path) == ["cell"]
    assert read_status(tmp_path / "cell")["seconds"] == 2.0


def test_a_renaming_that_fails_brings_the_old_cell_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = plant(tmp_path / "box" / "cell")
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if self.suffix == ".partial":
            raise OSError("no space left on device")
        return real(self, target)

    monkeypatch.setattr(partial_cells.Path, "rename", rename)
    with pytest.raises(OSError, match="no space"):
        plant(folder, seconds=2.0)
    assert names(folder.parent) == ["cell"]
    assert read_status(folder)["seconds"] == 1.0
