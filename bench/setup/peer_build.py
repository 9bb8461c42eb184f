"""llama-bench and llama-batched-bench, built against the very libraries that the engine uses.

Only the two programs are compiled, from the engine's pinned source archive; they load the environment's own libraries,
so a difference in speed cannot come from another build. Standard library only; it does not run the programs.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from bench.host.pins import Pins
from bench.setup import toolchain

PEERS = {"llama-bench": "llama-bench", "llama-batched-bench": "batched-bench"}
"""Program -> its folder in llama.cpp's tools."""
_INCLUDES = ("include", "ggml/include", "common", "vendor")
_DEFINES = ("-DNDEBUG", "-DLLAMA_SHARED", "-DGGML_SHARED", "-DGGML_BACKEND_SHARED")


def built(venv: Path) -> dict[str, Path]:
    """Peer programs of an environment that are there, by name."""
    folder = venv / "peers"
    return {name: folder / name for name in PEERS if os.access(folder / name, os.X_OK)}


def build(pins: Pins, venv: Path, key: str) -> dict[str, Path]:
    """Build what is missing or stale into `venv/peers`. Returns the programs by name. Raises `UserError`."""
    from bench.setup.engine_source import fetch, unpack
    from bench.setup.steps import Steps

    folder = venv / "peers"
    stamp = folder / "key"
    if stamp.is_file() and stamp.read_text() == key and len(built(venv)) == len(PEERS):
        return built(venv)
    folder.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    steps = Steps(1 + len(PEERS), venv / "peers.log")
    with tempfile.TemporaryDirectory(prefix="pti-bench-peers-") as temporary:
        archive = Path(temporary)
        fetch(pins, venv, archive, steps)
        source = unpack(archive)
        for name, tool in PEERS.items():
            part = folder / f"{name}.part"
            steps.run(f"building {name}", compile_command(source, tool, part, venv))
            os.replace(part, folder / name)
    stamp.write_text(key)
    return built(venv)


def compile_command(source: Path, tool: str, output: Path, venv: Path) -> list[str]:
    """The compiler's command line for one tool. Libraries are found relative to the program, so the folder can move.

    Raises `UserError` when there is no compiler.
    """
    site = next((venv / "lib").glob("python3*/site-packages"))
    # The environment has two copies of the same libraries; llama_cpp/lib is the one that Python loads. It goes first.
    libraries = [site / "llama_cpp" / "lib", site / "lib"]
    origin = "@loader_path" if sys.platform == "darwin" else "$ORIGIN"
    # RPATH, not RUNPATH: it must also hold for what the libraries themselves load.
    tags = [] if sys.platform == "darwin" else ["-Wl,--disable-new-dtags"]
    return [
        toolchain.compiler(), "-O3", "-std=c++17", "-pthread", *_DEFINES, *(f"-I{source / part}" for part in _INCLUDES),
        *(str(path) for path in sorted((source / "tools" / tool).glob("*.cpp"))), "-o", str(output),
        *(f"-L{path}" for path in libraries), "-lllama-common", "-lllama", "-lggml", "-lggml-base", *tags,
        *(f"-Wl,-rpath,{origin}/{os.path.relpath(path, output.parent)}" for path in libraries),
    ]  # fmt: skip


def found(venv: Path) -> dict[str, Path]:
    """Peer programs of the environment, else those on the PATH, by name."""
    return {
        **{name: Path(path) for name in PEERS if (path := shutil.which(name))},
        **built(venv),
    }
