"""A cell is one process's at a time: among many that want it, after a kill, and where a host was not heard of."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.records import taken
from bench.records.cells import write_cell
from bench.records.process_table import host, started
from bench.records.taken import STALE_S, Holder, clear_taken, file_of, is_newest, take

ROOT = Path(__file__).resolve().parents[2]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def written(path: Path, silent_s: float = 0.0, **other: object) -> Path:
    told = {"host": host(), "name": "here", "pid": os.getpid(), "started": started(), "since": 0.0} | other
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(told))
    at = path.stat().st_mtime - silent_s
    os.utime(path, (at, at))
    return path


def test_what_is_taken_is_held_until_it_is_given_back(tmp_path: Path) -> None:
    cell = tmp_path / "box" / "0123456789ab"
    got = take(cell)
    assert not isinstance(got, Holder)
    with got:
        assert names(tmp_path / "box") == [".0123456789ab.1.taken"]
        assert file_of(cell) == tmp_path / "box" / ".0123456789ab.1.taken"
        other = take(cell)
        assert isinstance(other, Holder) and other.pid == os.getpid() and "heard of 0 s ago" in other.words
        free = take(cell.with_name("ba9876543210"))
        assert not isinstance(free, Holder)
        with free:
            pass
    assert names(tmp_path / "box") == [] and file_of(cell) is None


@pytest.mark.parametrize(("silent_s", "other", "is_held"), [
    (10 * STALE_S, {}, True),  # it may be stopped, and it is there
    (0.0, {"started": "1"}, False),  # another process has its number
    (0.0, {"pid": 2**30}, False),
    (STALE_S / 2, {"host": "b-01234567"}, True),
    (STALE_S + 1, {"host": "b-01234567"}, False),
    (0.0, {"host": "b-01234567", "pid": 2**30}, True),  # another host's numbers say nothing here
    (0.0, {"pid": "x"}, True),  # being written, by whomever
    (STALE_S + 1, {"pid": "x"}, False),
])  # fmt: skip
def test_who_counts_as_lost(tmp_path: Path, silent_s: float, other: dict[str, object], is_held: bool) -> None:
    cell = tmp_path / "box" / "cell"
    old = written(cell.parent / ".cell.3.taken", silent_s, **other)
    got = take(cell)
    assert isinstance(got, Holder) == is_held
    if isinstance(got, Holder):
        return
    assert is_newest(cell.parent / ".cell.4.taken") and not is_newest(old)
    with got:
        pass
    assert names(cell.parent) == []


def test_whoever_was_taken_over_removes_nothing_of_the_one_that_took(tmp_path: Path) -> None:
    cell = tmp_path / "cell"
    mine = take(cell)
    assert not isinstance(mine, Holder)
    with mine:
        written(tmp_path / ".cell.2.taken", pid=1, started="")
        assert not is_newest(tmp_path / ".cell.1.taken")
    assert names(tmp_path) == [".cell.2.taken"]


def test_a_beat_renews_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taken, "BEAT_S", 0.01)
    got = take(tmp_path / "cell")
    assert not isinstance(got, Holder)
    with got:
        path = file_of(tmp_path / "cell")
        assert path is not None
        os.utime(path, (0, 0))
        while path.stat().st_mtime == 0:
            pass


def test_what_lost_ones_left_of_done_cells_goes(tmp_path: Path) -> None:
    for cell, state in (("a", "done"), ("b", "failed"), ("c", "done")):
        write_cell(tmp_path / cell, config={}, env={}, status={"state": state, "reason": "", "seconds": 1.0})
        written(tmp_path / f".{cell}.1.taken", pid=1 if cell == "c" else 2**30, started="")
    written(tmp_path / ".missing.1.taken", pid=2**30)
    clear_taken(tmp_path)
    assert names(tmp_path) == [".b.1.taken", ".c.1.taken", ".missing.1.taken", "a", "b", "c"]


WANTS = """import sys
from pathlib import Path
from bench.records.taken import Holder, take
root, left = Path(sys.argv[1]), {f"{n:012x}" for n in range(40)}
print("ready", flush=True)
sys.stdin.readline()
while left:
    for name in sorted(left, key=lambda name: hash((sys.argv[2], name))):
        got = take(root / name)
        if isinstance(got, Holder):
            continue
        with got:
            if not (root / name).exists():
                with (root / f"{name}.log").open("a") as file:
                    file.write(sys.argv[2] + "\\n")
                (root / name).mkdir()
        left.discard(name)
"""


def test_many_that_want_the_same_cells_do_each_once(tmp_path: Path) -> None:
    """Dead ones have left files behind that all of them see."""
    for number in range(0, 40, 3):
        written(tmp_path / f".{number:012x}.1.taken", pid=2**30)
    children = [subprocess.Popen([sys.executable, "-c", WANTS, str(tmp_path), str(n)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, cwd=ROOT, text=True) for n in range(6)]  # fmt: skip
    for child in children:
        assert child.stdout is not None and child.stdout.readline()
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.close()
    assert [child.wait(60) for child in children] == [0] * 6
    logs = [len(path.read_text().split()) for path in tmp_path.glob("*.log")]
    assert logs == [1] * 40
    assert not list(tmp_path.glob(".*"))
