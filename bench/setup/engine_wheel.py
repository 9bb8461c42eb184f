"""The engine as a wheel: built with given settings once, then taken from the folder of earlier builds.

Standard library only. It knows nothing of the environment that the wheel is installed in.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.host.pins import ENGINE, Pins, digest, engine_requirement
from bench.setup import toolchain
from bench.setup.engine_source import fetch, unpack
from bench.setup.packed_source import add_kernels, kernels_digest
from bench.setup.steps import Steps
from pti_loop.user_cache import user_cache

_KEPT_IN_KEY = ("CC", "CXX", "CFLAGS", "CXXFLAGS", "CUDACXX", "CUDAARCHS", "HIPCXX", "HIP_PATH")


def built(pins: Pins, settings: dict[str, str], venv: Path, pip: list[object], steps: Steps,
          env: dict[str, str], native: bool, backend: str, kernels: str) -> Path:  # fmt: skip
    """The engine built with these settings: from the folder of earlier builds, or built into it."""
    named = f"{pins.engine}+{kernels}-{kernels_digest()}" if kernels else pins.engine
    label = f"building the engine ({named})"
    folder = _wheel_folder(venv) / wheel_key(pins, settings, native, backend, env, named)
    if found := sorted(folder.glob("llama_cpp_python-*.whl")):
        steps.skip(label, f"built earlier, {found[0].parent}")
        return found[0]
    requirement = venv / "engine.txt"
    line = engine_requirement(pins, settings)
    part = folder.with_name(f"{folder.name}.part-{os.getpid()}")
    with tempfile.TemporaryDirectory(prefix="pti-bench-engine-") as temporary:
        if kernels:
            source = _patched_source(pins, venv, Path(temporary), env)
            line = line.replace(pins.engine, f"{ENGINE} @ {source.as_uri()}", 1)
        requirement.write_text(line + "\n")
        try:
            # -v makes pip pass on ninja's lines, which the progress is read from.
            steps.run(label, [*pip, "wheel", "-v", "--no-cache-dir", "--no-deps", "--no-binary", ENGINE, "-w", part,
                              "-r", requirement], env)  # fmt: skip
            os.replace(part, folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return next(folder.glob("llama_cpp_python-*.whl"))


def _patched_source(pins: Pins, venv: Path, folder: Path, env: dict[str, str]) -> Path:
    """The pinned release's Python project in `folder`, with the packed kernels in its llama.cpp."""
    fetch(pins, venv, folder, Steps(1, venv / "source.log"), env)
    llama = unpack(folder)
    add_kernels(llama, pins.engine)
    return llama.parents[1]


def wheel_key(pins: Pins, settings: Mapping[str, str], native: bool, backend: str, env: Mapping[str, str],
              named: str | None = None) -> str:  # fmt: skip
    """Digest of what a built engine depends on: settings, compilers, C library and, for a native build, the CPU."""
    tools = [toolchain.first_line([toolchain.compiler(env), "--version"])]
    if backend != "cpu":
        tools += [toolchain.first_line(["nvcc", "--version"]), toolchain.first_line(["hipconfig", "--version"])]
    cpu = _cpu_flags() if native else ""
    kept = {name: env.get(name, "") for name in _KEPT_IN_KEY}
    return digest(named or pins.engine, settings, tools, platform.machine(), platform.libc_ver(), cpu, kept)


def _cpu_flags() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _wheel_folder(venv: Path) -> Path:
    folder = user_cache() / "pti-bench" / "wheels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = venv / "wheels"
        folder.mkdir(parents=True, exist_ok=True)
    return folder if os.access(folder, os.W_OK) else venv
