"""Builds beside the usual one: where they lie, and why one does not fit. Files are copies or made up."""

from __future__ import annotations

import copy
import os
import shutil
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.host import builds, libraries
from bench.host.look_at_build import strays
from pti_loop.llama import model as llama


@pytest.fixture(scope="module")
def copied(tmp_path_factory) -> Path:
    """A folder with the usual libraries, as a build tree has them."""
    folder = tmp_path_factory.mktemp("tree") / "build" / "bin"
    usual = Path(llama.library()._lib._name).parent
    shutil.copytree(usual, folder)
    return folder


def test_libraries_are_found_in_a_tree_an_environment_and_by_name(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(builds, "FOLDER", tmp_path / "builds")
    places = ("plain", "tree/build/bin", "installed/lib", "venv/lib/python3.11/site-packages/llama_cpp/lib")
    for place in places:
        folder = tmp_path / place
        folder.mkdir(parents=True)
        (folder / "libllama.so").write_bytes(b"")
        assert builds.folder_of(str(tmp_path / place.partition("/")[0])) == folder
        assert builds.folder_of(str(folder)) == folder
    (tmp_path / "builds").mkdir()
    (tmp_path / "builds/fork").symlink_to(tmp_path / "tree")
    (tmp_path / "builds/empty").mkdir()
    assert builds.folder_of("fork") == tmp_path / "tree/build/bin"
    assert builds.listed() == {"fork": tmp_path / "tree/build/bin"}
    assert builds.folder_of(builds.STOCK) is None and builds.child_environment(None) == {}


def test_what_is_no_build_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"engine.build=.* there is no libllama.so or libllama.dylib in this folder"):
        builds.folder_of(str(tmp_path))
    with pytest.raises(UserError, match=r"engine.build=stok is no folder and no name in builds/; did you mean 'stock'"):
        builds.folder_of("stok")


def test_a_library_that_does_not_load_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "libllama.so").write_bytes(b"no library at all")
    with pytest.raises(UserError, match=r"its libraries do not load: .*libllama.so"):
        builds.looked_at(tmp_path, "broken")


def test_a_copy_fits_and_is_the_same_build_by_its_files(copied: Path) -> None:
    found = builds.looked_at(copied, str(copied))
    assert not builds.misfit(found, found)
    assert builds.facts(str(copied.parent.parent))["build"] == builds.facts(builds.STOCK)["build"]


def test_a_changed_byte_is_another_build(copied: Path, tmp_path: Path) -> None:
    folder = tmp_path / "patched"
    shutil.copytree(copied, folder)
    found = {builds.facts(builds.STOCK)["build"]}
    for one in ("libggml-cpu.so", "libggml-cpu.so.0"):
        with (folder / one).open("r+b") as file:  # behind the sections, where nothing is loaded from
            file.seek(0, os.SEEK_END)
            file.write(b"\0")
        found.add(builds.looked_at(folder, "patched")["engine"]["build"])
    assert len(found) == 3 and len({name.partition("+")[0] for name in found}) == 1


def test_defaults_that_come_back_elsewhere_do_not_fit() -> None:
    usual = {"defaults": {"llama_context_params": {"n_ctx": 512, "n_batch": 2048}}}
    assert not builds.misfit(usual, copy.deepcopy(usual))
    moved = {"defaults": {"llama_context_params": {"n_ctx": 2048, "n_batch": 0}}}
    assert "llama_context_params.n_ctx is 2048 by default and the binding expects 512" in builds.misfit(usual, moved)
    assert builds.misfit(usual, {"defaults": {}})


def test_a_library_from_elsewhere_is_a_stray(tmp_path: Path) -> None:
    paths = [tmp_path / "build/libllama.so", tmp_path / "usual/libggml-base.so"]
    for path in paths:
        path.parent.mkdir()
        path.write_bytes(b"")
    assert strays(paths, tmp_path / "build") == paths[1:]
    assert libraries.loaded(paths[0], tmp_path / "no maps") == paths[:1]
