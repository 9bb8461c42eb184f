"""What compilers say of a kernel. The figures of add_up and scale are read back from the compilers that are here."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kernels import build
from kernels.resources import from_amd_assembly, from_ptxas, named, waves

SMALL = Path(__file__).parent / "small.cu"

PTXAS = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z5scaleILi4EEvPf' for 'sm_90'
ptxas info    : Function properties for _Z5scaleILi4EEvPf
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 84 registers, used 1 barriers, 1024 bytes smem, 356 bytes cmem[0]
ptxas info    : Compile time = 13.717 ms
"""


@pytest.mark.parametrize(
    ("arch", "registers", "expected"),
    [
        # PTI's own table for the MI50, vector registers and waves.
        ("gfx906", 27, 9), ("gfx906", 47, 5), ("gfx906", 64, 4), ("gfx906", 83, 3), ("gfx906", 126, 2),
        ("gfx906", 24, 10), ("gfx906", 1, 10), ("gfx906", 256, 1),
        ("gfx90a", 64, 8), ("gfx90a", 65, 7), ("gfx1100", 96, 16), ("gfx1100", 97, 12),
        ("sm_90", 32, 16), ("sm_90", 84, 5), ("sm_90", 255, 2),
    ],
)  # fmt: skip
def test_waves_by_registers(arch: str, registers: int, expected: int) -> None:
    assert waves(arch, registers) == expected


def test_waves_by_scalar_registers_and_local_memory() -> None:
    assert waves("gfx906", 24, sgprs=102) == 7
    assert waves("gfx1100", 24, sgprs=102) == 16
    # Four groups of 16 KiB, each four waves, over four SIMDs.
    assert waves("gfx906", 24, lds_bytes=16384, group=256) == 4
    assert waves("gfx906", 24, lds_bytes=65536, group=64) == 1
    # A group of 16 waves is put on a unit of 40 as a whole: two of them, eight waves a SIMD.
    assert waves("gfx906", 24, group=1024) == 8
    assert waves("gfx906", 64, group=1024) == 4
    assert waves("gfx906", 100, group=1024) == 1
    assert waves("gfx906", 24, group=256) == 10


def test_ptxas() -> None:
    (kernel,) = named(from_ptxas(PTXAS))
    assert (kernel.arch, kernel.symbol, kernel.vgprs, kernel.lds_bytes) == ("sm_90", "scale<4>", 84, 1024)
    assert (kernel.scratch_bytes, kernel.spilled, kernel.waves_per_simd) == (16, 20, 5)


def test_ptxas_without_a_kernel_before_its_registers() -> None:
    with pytest.raises(ValueError, match="registers of no kernel"):
        from_ptxas("ptxas info    : Used 84 registers, used 1 barriers\n")


def test_assembly_without_metadata() -> None:
    with pytest.raises(ValueError, match="amdgpu_metadata"):
        from_amd_assembly("gfx906", "s_endpgm\n")


@pytest.mark.parametrize(("compiler", "occupancy"), [("hipcc", [10, 10]), ("clang++-19", [10, 8])])
def test_a_kernel_compiled_for_gfx906(compiler, occupancy, tmp_path) -> None:
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not here")
    command = [*build.flags("gfx906", compiler), "--cuda-device-only", "-S", SMALL, "-o"]
    subprocess.run([*command, tmp_path / "s"], check=True, env=build.environment("gfx906"), timeout=60)
    text = (tmp_path / "s").read_text()
    kernels = {kernel.symbol: kernel for kernel in named(from_amd_assembly("gfx906", text))}
    assert set(kernels) == {"add_up", "scale<4>"}
    assert (kernels["add_up"].lds_bytes, kernels["add_up"].agprs, kernels["add_up"].spilled) == (1024, None, 0)
    # The compiler's own count of waves, in the order of the kernels: those before 16 counted parts of a group, and a
    # kernel without launch bounds may have one of 1024 lanes.
    assert [int(word) for word in re.findall(r"; Occupancy: (\d+)", text)] == occupancy
    assert [kernel.waves_per_simd for kernel in kernels.values()] == [10, 8]


@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not here: it comes with the toolkit of a GPU")
def test_a_kernel_compiled_for_sm_90(tmp_path) -> None:
    command = ["nvcc", "-O3", "-gencode=arch=compute_90,code=sm_90", "-cubin", "-Xptxas", "-v", SMALL, "-o"]
    done = subprocess.run([*command, tmp_path / "s"], check=True, capture_output=True, text=True, timeout=60)
    kernels = {kernel.symbol: kernel for kernel in named(from_ptxas(done.stderr))}
    assert kernels["add_up"].lds_bytes == 1024
    assert 0 < kernels["scale<4>"].vgprs < 32 and kernels["scale<4>"].spilled == 0
