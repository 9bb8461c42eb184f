"""A build is what its files are: copies of the engine's libraries, never loaded."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from bench import build_name
from bench.host import libraries, provenance
from bench.host.pins import ROOT
from bench.plan.cells import cells
from bench.plan.compose import compose_points
from bench.plan.model_files import model_path
from bench.records.cells import load_cells
from pti_loop.llama import model as llama
from tests.faults.stored import EARLIER


@pytest.fixture
def copies(tmp_path: Path) -> list[Path]:
    """The loaded libraries, copied into a folder."""
    files = libraries.loaded(Path(llama.library()._lib._name))
    assert {path.name.split(".")[0] for path in files} >= {"libllama", "libggml", "libggml-base", "libggml-cpu"}
    return [Path(shutil.copy2(path, tmp_path)) for path in files]


def name_of(files: list[Path]) -> str:
    return build_name.digest(libraries.hashes(files))


def flip(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))


def test_one_changed_byte_in_any_library_is_another_build(copies: list[Path]) -> None:
    found = {name_of(copies)}
    for path in copies:
        flip(path)
        found.add(name_of(copies))
    assert len(found) == 1 + len(copies)


def test_a_copy_of_the_same_files_is_the_same_build(copies: list[Path]) -> None:
    assert provenance.engine()["build"].endswith("+" + name_of(copies))


def test_the_record_names_every_library(copies: list[Path]) -> None:
    facts = provenance.engine()
    assert set(facts["libraries"]) >= {path.name for path in copies}
    assert all(len(value) == 64 for value in facts["libraries"].values())


def test_another_build_is_other_cells(copies: list[Path], tmp_path: Path) -> None:
    (config,) = compose_points(["streams=2", "method=packed"])
    planned = []
    for _ in range(2):
        build = f"0.3.36-0c1e57098-cpu+{name_of(copies)}"
        planned.append({cell.id for cell in cells([config], tmp_path, "toy", build, {model_path(config): "w"})})
        flip(copies[0])
    assert planned[0] and not planned[0] & planned[1]


def test_what_a_process_has_mapped_counts_and_links_do_not_count_twice(tmp_path: Path) -> None:
    folder, other = tmp_path / "lib with blank", tmp_path / "other"
    for place in (folder, other):
        place.mkdir()
    for name in ("libllama.so.0.5.0", "libggml-base.so", "libllama-common.so", "libggml-old.so", "libllama.so.bak~"):
        (folder / name).write_bytes(name.encode())
    (folder / "libllama.so").symlink_to("libllama.so.0.5.0")
    (other / "libggml-base.so").write_bytes(b"found first on the path")
    mapped = [folder / "libllama.so.0.5.0", folder / "libllama.so.0.5.0", other / "libggml-base.so", "/lib/libc.so.6"]
    maps = tmp_path / "maps"
    maps.write_text("".join(f"7f00-7f01 r--p 0000 08:01 12    {path}\n" for path in mapped) + "7f02-7f03 rw-p 0 0 0\n")
    found = libraries.loaded(folder / "libllama.so", maps)
    assert found == [other / "libggml-base.so", folder / "libllama.so.0.5.0"], "not the one that lies beside it unused"
    beside = libraries.loaded(folder / "libllama.so", tmp_path / "none")
    assert [path.name for path in beside] == [
        "libggml-base.so", "libggml-old.so", "libllama-common.so", "libllama.so.0.5.0",
    ]  # fmt: skip


def test_builds_of_the_reference_keep_their_names() -> None:
    roots = (ROOT / "results" / "reference", EARLIER)
    builds = {cell.env["engine"]["build"] for root in roots for cell in load_cells(root)}
    assert {"0.3.36-0c1e57098-cpu", "0.3.36-0c1e57098-cpu+393b1ef5"} <= builds


def test_a_change_counts_though_size_and_time_of_the_file_are_as_before(copies: list[Path]) -> None:
    before, stat = name_of(copies), copies[0].stat()
    flip(copies[0])
    os.utime(copies[0], ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert name_of(copies) != before
