"""Every kernel compiled for the MI50, without the card."""

from __future__ import annotations

import csv
import shutil
import subprocess

import pytest

from kernels import build, static

COMPILERS = ("hipcc", "clang++-19")
"""What Debian 12 has: the compiler of its HIP, and one as ROCm's owners have them."""


@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_kernel_compiles_for_gfx906_and_none_spills(compiler) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not here")
    compiled = static.compile_all(["gfx906"], static.sources(), [compiler])
    assert [one for one in compiled if one.status != "ok"] == []
    kernels = [kernel for one in compiled for kernel, _ in one.kernels]
    assert len(kernels) > 20
    assert [kernel for kernel in kernels if kernel.spilled] == []
    assert all(1 <= kernel.waves_per_simd <= 10 for kernel in kernels)
    rows = static.rows(compiled)
    assert all(row["compiler"].startswith(f"{compiler}, ") and "clang version 1" in row["compiler"] for row in rows)
    bound = {(row["kernel"].split("<")[0], row["format"], row["streams"]): row for row in rows if "card" in row}
    assert len(bound) > 50
    for fmt in ("Q8_0", "Q6_K"):
        for streams in range(1, 7):  # what the planes are for: nothing is above the memory's time
            row = bound["gemv_planes", fmt, streams]
            assert float(row["vector_bound"]) < 1 and float(row["loads_bound"]) < 1, row
    for fmt in ("Q8_0", "Q6_K", "Q5_K"):
        for streams in (2, 4, 8):
            native, planes = bound["gemv_native", fmt, streams], bound["gemv_planes", fmt, streams]
            assert float(planes["vector_bound"]) < float(native["vector_bound"])
    # One wait for each load is what a compiler makes of them without being told to load first.
    assert all(bound["gemv_native", fmt, 4]["waits"] <= bound["gemv_native", fmt, 4]["loads"] * 0.7
               for fmt in ("Q8_0", "Q6_K", "Q5_K"))  # fmt: skip


def test_a_library_says_what_the_assembly_of_the_same_source_says(tmp_path) -> None:
    """Disassembled by llvm-objdump and counted, against what the compiler writes as text."""
    if not shutil.which("hipcc"):
        pytest.skip("hipcc is not here")
    source, out = build.SOURCE_DIR / "native.cu", tmp_path / "libours.o"
    command = [*build.flags("gfx906"), "-c", "-o", str(out), str(source)]
    subprocess.run(command, check=True, env=build.environment("gfx906"), capture_output=True)
    assert static.main(["--library", str(out), "--out", str(tmp_path / "of_library.csv")]) == 0
    (written,) = static.compile_all(["gfx906"], [source])
    theirs = list(csv.DictReader((tmp_path / "of_library.csv").open()))
    ours = [{name: str(row.get(name, "")) for name in theirs[0]} for row in static.rows([written])]
    unlike = ("source", "compiler", "agprs")
    for row in (*theirs, *ours):
        assert "clang version 15" in row["compiler"]
        row.update(dict.fromkeys(unlike, ""))
    assert len(ours) == 24 and sorted(theirs, key=str) == sorted(ours, key=str)


@pytest.mark.parametrize(
    ("data", "said"),
    [(None, "No such file"), (b"", "it is empty"), (b"\x7fELF" + bytes(400), "holds no code for gfx906"),
     (b"x" * 50 + b"CCOB" + bytes(50), "compressed code"),
     (b"__CLANG_OFFLOAD_BUNDLE__" + b"\xff" * 40, "holds no code for gfx906"),
     (b"__CLANG_OFFLOAD_BUNDLE__" + b"\x01", "holds no code for gfx906")],
)  # fmt: skip
def test_a_file_that_is_no_library_for_the_card_is_a_sentence(tmp_path, capsys, data, said) -> None:
    path = tmp_path / "libggml-hip.so"
    if data is not None:
        path.write_bytes(data)
    assert static.main(["--library", str(path)]) == 2
    told = capsys.readouterr().err
    assert said in told and "libggml-hip.so" in told and len(told.splitlines()) == 1


def test_a_compiler_that_is_not_there_is_a_row(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert static.main(["--arch", "gfx906,sm_90", "--out", str(tmp_path / "s.csv")]) == 0
    assert "hipcc is not on the PATH" in capsys.readouterr().out
    lines = (tmp_path / "s.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * len(static.sources())
    assert all(",unsupported," in line for line in lines[1:])
    assert static.main(["--arch", "gfx906", "--compiler", "clang++-99"]) == 0
    assert "clang++-99 is not on the PATH" in capsys.readouterr().out


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
