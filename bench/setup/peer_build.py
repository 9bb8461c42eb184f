"""llama-bench, llama-batched-bench and llama-server, built against the very libraries that the engine uses.

Only the programs are compiled, from the engine's pinned source archive; they load the environment's own libraries, so a
difference in speed cannot come from another build. Standard library only; it does not run the programs.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench.host.pins import Pins
from bench.setup import server_build, toolchain

if TYPE_CHECKING:
    from bench.setup.steps import Steps

PEERS = {"llama-bench": "llama-bench", "llama-batched-bench": "batched-bench"}
"""Program of one file or two -> its folder in llama.cpp's tools."""
PROGRAMS = (*PEERS, server_build.NAME)
_INCLUDES = ("include", "ggml/include", "common", "vendor")
FLAGS = ("-std=c++17", "-pthread", "-DNDEBUG", "-DLLAMA_SHARED", "-DGGML_SHARED", "-DGGML_BACKEND_SHARED")


def built(venv: Path) -> dict[str, Path]:
    """Peer programs of an environment that are there, by name."""
    folder = venv / "peers"
    return {name: folder / name for name in PROGRAMS if os.access(folder / name, os.X_OK)}


def build(pins: Pins, venv: Path, key: str) -> dict[str, Path]:
    """Build what is missing or stale into `venv/peers`. Returns the programs by name. Raises `UserError`."""
    from bench.setup.engine_source import fetch, unpack
    from bench.setup.steps import Steps

    folder = venv / "peers"
    stamp = folder / "key"
    if stamp.is_file() and stamp.read_text() == key and len(built(venv)) == len(PROGRAMS):
        return built(venv)
    folder.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    steps = Steps(3 + len(PEERS), venv / "peers.log")
    with tempfile.TemporaryDirectory(prefix="pti-bench-peers-") as temporary:
        archive = Path(temporary)
        fetch(pins, venv, archive, steps)
        source = unpack(archive)
        for name, tool in PEERS.items():
            part = folder / f"{name}.part"
            steps.run(f"building {name}", compile_command(source, tool, part, venv))
            os.replace(part, folder / name)
        _build_server(source, archive, venv, steps)
    stamp.write_text(key)
    return built(venv)


def _build_server(source: Path, work: Path, venv: Path, steps: Steps) -> None:
    """llama-server: its files at once, as many as there are CPUs, then linked."""
    objects, rules = work / "server", work / "server.mk"
    objects.mkdir()
    flags = ["-O2", *FLAGS, *server_build.DEFINES, f"-I{objects}",
             *(f"-I{source / part}" for part in (*_INCLUDES, *server_build.INCLUDES))]  # fmt: skip
    rules.write_text(server_build.makefile(source, objects, flags))
    steps.run(f"compiling {server_build.NAME}", ["make", "-j", toolchain.build_jobs(), "-f", rules])
    part, name = venv / "peers" / f"{server_build.NAME}.part", venv / "peers" / server_build.NAME
    steps.run(f"linking {server_build.NAME}", [toolchain.compiler(), "-pthread", *sorted(objects.glob("*.o")),
                                              *link_words(part, venv)])  # fmt: skip
    os.replace(part, name)


def compile_command(source: Path, tool: str, output: Path, venv: Path) -> list[str]:
    """The compiler's command line for one tool. Raises `UserError` when there is no compiler."""
    return [
        toolchain.compiler(), "-O3", *FLAGS, *(f"-I{source / part}" for part in _INCLUDES),
        *(str(path) for path in sorted((source / "tools" / tool).glob("*.cpp"))), *link_words(output, venv),
    ]  # fmt: skip


def link_words(output: Path, venv: Path) -> list[str]:
    """What links a program. Libraries are found relative to it, so the folder can move."""
    site = next((venv / "lib").glob("python3*/site-packages"))
    # The environment has two copies of the same libraries; llama_cpp/lib is the one that Python loads. It goes first.
    libraries = [site / "llama_cpp" / "lib", site / "lib"]
    origin = "@loader_path" if sys.platform == "darwin" else "$ORIGIN"
    # RPATH, not RUNPATH: it must also hold for what the libraries themselves load.
    tags = [] if sys.platform == "darwin" else ["-Wl,--disable-new-dtags"]
    return [
        "-o", str(output), *(f"-L{path}" for path in libraries), "-lllama-common", "-lllama", "-lggml", "-lggml-base",
        *tags, *(f"-Wl,-rpath,{origin}/{os.path.relpath(path, output.parent)}" for path in libraries),
    ]  # fmt: skip


def found(venv: Path) -> dict[str, Path]:
    """Peer programs of the environment, else those on the PATH, by name."""
    return {
        **{name: Path(path) for name in PROGRAMS if (path := shutil.which(name))},
        **built(venv),
    }
