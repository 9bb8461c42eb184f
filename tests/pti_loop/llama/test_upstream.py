"""What docs/upstream quotes is what its program prints."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from pti_loop.llama.header_folder import FOLDERS, headers
from pti_loop.llama.library import build
from pti_loop.llama.own_drafters import _compiler, common_library

UPSTREAM = Path(__file__).resolve().parents[3] / "docs" / "upstream"


def test_the_quoted_output_is_the_programs(tmp_path):
    folder, libraries, program = headers(build()["llama_cpp_commit"]), common_library().parent, tmp_path / "replay"
    subprocess.run(
        [_compiler(), "-O1", "-std=c++17", "-DLLAMA_SHARED", "-DGGML_SHARED", "-DGGML_BACKEND_SHARED",
         *(f"-I{folder / one}" for one in FOLDERS), str(UPSTREAM / "replay.cpp"), "-o", str(program),
         f"-L{libraries}", "-lllama-common", "-lllama", "-lggml", "-lggml-base", "-Wl,--disable-new-dtags",
         f"-Wl,-rpath,{libraries}"],
        check=True,
    )  # fmt: skip
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    (quoted,) = re.findall(r"```\n(.*?)```", (UPSTREAM / "README.md").read_text(), re.DOTALL)
    assert printed == quoted
