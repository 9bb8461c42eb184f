"""Every kernel compiled for the MI50, without the card."""

from __future__ import annotations

import re
import shutil

import pytest

from kernels import build, static

SPILLS_FROM = 5
"""Up to four streams a kernel has to keep everything in registers there."""


def streams(kernel: str) -> int:
    """The largest argument of a template that can be a number of streams; 1 for a kernel without."""
    return max([int(word) for word in re.findall(r"\b(\d+)\b", kernel.partition("<")[2])], default=1)


@pytest.mark.skipif(not shutil.which("hipcc"), reason="hipcc is not here")
def test_no_kernel_for_up_to_four_streams_spills_on_gfx906() -> None:
    compiled = static.compile_all(["gfx906"], static.sources())
    assert [one for one in compiled if one.status != "ok"] == []
    kernels = [kernel for one in compiled for kernel in one.kernels]
    assert len(kernels) > 20
    assert [kernel for kernel in kernels if kernel.spilled and streams(kernel.symbol) < SPILLS_FROM] == []
    assert all(1 <= kernel.waves_per_simd <= 10 for kernel in kernels)


def test_a_compiler_that_is_not_there_is_a_row(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert static.main(["--arch", "gfx906,sm_90", "--out", str(tmp_path / "s.csv")]) == 0
    assert "hipcc is not on the PATH" in capsys.readouterr().out
    lines = (tmp_path / "s.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * len(static.sources())
    assert all(",unsupported," in line for line in lines[1:])


def test_a_source_that_does_not_compile_is_a_row(tmp_path) -> None:
    if not shutil.which("hipcc"):
        pytest.skip("hipcc is not here")
    bad = tmp_path / "bad.cu"
    bad.write_text("__global__ void k(float *x) { *x = y; }\n")
    (one,) = static.compile_all(["gfx906"], [bad])
    assert one.status == "failed" and "undeclared identifier 'y'" in one.reason


def test_an_unknown_architecture_is_a_sentence(capsys) -> None:
    assert static.main(["--arch", "gfx905"]) == 2
    assert "gfx905" in capsys.readouterr().err
    assert build.ARCHITECTURES
