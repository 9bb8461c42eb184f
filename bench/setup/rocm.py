"""What a build with HIP needs of ROCm, looked for before anything is built: each lack is a part of one sentence.

It reads the files that CMake and rocBLAS read and runs nothing but `hipconfig`. Standard library only.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.errors import UserError
from bench.setup.toolchain import first_line

LEAST_HIP = (6, 1)
"""llama.cpp's own CMake file refuses older ones, after minutes."""
GFX906 = "gfx906"
GUIDE = "docs/mi50.md says which ROCm has all of it"
USUAL_ROOT = Path("/opt/rocm")
_LIBRARIES = ("lib", "lib64", "lib/x86_64-linux-gnu")
_VERSION = re.compile(r"""PACKAGE_VERSION\s+"?(\d+(?:\.\d+)*)""")


def root(environ: Mapping[str, str] = os.environ, usual: Path = USUAL_ROOT) -> Path | None:
    """The folder of ROCm: what ROCM_PATH names, what hipconfig says, the usual one, the newest below it; None: none."""
    told = first_line(["hipconfig", "-R"]) if shutil.which("hipconfig", path=environ.get("PATH")) else ""
    places = [Path(name) for name in (environ.get("ROCM_PATH"), told) if name]
    places += [usual, *sorted(usual.glob("core*"), reverse=True)]
    found = next((place for place in places if _package(place, "hip")), None)
    return found or next((place for place in places if place.is_dir()), None)


def lacks(place: Path, targets: Sequence[str] = (GFX906,), environ: Mapping[str, str] = os.environ) -> list[str]:
    """What a build for some targets lacks in ROCm's folder, each in a few words; empty where it has everything."""
    found: list[str] = []
    version = hip_version(place)
    if version is None:
        found.append("HIP's package for CMake is not there (hip-dev)")
    elif version < LEAST_HIP:
        found.append(f"HIP is {_dotted(version)} and {_dotted(LEAST_HIP)} is needed")
    found += [f"{name} is not there ({name}-dev)" for name in ("hipblas", "rocblas") if not _package(place, name)]
    if not _package(place, "hip-lang"):
        found.append("CMake's support of HIP is not there (hip-lang, part of hip-dev)")
    if fault := _compiler(place, environ):
        found.append(fault)
    if GFX906 in targets and _package(place, "rocblas") and not tensile_files(place, GFX906):
        found.append(f"rocBLAS has no files for {GFX906} (AMD's own packages lack them from ROCm 6.4.0 on)")
    return found


def check_rocm(targets: Sequence[str] = (), environ: Mapping[str, str] = os.environ, usual: Path = USUAL_ROOT) -> None:
    """Raise `UserError` with everything that a build lacks. Without targets the usual one of the build counts."""
    place = root(environ, usual)
    if place is None:
        raise UserError(f"backend 'hip' needs ROCm, and neither ROCM_PATH nor {usual} is one; set ROCM_PATH to its "
                        f"folder; {GUIDE}")  # fmt: skip
    if missing := lacks(place, targets or (GFX906,), environ):
        raise UserError(f"the ROCm in {place} cannot build the engine: {'; '.join(missing)}; {GUIDE}")


def for_build(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment with what CMake needs to find this ROCm, which may lie elsewhere than in the usual folder."""
    place = root(environ)
    compiler = place and clang(place, environ)
    if place is None or compiler is None:
        return dict(environ)
    return {"ROCM_PATH": str(place), "HIP_PATH": str(place), "HIPCXX": str(compiler), **environ}


def hip_version(place: Path) -> tuple[int, ...] | None:
    """The version that CMake will read; None where there is no package."""
    config = _package(place, "hip")
    file = config and config.with_name("hip-config-version.cmake")
    try:
        told = _VERSION.search(file.read_text(errors="replace")) if file else None
    except OSError:
        return None
    return tuple(int(number) for number in told[1].split(".")[:3]) if told else None


def tensile_files(place: Path, target: str) -> int:
    """How many files rocBLAS has for a target: without any it ends the process at its first product."""
    folders = (place / library / "rocblas" / "library" for library in _LIBRARIES)
    return sum(1 for folder in folders if folder.is_dir() for path in folder.iterdir() if target in path.name)


def clang(place: Path, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The compiler that CMake is given: what HIPCXX names, else the clang of ROCm; None where there is none."""
    if named := environ.get("HIPCXX"):
        found = shutil.which(named, path=environ.get("PATH"))
        return Path(found) if found else None
    usual = (place / part / "clang++" for part in ("lib/llvm/bin", "llvm/bin", "bin"))
    return next((path for path in usual if os.access(path, os.X_OK)), None)


def _compiler(place: Path, environ: Mapping[str, str]) -> str:
    named = environ.get("HIPCXX", "")
    if Path(named).name.startswith("hipcc"):
        return "HIPCXX is hipcc, which CMake refuses (leave HIPCXX unset, or name ROCm's clang++)"
    if clang(place, environ) is None:
        return f"HIPCXX={named} is no program" if named else "there is no clang++ (rocm-llvm)"
    return ""


def _package(place: Path, name: str) -> Path | None:
    """CMake's file of a package, as find_package looks for it."""
    files = (place / library / "cmake" / name / f"{name}-config.cmake" for library in _LIBRARIES)
    return next((path for path in files if path.is_file()), None)


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))
