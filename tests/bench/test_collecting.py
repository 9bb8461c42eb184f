"""Cells from elsewhere come among the results whole and as they were written, or stay out; nothing there is lost."""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from bench.cli import main
from bench.records.archives import STATUS, PackedCell, write_archive
from bench.records.cells import REFERENCE, cell_folders, file_contents, read_cell, state_of, write_cell
from bench.records.kernels import kernel_folders

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "results" / REFERENCE


def plant(root: Path, cell: str = "0123456789ab", machine: str = "box", state: str = "done", host: str = "aaaa",
          seconds: float = 1.0) -> Path:  # fmt: skip
    reason = "" if state == "done" else "planted"
    write_cell(root / machine / cell, config={"streams": 2}, env={"host": host, "time_utc": "2026-01-01T00:00:00Z"},
               status={"state": state, "reason": reason, "seconds": seconds}, log="said")  # fmt: skip
    return root / machine / cell


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def packed(path: Path, *folders: Path) -> Path:
    write_archive(path, (PackedCell(one.parent.name, one.name, contents(one)) for one in folders), {})
    return path


def collect(results: Path, *sources: Path) -> int:
    return main(["collect", *map(str, sources), f"results={results}"])


@pytest.mark.parametrize("kind", ["cell", "machine", "results", "archive", "plain"])
def test_cells_come_from_whatever_holds_them(tmp_path: Path, capsys: Any, kind: str) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    machine = STORED / "amd-epyc-2c"
    picked = [folder for folder in cell_folders(STORED) if folder.parent.name == machine.name][:3]
    for folder in picked:
        shutil.copytree(folder, theirs / machine.name / folder.name)
    first = theirs / machine.name / picked[0].name
    source = {"cell": first, "machine": first.parent, "results": theirs}.get(kind)
    if kind == "archive":
        source = packed(tmp_path / "cells.tar.xz", *sorted(first.parent.iterdir()))
    if kind == "plain":  # as scripts/offline/measure.sh packs them
        source = tmp_path / "cells.tar.gz"
        with tarfile.open(source, "w:gz") as tar:
            tar.add(theirs, arcname=".")
    assert source is not None
    count = 1 if kind == "cell" else 3
    assert collect(ours, source) == 0 and f"{count} added" in capsys.readouterr().out
    found = cell_folders(ours)
    assert len(found) == count and all(state_of(folder) == "done" for folder in found)
    assert all(contents(folder) == contents(theirs / machine.name / folder.name) for folder in found)
    assert collect(ours, source) == 0 and f"{count} there already" in capsys.readouterr().out
    assert not list(ours.glob(".*")) and not list(ours.glob("*/.*"))


@pytest.mark.parametrize("as_archive", [False, True])
def test_an_edited_cell_stays_out_and_the_others_come_in(tmp_path: Path, capsys: Any, as_archive: bool) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    plant(theirs)
    edited = plant(theirs, "ba9876543210")
    (edited / "env.json").write_text((edited / "env.json").read_text().replace("aaaa", "bbbb"))
    source = packed(tmp_path / "c.tar.gz", *cell_folders(theirs)) if as_archive else theirs
    assert collect(ours, source) == 1
    told = capsys.readouterr()
    assert "box/ba9876543210 is not as it was written (env.json: it was changed after it was written)" in told.err
    assert told.err.count("\n") == 1 and "1 added, 1 left out" in told.out
    assert [folder.name for folder in cell_folders(ours)] == ["0123456789ab"]


def test_what_two_hosts_measured_is_kept_apart_once(tmp_path: Path, capsys: Any) -> None:
    first, second, ours = (tmp_path / name for name in ("first", "second", "ours"))
    plant(first, host="aaaa")
    other = plant(second, host="bbbb", seconds=2.0)
    plant(second, "ba9876543210", host="bbbb")
    assert collect(ours, first) == 0
    before = contents(ours / "box" / "0123456789ab")
    for _ in range(2):
        capsys.readouterr()
        assert collect(ours, second) == 1
        told = capsys.readouterr().err
        assert "box/0123456789ab was measured twice: by host aaaa" in told and "by host bbbb" in told
    assert contents(ours / "box" / "0123456789ab") == before
    assert sorted(folder.name for folder in cell_folders(ours)) == ["0123456789ab", "ba9876543210"]
    apart = ours / "conflicts" / "bbbb"
    assert [contents(folder) for folder in cell_folders(apart)] == [contents(other)]
    third = plant(tmp_path / "third", host="bbbb", seconds=3.0)  # the same host, once more
    assert collect(ours, tmp_path / "third") == 1
    kept = [contents(folder) for root in (ours / "conflicts").iterdir() for folder in cell_folders(root)]
    assert sorted(kept, key=str) == sorted([contents(other), contents(third)], key=str)


