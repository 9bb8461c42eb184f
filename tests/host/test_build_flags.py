"""What a library tells of its compiler, and what a build tree or set-up tells of the settings."""

from __future__ import annotations

import json
from pathlib import Path

from bench.host import build_flags

CACHE = """# This is the CMakeCache file.
//Build type
CMAKE_BUILD_TYPE:STRING=Release
CMAKE_CXX_FLAGS_RELEASE:STRING=-O3 -DNDEBUG
CMAKE_CXX_COMPILER:FILEPATH=/usr/bin/c++
GGML_NATIVE:BOOL=ON
GGML_VULKAN:BOOL=OFF
GGML_AVX2:BOOL=OFF
CMAKE_CXX_FLAGS:STRING=
GGML_CCACHE_PROGRAM:STRING=/usr/bin/ccache
GGML_NATIVE-ADVANCED:INTERNAL=1
"""


def library(folder: Path, content: bytes = b"\x7fELF" + bytes(64)) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "libllama.so.0.5.0"
    path.write_bytes(content)
    return path


def test_a_library_names_the_compilers_that_made_it(tmp_path: Path) -> None:
    gcc, clang = b"GCC: (Debian 12.2.0-14+deb12u1) 12.2.0\0", b"AMD clang version 19.0.0git (https://x)\0"
    assert build_flags.compiler(library(tmp_path, bytes(9) + gcc + gcc)) == "GCC: (Debian 12.2.0-14+deb12u1) 12.2.0"
    assert build_flags.compiler(library(tmp_path, bytes(9) + clang + gcc)).count("; ") == 1
    assert build_flags.compiler(library(tmp_path, b"")) == build_flags.compiler(library(tmp_path)) == ""
    assert build_flags.compiler(tmp_path / "none.so") == ""


def test_settings_of_a_build_tree_are_in_its_cache_and_paths_stay_behind(tmp_path: Path) -> None:
    path = library(tmp_path / "build" / "bin")
    (tmp_path / "build" / "CMakeCache.txt").write_text(CACHE)
    found = build_flags.settings(path, tmp_path / "elsewhere")
    assert found == {"CMAKE_BUILD_TYPE": "Release", "CMAKE_CXX_FLAGS_RELEASE": "-O3 -DNDEBUG", "GGML_AVX2": "OFF",
                     "GGML_NATIVE": "ON"}  # fmt: skip


def test_settings_of_an_environment_are_those_that_set_up_wrote(tmp_path: Path) -> None:
    path = library(tmp_path / "venv" / "lib" / "python3.11" / "site-packages" / "llama_cpp" / "lib")
    stamp = {"settings": {"cmake.define.GGML_NATIVE": "OFF", "cmake.define.GIT_EXE": "OFF"}}
    (tmp_path / "venv" / "bench-setup.json").write_text(json.dumps(stamp))
    assert build_flags.settings(path, tmp_path / "venv") == {"GGML_NATIVE": "OFF"}
    assert build_flags.settings(path, tmp_path / "other") == {}, "another environment's stamp says nothing of it"
    (tmp_path / "venv" / "bench-setup.json").write_text("[]")
    assert build_flags.settings(path, tmp_path / "venv") == {}
