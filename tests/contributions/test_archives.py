"""Archives from anybody: what is sound comes out, and nothing else happens."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.records import archives
from bench.records.archives import ABOUT, PackedCell, is_archive, unpack, write_archive
from bench.records.cells import StoredCell, read_cell, write_cell

DONE = {"state": "done", "reason": "", "seconds": 1.0}


def stored(root: Path, number: int = 1, machine: str = "box") -> Path:
    folder = root / machine / f"{number:012x}"
    env = {"machine": {"name": machine, "cpu": "A CPU", "cores": 2}, "engine": {"build": "b1"}, "host": "1f"}
    write_cell(folder, config={"streams": number}, env=env, status=DONE, log="words\n")
    return folder


def packed(root: Path, path: Path, cells: int = 3) -> Path:
    folders = [stored(root, number) for number in range(1, cells + 1)]
    write_archive(path, (cell_of(folder) for folder in folders), {})
    return path


def cell_of(folder: Path) -> PackedCell:
    return PackedCell(folder.parent.name, folder.name, {file.name: file.read_bytes() for file in folder.iterdir()})


def tar_of(path: Path, *members: tuple[tarfile.TarInfo | str, bytes]) -> Path:
    with tarfile.open(path, "w") as tar:
        for member, content in members:
            one = tarfile.TarInfo(member) if isinstance(member, str) else member
            one.size = len(content)
            tar.addfile(one, io.BytesIO(content))
    return path


@pytest.mark.parametrize("name", ["a.tar.xz", "a.tar.gz", "a.tgz", "a.tar"])
def test_cells_come_out_as_they_went_in(tmp_path: Path, name: str) -> None:
    path = packed(tmp_path / "in", tmp_path / name)
    found = unpack(path, tmp_path / "out")
    assert (len(found.folders), found.faults, found.ignored) == (3, [], 0)
    for folder in found.folders:
        assert isinstance(read_cell(folder), StoredCell)
        assert cell_of(folder) == cell_of(tmp_path / "in" / folder.parent.name / folder.name)


def test_the_same_cells_give_the_same_bytes_and_nobodys_name(tmp_path: Path) -> None:
    first, second = (packed(tmp_path / "in" / str(place), tmp_path / f"{place}.tar.gz") for place in range(2))
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as tar:
        told = [(one.uid, one.gid, one.uname, one.gname, one.mtime, one.mode) for one in tar]
    assert {*told} == {(0, 0, "", "", 0, 0o644)}
    assert first.read_bytes()[3:8] == bytes(5), "no name and no time in the header of gzip"


def test_what_others_pack_with_tar_is_read(tmp_path: Path) -> None:
    stored(tmp_path / "in"), stored(tmp_path / "in", 2)
    (tmp_path / "in/box-kit").mkdir()
    (tmp_path / "in/box-kit/steps.txt").write_text("doctor: done\n")
    for options in (["-cJf"], ["-czf"], ["--format=gnu", "-cf"]):
        path = tmp_path / "out.tar"
        subprocess.run(["tar", "-C", tmp_path / "in", *options, path, "."], check=True)
        found = unpack(path, tmp_path / options[-1])
        assert (len(found.folders), found.ignored, found.faults) == (2, 1, [])


@pytest.mark.parametrize("name", [
    "../outside/0123456789ab/cell.yaml", "box/../../x/cell.yaml", "/tmp/0123456789ab/cell.yaml", "box/../cell.yaml/x",
    "..", "../../cell.yaml", "box/0123456789ab/../../../../cell.yaml",
])  # fmt: skip
def test_nothing_lies_outside(tmp_path: Path, name: str) -> None:
    path = tar_of(tmp_path / "a.tar", (name, b"x"), ("box/0123456789ab/cell.yaml", b"schema: 3"))
    before = sorted(tmp_path.parent.rglob("*"))
    found = unpack(path, tmp_path / "out" / "deep")
    assert [str(one.relative_to(tmp_path / "out/deep")) for one in found.folders] == ["box/0123456789ab"]
    new = [one for one in sorted(tmp_path.parent.rglob("*")) if one not in before]
    assert all(one.is_relative_to(tmp_path / "out") for one in new)
    assert any("outside the folder" in fault for fault in found.faults), found.faults


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE,
                                  tarfile.GNUTYPE_SPARSE, tarfile.CONTTYPE])  # fmt: skip
@pytest.mark.parametrize("name", ["box/0123456789ab/cell.yaml", ABOUT, "box/0123456789ab"])
def test_no_link_and_no_device(tmp_path: Path, kind: bytes, name: str) -> None:
    odd = tarfile.TarInfo(name)
    odd.type, odd.linkname = kind, "/etc/passwd"
    path = tar_of(tmp_path / "a.tar", (odd, b""), ("box/00000000000a/status.json", b"{}"))
    found = unpack(path, tmp_path / "out")
    assert not any(one.is_symlink() or not (one.is_file() or one.is_dir()) for one in (tmp_path / "out").rglob("*"))
    assert "root:" not in "".join(one.read_text() for one in (tmp_path / "out").rglob("*") if one.is_file())
    assert found.faults or kind == tarfile.CONTTYPE


def test_little_that_unpacks_to_much(tmp_path: Path) -> None:
    one = PackedCell("box", "00000000000a", {"env.json": bytes(4 << 20)})
    write_archive(tmp_path / "a.tar.xz", [one], {})
    assert (tmp_path / "a.tar.xz").stat().st_size < 20_000
    found = unpack(tmp_path / "a.tar.xz", tmp_path / "out", most=1 << 20)
    assert not found.folders and "unpacks to more than" in found.faults[0]
    assert not (tmp_path / "out").exists()


def test_a_header_that_claims_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_BYTES", 1 << 16)
    for kind in (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.REGTYPE):
        odd = tarfile.TarInfo("box/0123456789ab/cell.yaml")
        odd.type, odd.size = kind, 1 << 17
        raw = odd.tobuf(tarfile.USTAR_FORMAT) + bytes(1 << 18)
        (tmp_path / "a.tar.gz").write_bytes(gzip.compress(raw))
        found = unpack(tmp_path / "a.tar.gz", tmp_path / "out")
        assert not found.folders and len(found.faults) == 1, kind


@pytest.mark.parametrize("name", ["a.tar.xz", "a.tar.gz", "a.tar"])
def test_one_that_breaks_off_keeps_what_came_before(tmp_path: Path, name: str) -> None:
    content = packed(tmp_path / "in", tmp_path / name, cells=4).read_bytes()
    seen = set()
    for place, length in enumerate(range(len(content) // 9, len(content) - 1, len(content) // 9)):
        (tmp_path / name).write_bytes(content[:length])
        found = unpack(tmp_path / name, tmp_path / str(place))
        if len(found.folders) < 4 or found.faults:  # what is cut of the zeros at the end of a tar is nothing
            assert len(found.faults) == 1 and "get the file again" in found.faults[0]
        assert all(isinstance(read_cell(folder), StoredCell) for folder in found.folders)
        seen.add(len(found.folders))
    assert 0 in seen and (name != "a.tar" or len(seen) > 2)


def test_a_cell_that_was_edited_or_taken_out_is_named(tmp_path: Path) -> None:
    packed(tmp_path / "in", tmp_path / "a.tar")
    with tarfile.open(tmp_path / "a.tar") as tar:
        members = {one.name: tar.extractfile(one).read() for one in tar}  # type: ignore[union-attr]
    edited = members | {"box/000000000001/env.json": members["box/000000000001/env.json"].replace(b"A CPU", b"B CPU")}
    taken = {name: content for name, content in edited.items() if "/000000000003/" not in name}
    found = unpack(tar_of(tmp_path / "b.tar", *taken.items()), tmp_path / "out")
    assert [folder.name for folder in found.folders] == ["000000000002"]
    assert "box/000000000001 is not as it was packed" in found.faults[0]
    assert "box/000000000003 is missing" in found.faults[1]


def test_the_same_name_twice_is_no_way_in(tmp_path: Path) -> None:
    twice = [("box/00000000000a/cell.yaml", b"a"), ("box/00000000000a/cell.yaml", b"b")]
    again = [("box/00000000000a/cell.yaml", b"a"), ("box/00000000000b/cell.yaml", b"b"),
             ("box/00000000000a/env.json", b"c")]  # fmt: skip
    for place, members in enumerate((twice, again)):
        found = unpack(tar_of(tmp_path / f"{place}.tar", *members), tmp_path / str(place))
        assert "twice" in found.faults[0]
        assert all((one / "cell.yaml").read_bytes() != b"b" for one in found.folders if one.name.endswith("a"))


def test_what_is_no_archive_says_so(tmp_path: Path) -> None:
    makers: list[Callable[[Path], object]] = [
        lambda path: path.write_bytes(b""), lambda path: path.write_bytes(b"run,stream\n"),
        lambda path: path.write_bytes(gzip.compress(b"run,stream\n" * 100)), os.mkdir, os.mkfifo,
        lambda path: path.write_bytes(lzma.compress(b"x" * 2000)),
    ]  # fmt: skip
    for place, make in enumerate(makers):
        path = tmp_path / f"file{place}"
        make(path)
        assert not is_archive(path)
        with pytest.raises(UserError, match="is no archive of cells"):
            unpack(path, tmp_path / "out")


def test_a_later_format_is_not_guessed(tmp_path: Path) -> None:
    path = tar_of(tmp_path / "a.tar", (ABOUT, b'{"format": 99}'))
    assert "a later release" in unpack(path, tmp_path / "out").faults[0]