@pytest.mark.parametrize(("here", "there", "left", "words"), [
    ("failed", "done", "done", "in the place of"), ("done", "failed", "done", "there already"),
    ("failed", "unsupported", "failed", "there already"), ("damaged", "done", "done", "in the place of"),
    ("damaged", "failed", "failed", "in the place of"),
])  # fmt: skip
def test_a_done_cell_takes_the_place_of_a_failed_or_damaged_one(tmp_path, capsys, here, there, left, words) -> None:
    ours = plant(tmp_path / "ours", state="done" if here == "damaged" else here)
    if here == "damaged":
        (ours / "env.json").write_text("{}")
    plant(tmp_path / "theirs", state=there, host="bbbb")
    assert collect(tmp_path / "ours", tmp_path / "theirs") == 0
    assert state_of(ours) == left and words in capsys.readouterr().out


def test_a_record_of_a_later_release_is_left_as_it_is(tmp_path: Path) -> None:
    ours = plant(tmp_path / "ours")
    (ours / "cell.yaml").write_text("schema: 99\n")
    before = contents(ours)
    plant(tmp_path / "theirs", host="bbbb")
    assert collect(tmp_path / "ours", tmp_path / "theirs") == 0 and contents(ours) == before


def test_a_source_that_is_none_costs_no_other(tmp_path: Path, capsys: Any) -> None:
    cell, empty, junk = plant(tmp_path / "theirs"), tmp_path / "empty", tmp_path / "junk.tar.gz"
    empty.mkdir()
    junk.write_bytes(b"no archive")
    sources = [tmp_path / "nowhere", empty, junk]
    for source, words in zip(sources, ("there is no", "has no cell in it", "is no archive of cells"), strict=True):
        assert collect(tmp_path / "ours", source) == 2 and words in capsys.readouterr().err
    assert collect(tmp_path / "ours", *sources, cell) == 1
    told = capsys.readouterr()
    assert told.err.count("error: ") == 3 and read_cell(tmp_path / "ours" / "box" / cell.name).cell == cell.name
    assert main(["collect"]) == 2 and main(["collect", "--hlep"]) == 2
    assert main(["collect", str(tmp_path / "ours"), f"results={tmp_path / 'ours'}"]) == 2


def test_an_archive_that_breaks_off_gives_what_is_before(tmp_path: Path, capsys: Any) -> None:
    theirs = [plant(tmp_path / "theirs", f"{number:012x}") for number in range(4)]
    whole = packed(tmp_path / "c.tar", *theirs).read_bytes()
    (tmp_path / "cut.tar").write_bytes(whole[: len(whole) // 2])
    assert collect(tmp_path / "ours", tmp_path / "cut.tar") == 1
    assert "breaks off" in capsys.readouterr().err
    found = cell_folders(tmp_path / "ours")
    assert 0 < len(found) < 4 and all(state_of(folder) == "done" for folder in found)


def test_nothing_of_an_archive_lies_outside_its_place(tmp_path: Path, capsys: Any) -> None:
    good = plant(tmp_path / "theirs")
    with tarfile.open(tmp_path / "bad.tar", "w") as tar:
        for name in ("../box/ba9876543210/status.json", "/box/ba9876543210/status.json"):
            about = tarfile.TarInfo(name)
            about.size = 2
            tar.addfile(about, io.BytesIO(b"{}"))
        for path in sorted(good.iterdir()):
            tar.add(path, f"box/{good.name}/{path.name}")
        link = tarfile.TarInfo(f"box/{good.name}/steps.csv.gz")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    before = sorted(path.name for path in tmp_path.iterdir())
    assert collect(tmp_path / "ours", tmp_path / "bad.tar") == 1
    assert capsys.readouterr().err.count("error: ") == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, "ours"])
    assert [folder.name for folder in cell_folders(tmp_path / "ours")] == [good.name]


def test_records_of_kernels_come_along(tmp_path: Path, capsys: Any) -> None:
    (folder,) = [one for one in kernel_folders(STORED) if one.parent.name == "h200"]
    shutil.copytree(folder, tmp_path / "theirs" / "h200" / "kernels")
    assert collect(tmp_path / "ours", tmp_path / "theirs" / "h200") == 0
    copied = tmp_path / "ours" / "h200" / "kernels"
    names = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    assert {path.relative_to(copied) for path in copied.rglob("*") if path.is_file()} == names
    assert all((copied / name).read_bytes() == (folder / name).read_bytes() for name in names)
    (tmp_path / "theirs" / "h200" / "kernels" / "env.json").write_text('{"host": "cccc"}')
    assert collect(tmp_path / "ours", tmp_path / "theirs") == 1
    assert "h200/kernels was measured twice" in capsys.readouterr().err
    assert (tmp_path / "ours" / "conflicts" / "cccc" / "h200" / "kernels" / "env.json").exists()


def test_a_cell_without_its_status_stays_out(tmp_path: Path, capsys: Any) -> None:
    cell = plant(tmp_path / "theirs")
    assert STATUS not in file_contents(cell)
    (cell / STATUS).unlink()
    assert collect(tmp_path / "ours", tmp_path / "theirs") == 1
    assert STATUS in capsys.readouterr().err and not cell_folders(tmp_path / "ours")
