"""Every kernel compiled for the MI50, without the card."""

from __future__ import annotations

import shutil

import pytest

from kernels import build, static


@pytest.mark.skipif(not shutil.which("hipcc"), reason="hipcc is not here")
def test_every_kernel_compiles_for_gfx906_and_none_spills() -> None:
    compiled = static.compile_all(["gfx906"], static.sources())
    assert [one for one in compiled if one.status != "ok"] == []
    kernels = [kernel for one in compiled for kernel in one.kernels]
    assert len(kernels) > 20
    assert [kernel for kernel in kernels if kernel.spilled] == []
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
