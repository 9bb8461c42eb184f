"""What a compiled kernel takes of a processor: registers, local memory, spills, and how many waves fit at once.

Reads the assembly that clang writes for AMD and what ptxas prints for NVIDIA. It runs no compiler and knows no kernel.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import yaml

LDS_BYTES = 65536
"""Local memory of a compute unit, which its SIMDs share (AMD's GCN, CDNA and RDNA ISA documents)."""
SGPRS = 800
"""Scalar registers of a SIMD of GCN and CDNA; RDNA has as many as its waves can name."""


@dataclass(frozen=True, slots=True)
class Processor:
    """Vector registers that a SIMD (a scheduler of NVIDIA) has for each lane, how they are handed out, most waves.

    gfx9: AMD's Vega and CDNA ISA documents and LLVM's AMDGPU guide; gfx90a counts accumulation registers among them.
    gfx1100: 1536 of 32 lanes in steps of 24. NVIDIA: 65536 a multiprocessor with four schedulers, in steps of 8 a lane
    (CUDA C++ programming guide, compute capabilities).
    """

    registers: int
    step: int
    waves: int
    lanes: int
    simds: int = 4
    scalar_limit: bool = False


PROCESSORS = {
    "gfx906": Processor(256, 4, 10, 64, scalar_limit=True),
    "gfx908": Processor(256, 4, 10, 64, scalar_limit=True),
    "gfx90a": Processor(512, 8, 8, 64, scalar_limit=True),
    "gfx1100": Processor(1536, 24, 16, 32, simds=2),
    "sm_80": Processor(512, 8, 16, 32),
    "sm_90": Processor(512, 8, 16, 32),
}


@dataclass(frozen=True, slots=True)
class Resources:
    """One kernel on one architecture. `symbol` is the name that the compiler gave it. None: that kind has none.

    `spilled` counts registers on AMD and bytes of stores and loads on NVIDIA; either way any is too many.
    """

    arch: str
    symbol: str
    vgprs: int
    agprs: int | None
    sgprs: int | None
    lds_bytes: int
    scratch_bytes: int
    spilled: int
    waves_per_simd: int


def waves(arch: str, registers: int, sgprs: int = 0, lds_bytes: int = 0, group: int = 0) -> int:
    """How many waves of a kernel a SIMD can hold: the least that registers, local memory and the chip allow.

    `registers` a lane, those of accumulation included where they share a file; `group`: lanes of a workgroup, of which
    a kernel without launch bounds may have the most, as the compiler must assume. KeyError
    for an architecture that is not in `PROCESSORS`.
    """
    chip = PROCESSORS[arch]
    fit = min(chip.waves, chip.registers // _up(max(registers, 1), chip.step))
    if chip.scalar_limit and sgprs:
        fit = min(fit, SGPRS // _up(sgprs, 16))
    if group:  # only whole groups are put on a unit
        size = -(-group // chip.lanes)
        groups = fit * chip.simds // size
        if lds_bytes:
            groups = min(groups, LDS_BYTES // lds_bytes)
        fit = min(fit, max(groups * size // chip.simds, 1))
    return fit


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def from_amd_assembly(arch: str, text: str) -> list[Resources]:
    """Every kernel of an assembly file of clang, from the metadata at its end. ValueError where it has none."""
    found = re.search(r"^\s*\.amdgpu_metadata\s*\n(.*?)^\s*\.end_amdgpu_metadata", text, re.DOTALL | re.MULTILINE)
    if found is None:
        raise ValueError("the assembly has no .amdgpu_metadata")
    return _of_metadata(arch, found.group(1).split("\n...")[0])


def from_amd_notes(arch: str, text: str) -> list[Resources]:
    """Every kernel of a code object, from what llvm-readelf prints of its notes; none where it has no metadata."""
    found = re.search(r"^\s*---\s*\n(.*?)^\s*\.\.\.\s*$", text, re.DOTALL | re.MULTILINE)
    return _of_metadata(arch, found.group(1)) if found else []


def _of_metadata(arch: str, text: str) -> list[Resources]:
    return [_amd(arch, kernel) for kernel in (yaml.safe_load(text) or {}).get("amdhsa.kernels") or []]


def _amd(arch: str, kernel: dict[str, Any]) -> Resources:
    vgprs, sgprs, lds = (int(kernel[f".{name}"]) for name in ("vgpr_count", "sgpr_count", "group_segment_fixed_size"))
    return Resources(
        arch=arch,
        symbol=str(kernel[".name"]),
        vgprs=vgprs,
        agprs=int(kernel[".agpr_count"]) if ".agpr_count" in kernel else None,
        sgprs=sgprs,
        lds_bytes=lds,
        scratch_bytes=int(kernel[".private_segment_fixed_size"]),
        spilled=int(kernel[".vgpr_spill_count"]) + int(kernel[".sgpr_spill_count"]),
        waves_per_simd=waves(arch, vgprs, sgprs, lds, int(kernel[".max_flat_workgroup_size"])),
    )


_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '(\w+)'")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def from_ptxas(text: str) -> list[Resources]:
    """Every kernel of what `ptxas -v` prints, waves by registers alone. ValueError where a kernel's lines end early."""
    found, symbol, arch, frame = [], "", "", None
    for line in text.splitlines():
        if entry := _ENTRY.search(line):
            symbol, arch, frame = entry.group(1), entry.group(2), None
        elif numbers := _FRAME.search(line):
            frame = [int(number) for number in numbers.groups()]
        elif used := _USED.search(line):
            if not symbol or frame is None:
                raise ValueError(f"ptxas says registers of no kernel: {line.strip()}")
            registers, shared = int(used.group(1)), _SHARED.search(line)
            found.append(
                Resources(
                    arch=arch,
                    symbol=symbol,
                    vgprs=registers,
                    agprs=None,
                    sgprs=None,
                    lds_bytes=int(shared.group(1)) if shared else 0,
                    scratch_bytes=frame[0],
                    spilled=frame[1] + frame[2],
                    waves_per_simd=waves(arch, registers),
                )
            )
            symbol = ""
    return found


def named(kernels: Iterable[Resources]) -> list[Resources]:
    """The same with names as in the source, by c++filt where there is one; the template's arguments stay in them."""
    kernels = list(kernels)
    tool = shutil.which("c++filt") or shutil.which("llvm-cxxfilt-15") or shutil.which("llvm-cxxfilt")
    if not tool or not kernels:
        return kernels
    text = "\n".join(kernel.symbol for kernel in kernels)
    names = subprocess.run([tool], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    return [replace(kernel, symbol=_short(name)) for kernel, name in zip(kernels, names, strict=True)]


def _short(name: str) -> str:
    """`void gemv<0, 4>(int)` as `gemv<0, 4>`."""
    start = name.find(">(")
    name = name[: start + 1] if start >= 0 else name.split("(")[0]
    return name.split(" ", 1)[1] if name.startswith("void ") else name
