"""What a build with HIP needs, on stand-ins for ROCm's packages: the files that CMake reads, and no compiler."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.setup import rocm, setup


def package(place: Path, name: str, version: str, library: str = "lib") -> None:
    folder = place / library / "cmake" / name
    folder.mkdir(parents=True)
    (folder / f"{name}-config.cmake").write_text(f"set({name}_FOUND TRUE)\n")
    (folder / f"{name}-config-version.cmake").write_text(
        f'set(PACKAGE_VERSION "{version}")\nif(PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)\n'
        "  set(PACKAGE_VERSION_COMPATIBLE FALSE)\nelse()\n  set(PACKAGE_VERSION_COMPATIBLE TRUE)\nendif()\n"
    )  # fmt: skip


@pytest.fixture
def whole(tmp_path) -> Path:
    """A ROCm 6.3 as an owner of the card has it."""
    place = tmp_path / "opt" / "rocm"
    for name in ("hip", "hip-lang", "hipblas", "rocblas"):
        package(place, name, "6.3.42134" if name.startswith("hip") else "4.3.0")
    files = place / "lib" / "rocblas" / "library"
    files.mkdir(parents=True)
    for target in ("gfx906", "gfx90a"):
        (files / f"TensileLibrary_lazy_{target}.dat").touch()
    compiler = place / "lib" / "llvm" / "bin" / "clang++"
    compiler.parent.mkdir(parents=True)
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    return place


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"PATH": str(tmp_path / "nothing"), **more}


def check(whole: Path, tmp_path: Path, *targets: str, **more: str) -> None:
    rocm.check_rocm(targets, environment(tmp_path, **more), usual=whole)


def test_a_whole_rocm_lacks_nothing(whole, tmp_path):
    check(whole, tmp_path)
    assert rocm.hip_version(whole) == (6, 3, 42134)
    assert rocm.tensile_files(whole, "gfx906") == 1


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize(
    ("gone", "said"),
    [("lib/cmake/hip", r"HIP's package for CMake is not there"),
     ("lib/cmake/hipblas", r"hipblas is not there \(hipblas-dev"),
     ("lib/cmake/rocblas", r"rocblas is not there"), ("lib/cmake/hip-lang", "CMake's support of HIP is not there"),
     ("lib/llvm/bin/clang++", r"there is no clang\+\+ \(rocm-llvm\)"),
     ("lib/rocblas/library/TensileLibrary_lazy_gfx906.dat", "rocBLAS has no files for gfx906 .* from ROCm 6.4.0 on")],
)  # fmt: skip
def test_each_lack_is_told_before_anything_is_built(whole, tmp_path, gone, said):
    remove(whole / gone)
    with pytest.raises(UserError, match=said) as caught:
        check(whole, tmp_path)
    assert "docs/mi50.md" in str(caught.value) and "\n" not in str(caught.value)


def test_debian_s_own_hip_is_too_old_and_everything_else_is_told_with_it(tmp_path):
    place = tmp_path / "usr"
    package(place, "hip", "5.2.21153", library="lib/x86_64-linux-gnu")
    package(place, "hip-lang", "5.2.21153", library="lib/x86_64-linux-gnu")
    said = r"HIP is 5.2.21153 and 6.1 is needed; hipblas is not .*; rocblas is not .*clang"
    with pytest.raises(UserError, match=said):
        rocm.check_rocm((), environment(tmp_path, ROCM_PATH=str(place)), usual=tmp_path / "none")


@pytest.mark.parametrize(("version", "fits"), [("6.0.9", False), ("6.1.0", True), ("6.1", True), ("7.14.0", True)])
def test_the_least_version(whole, tmp_path, version, fits):
    remove(whole / "lib/cmake/hip")
    package(whole, "hip", version)
    assert any("is needed" in one for one in rocm.lacks(whole, (), environment(tmp_path))) is not fits


def test_no_rocm_at_all_and_one_in_another_place(whole, tmp_path):
    with pytest.raises(UserError, match="neither ROCM_PATH nor"):
        rocm.check_rocm((), environment(tmp_path), usual=tmp_path / "none")
    rocm.check_rocm((), environment(tmp_path, ROCM_PATH=str(whole)), usual=tmp_path / "none")
    newer = tmp_path / "new" / "core-7.14"
    newer.parent.mkdir()
    whole.rename(newer)
    assert rocm.root(environment(tmp_path), usual=newer.parent) == newer


def test_hipcc_is_refused_as_cmake_refuses_it(whole, tmp_path):
    with pytest.raises(UserError, match="HIPCXX is hipcc, which CMake refuses"):
        check(whole, tmp_path, HIPCXX="/opt/rocm/bin/hipcc")
    with pytest.raises(UserError, match="HIPCXX=/no/clang is no program"):
        check(whole, tmp_path, HIPCXX="/no/clang")


def test_files_of_another_card_are_not_asked_for_where_only_that_card_is_here(whole, tmp_path):
    remove(whole / "lib/rocblas/library/TensileLibrary_lazy_gfx906.dat")
    check(whole, tmp_path, "gfx90a")
    with pytest.raises(UserError, match="no files for gfx906"):
        check(whole, tmp_path, "gfx90a", "gfx906")


def test_the_build_is_told_where_rocm_lies(whole, tmp_path):
    env = setup.build_environment(environment(tmp_path, ROCM_PATH=str(whole)))
    assert (env["ROCM_PATH"], env["HIPCXX"]) == (str(whole), str(whole / "lib/llvm/bin/clang++"))
    if not rocm.USUAL_ROOT.exists():
        assert "HIPCXX" not in setup.build_environment(environment(tmp_path))
    own = setup.build_environment(environment(tmp_path, ROCM_PATH=str(whole), HIPCXX="/bin/sh"))
    assert own["HIPCXX"] == "/bin/sh"


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
@pytest.mark.parametrize(("version", "fits"), [("5.2.21153", False), ("6.3.42134", True)])
def test_cmake_reads_the_same_version_and_finds_the_same_packages(whole, tmp_path, version, fits):
    """What llama.cpp's CMake file asks for, configured by the real CMake."""
    remove(whole / "lib/cmake/hip")
    package(whole, "hip", version)
    source = tmp_path / "source"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.14)\nproject(asks NONE)\nfind_package(hip REQUIRED)\n"
        "find_package(hipblas REQUIRED)\nfind_package(rocblas REQUIRED)\n"
        'if(${hip_VERSION} VERSION_LESS 6.1)\n  message(FATAL_ERROR "At least ROCM/HIP V6.1 is required")\nendif()\n'
    )
    words = ["cmake", "-S", str(source), "-B", str(tmp_path / "build"), f"-DCMAKE_PREFIX_PATH={whole}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is fits, done.stderr
    assert (not rocm.lacks(whole, (rocm.GFX906,), environment(tmp_path))) is fits
