"""The scripts for a machine without a network: what is carried comes whole, and what is missing is a sentence."""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts" / "offline"


@pytest.fixture(scope="module")
def bundle():
    spec = importlib.util.spec_from_file_location("bundle", SCRIPTS / "bundle.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(script, *words, cwd, path=None):
    env = {**os.environ, "PATH": path} if path else None
    command = ["bash", SCRIPTS / script, *map(str, words)]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 35])
def test_parts_joined_in_their_order_are_the_file(bundle, tmp_path, size):
    file, content = tmp_path / "f", os.urandom(size)
    file.write_bytes(content)
    bundle._split(file, 10)
    parts = sorted(tmp_path.iterdir())
    assert b"".join(part.read_bytes() for part in parts) == content
    assert all(part.stat().st_size <= 10 for part in parts)
    assert (parts == [file]) == (size <= 10)


def test_the_closure_has_what_the_project_needs_and_no_tool_of_its_tests(bundle):
    names = bundle._closure(bundle.load())
    assert {"hydra-core", "omegaconf", "antlr4-python3-runtime", "numpy", "pandas"} <= names
    assert not {"pytest", "mypy", "ruff"} & names


def tools(folder: Path) -> str:
    """A PATH on which every tool of a build is there and none of them does anything."""
    for name in ("nvcc", "cmake", "ninja", "python3"):
        (folder / name).write_text("#!/bin/sh\nexit 0\n")
        (folder / name).chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def test_a_bundle_that_changed_on_its_way_is_not_built(tmp_path):
    there, bin_ = tmp_path / "bundle", tmp_path / "bin"
    there.mkdir()
    bin_.mkdir()
    (there / "engine.tar.xz").write_bytes(b"damaged")
    (there / "SHA256SUMS").write_text(f"{hashlib.sha256(b'whole').hexdigest()}  engine.tar.xz\n")
    done = run("build.sh", there, tmp_path / "prefix", cwd=tmp_path, path=tools(bin_))
    assert done.returncode == 2
    assert "engine.tar.xz: FAILED" in done.stdout + done.stderr
    assert "carry them again" in done.stderr


def test_a_missing_compiler_is_named_before_anything_is_unpacked(tmp_path):
    (tmp_path / "bundle").mkdir()
    bare = tmp_path / "bin"
    bare.mkdir()
    for name in ("bash", "mkdir", "dirname"):
        (bare / name).symlink_to(f"/usr/bin/{name}" if Path(f"/usr/bin/{name}").exists() else f"/bin/{name}")
    done = run("build.sh", tmp_path / "bundle", tmp_path / "prefix", cwd=tmp_path, path=str(bare))
    assert (done.returncode, done.stderr) == (2, "error: nvcc is not on the PATH, without which nothing is built\n")


def test_a_sweep_without_a_build_says_what_to_run(tmp_path):
    done = run("measure.sh", tmp_path / "prefix", tmp_path / "cells.tar.xz", cwd=tmp_path)
    assert done.returncode == 2
    assert "run scripts/offline/build.sh" in done.stderr


def test_finished_cells_alone_are_packed_and_the_sweeps_exit_code_is_kept(tmp_path):
    prefix, cells = tmp_path / "prefix", tmp_path / "results" / "box"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "env").write_text(f'export PATH="{prefix}/bin:$PATH"\n')
    words = f'[ "$3" != sweep ] || exit 3\nPYTHONPATH="{ROOT}" exec "{sys.executable}" "$@"\n'
    (prefix / "bin" / "python3").write_text(f"#!/bin/sh\n{words}")
    (prefix / "bin" / "python3").chmod(0o755)
    for name in (".0123456789ab.host.1.abcdefgh.partial", "empty"):
        (cells / name).mkdir(parents=True)
    whole = cells.with_name("amd-epyc-2c") / "089d8099b842"
    shutil.copytree(ROOT / "results" / "reference" / "amd-epyc-2c" / whole.name, whole)
    done = run("measure.sh", prefix, tmp_path / "cells.tar.xz", "streams=2", cwd=tmp_path)
    assert done.returncode == 3
    with tarfile.open(tmp_path / "cells.tar.xz") as tar:
        files = [f"amd-epyc-2c/{whole.name}/{file.name}" for file in whole.iterdir()]
        assert sorted(tar.getnames()) == sorted([*files, "contribution.json"])
