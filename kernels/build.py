"""Compiles the kernels of `src/` into one shared library. Knows compilers and flags; loads nothing and runs nothing.

The library is kept in `build/kernels/` under the working directory, by the hash of sources and flags; PTI_KERNELS_BUILD
names another folder. A machine with no compiler can use what was built elsewhere and brought there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from kernels.errors import KernelError

SOURCE_DIR = Path(__file__).parent / "src"
SOURCES = tuple(
    SOURCE_DIR / name
    for name in (
        "stream.cu",
        "flat.cu",
        "ssq.cu",
        "native.cu",
        "packed.cu",
        "planes.cu",
        "quantise.cu",
        "decode.cu",
        "peer.cu",
        "runtime.cu",
    )
)
NVIDIA = ("sm_80", "sm_90")
AMD = ("gfx906", "gfx908", "gfx90a", "gfx1100")
ARCHITECTURES = NVIDIA + AMD


HIPCC = "hipcc"
"""The compiler for AMD that is meant where none is named; any clang with its AMD backend will do in its place."""
DEVICE_LIBRARIES = ("/opt/rocm/amdgcn/bitcode", "/opt/rocm/lib/llvm/amdgcn/bitcode", "/usr/lib/*/amdgcn/bitcode")
"""Where ROCm's own functions for the device lie; a clang that is not ROCm's does not find them by itself."""


def flags(arch: str, compiler: str = HIPCC) -> list[str]:
    """The compiler and its flags, without what says which output is wanted; `compiler` is the one for AMD.

    KernelError for an unknown architecture.
    """
    if arch in NVIDIA:
        number = arch.removeprefix("sm_")
        return ["nvcc", "-O3", "-std=c++17", f"-gencode=arch=compute_{number},code={arch}", "-Xcompiler", "-fPIC"]
    if arch in AMD:
        own = [] if compiler == HIPCC else _device_libraries()
        return [compiler, "-O3", "-std=c++17", "-x", "hip", f"--offload-arch={arch}", "-fPIC", *own]
    raise KernelError(f"architecture {arch!r} is not one of {', '.join(ARCHITECTURES)}.")


def _device_libraries() -> list[str]:
    folders = (folder for pattern in DEVICE_LIBRARIES for folder in sorted(Path("/").glob(pattern[1:])))
    return [f"--rocm-device-lib-path={folder}" for folder in folders if (folder / "ocml.bc").exists()][:1]


def compile_command(arch: str, out: Path) -> list[str]:
    """The command that makes the shared library of all kernels. hipcc needs HIP_PLATFORM=amd (`environment`)."""
    return [*flags(arch), "-shared", "-o", str(out), *(str(source) for source in SOURCES), "-ldl"]


def environment(arch: str) -> dict[str, str]:
    """With nvcc on the PATH, hipcc compiles for NVIDIA unless it is told otherwise."""
    return {**os.environ, "HIP_PLATFORM": "amd"} if arch in AMD else dict(os.environ)


def source_hash() -> str:
    """Of every file that the compiler reads, names included."""
    digest = hashlib.sha256()
    for path in sorted(SOURCE_DIR.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def library_path(arch: str) -> Path:
    """Where the library of these sources and flags lies, or would lie. KernelError for an unknown architecture."""
    root = Path(os.environ.get("PTI_KERNELS_BUILD", "build/kernels"))
    key = hashlib.sha256("\0".join([source_hash(), *flags(arch)]).encode()).hexdigest()[:16]
    return root / f"{arch}-{key}" / "libkernels.so"


def build(arch: str) -> Path:
    """The library for `arch`, compiled if it is not there. Raises KernelError with the compiler's first complaint."""
    out = library_path(arch)
    if out.exists():
        return out
    compiler = flags(arch)[0]
    if shutil.which(compiler) is None:
        raise KernelError(
            f"{compiler} is not on the PATH, so the kernels for {arch} cannot be compiled; install it, or bring {out}."
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_suffix(f".{os.getpid()}")
    done = subprocess.run(compile_command(arch, partial), env=environment(arch), capture_output=True, text=True)
    if done.returncode != 0:
        partial.unlink(missing_ok=True)
        lines = (
            [line for line in done.stderr.splitlines() if "error" in line]
            or done.stderr.splitlines()[-1:]
            or ["no message"]
        )
        raise KernelError(f"{compiler} could not compile the kernels for {arch}: {lines[0].strip()}")
    partial.replace(out)
    return out
