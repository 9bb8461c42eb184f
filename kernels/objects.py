"""The kernels of a library that somebody built for AMD's cards, such as llama.cpp's: their registers and code.

It reads files and runs LLVM's tools on what is in them; it loads nothing, and knows no kernel.
"""

from __future__ import annotations

import mmap
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from kernels import loops, resources
from kernels.errors import KernelError
from kernels.loops import Code
from kernels.resources import Resources

_BUNDLE, _COMPRESSED = b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB"
_CLANG = re.compile(rb"[\x20-\x7e]*clang version [\x20-\x7e]+")
_TOOLS = "apt-get install llvm"
_MOST = 64
"""Kinds of code in one bundle; more is no bundle."""


def kernels_of(library: Path, arch: str) -> list[tuple[Resources, Code]]:
    """Every kernel for `arch` (gfx906) in a library or object file, with its code, in order.

    Raises KernelError where the file has none, cannot be read, or a tool is not there.
    """
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number, part in enumerate(_code_objects(library, arch)):
            path = Path(folder) / f"{number}.co"
            path.write_bytes(part)
            codes = loops.of_disassembly(_said("objdump", "-d", f"--mcpu={arch}", str(path)))
            kernels = resources.from_amd_notes(arch, _said("readelf", "--notes", str(path)))
            found += [(kernel, codes.get(kernel.symbol, [])) for kernel in kernels]
    if not found:
        raise KernelError(f"{library} holds no code for {arch}; give a library that was built for it, or --arch.")
    return found


def built_by(library: Path) -> str:
    """The clang that a library names as its compiler; empty where it names none."""
    with _mapped(library) as data:
        found = _CLANG.search(data)
        return found[0].decode() if found else ""


def _code_objects(library: Path, arch: str) -> Iterator[bytes]:
    """What clang's bundles in a file have for an architecture.

    The layout is that of LLVM's ClangOffloadBundler: after the mark the number of entries, of each the offset from the
    mark, size, and length of its name, as 64-bit numbers, and the name.
    """
    with _mapped(library) as data:
        start = data.find(_BUNDLE)
        if start < 0 and data.find(_COMPRESSED) >= 0:
            raise KernelError(f"{library} holds compressed code; build it with --no-offload-compress.")
        while start >= 0:
            for name, offset, size in _entries(data, start):
                if name.split("-")[-1].split(":")[0] == arch and size:
                    yield data[start + offset : start + offset + size]
            start = data.find(_BUNDLE, start + 1)


def _entries(data: mmap.mmap, start: int) -> Iterator[tuple[str, int, int]]:
    at = start + len(_BUNDLE)
    try:
        (count,) = struct.unpack_from("<Q", data, at)
        at += 8
        for _ in range(count if count <= _MOST else 0):
            offset, size, length = struct.unpack_from("<QQQ", data, at)
            yield data[at + 24 : at + 24 + min(length, 256)].decode("ascii", "replace"), offset, size
            at += 24 + length
    except struct.error:  # the mark stood in a text, or the file is cut
        return


def _mapped(library: Path) -> mmap.mmap:
    try:
        with library.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is empty"
        raise KernelError(f"{library} cannot be read ({why}); give a library such as libggml-hip.so.") from error


def _said(tool: str, *words: str) -> str:
    """What one of LLVM's tools prints. KernelError where there is none, or it refuses."""
    names = [f"llvm-{tool}", *(f"llvm-{tool}-{number}" for number in range(30, 13, -1))]
    # The newest that is there: it knows what older ones wrote.
    path = next(filter(None, map(shutil.which, [*names[1:], names[0]])), None)
    if path is None:
        raise KernelError(f"llvm-{tool} is not on the PATH, so no library can be disassembled; {_TOOLS}.")
    done = subprocess.run([path, *words], capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise KernelError(f"{path} refuses a code object: {(done.stderr.strip() or 'no reason').splitlines()[0]}")
    return done.stdout
