"""Where a record comes from: machine, engine build, packages and the harness's own commit. Becomes a cell's env.json.

Only `engine()` loads the engine; everything else is cheap and works without it. Knows nothing about cells or results.
"""

from __future__ import annotations

import importlib.metadata
import platform
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import build_name
from bench.host import build_flags, cpus, devices, libraries, memory
from bench.host.pins import ROOT
from bench.machine_name import machine_id

PACKAGES = ("llama-cpp-python", "numpy", "pandas", "scipy", "hydra-core", "omegaconf", "gguf", "matplotlib")
_UNTRACKED_FOR_DIRTY = (":!results", ":!reports")
"""What a run itself writes says nothing about whether the code is as committed."""


def machine(name: str = "") -> dict[str, Any]:
    """CPU, cores, memory in bytes, operating system and GPUs.

    `name` identifies the machine; without one it is made from GPU, CPU and cores.
    """
    cpu = cpu_name()
    found = gpus()
    return {
        "name": name or machine_id(cpu, cpus.available_cpus(), found),
        "cpu": cpu,
        "cores": cpus.available_cpus(),
        "cores_present": cpus.physical_cores(),
        "memory_bytes": memory.usable_memory(),
        "os": f"{platform.system()} {platform.release()} {platform.machine()}",
        "gpus": found,
    }


def cpu_name(proc: Path = Path("/proc")) -> str:
    """The CPU's marketing name."""
    try:
        lines = (proc / "cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    for key in ("model name", "Model", "Hardware"):
        for line in lines:
            if line.startswith(key) and ":" in line:
                return " ".join(line.partition(":")[2].split())
    return platform.processor() or platform.machine()


def gpus(sys_root: Path = Path("/sys")) -> list[dict[str, Any]]:
    """The GPUs that this process may use: name, memory in bytes, driver or PCI id, by the driver or by sysfs."""
    cards = devices.visible(devices.present(sys_root))
    folders = [devices.amd_folder(card, sys_root) for card in cards if card.vendor == "amd"]
    return _nvidia_gpus([card.id for card in cards if card.vendor == "nvidia"]) + _amd_gpus(folders)


def _nvidia_gpus(ids: Sequence[str]) -> list[dict[str, Any]]:
    try:
        import pynvml

        pynvml.nvmlInit()
        found = []
        for uuid in ids:
            handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
            major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
            found.append({
                "name": _text(pynvml.nvmlDeviceGetName(handle)), "vendor": "nvidia",
                "memory_bytes": pynvml.nvmlDeviceGetMemoryInfo(handle).total,
                "architecture": f"sm_{major}{minor}", "driver": _text(pynvml.nvmlSystemGetDriverVersion()),
            })  # fmt: skip
        return found
    except Exception:  # without the package, the driver or a card there is simply no NVIDIA GPU here
        return []


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _amd_gpus(folders: Sequence[Path | None]) -> list[dict[str, Any]]:
    found = []
    for device in filter(None, folders):
        pci = _read(device / "device").removeprefix("0x")
        found.append({
            "name": _read(device / "product_name") or f"AMD GPU {pci}", "vendor": "amd", "pci_id": pci,
            "memory_bytes": int(_read(device / "mem_info_vram_total") or 0),
        })  # fmt: skip
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def engine() -> dict[str, Any]:
    """The engine's build: what the loaded library reports, and the hashes of the files that were loaded.

    Its name ends in a digest of these, so a patched library is another build. Loads the engine; raises
    `pti_loop.engine.EngineError`.
    """
    from pti_loop.load_first import load_first

    load_first()
    from pti_loop.llama import library

    facts = library.build()
    names = backends(facts["system_info"], library.devices())  # after it every backend's library is loaded
    path = library.library_path()
    drawn_by = library.beside("ggml-cpu").resolve()  # loaded with a model, and in a wheel a file of its own
    files = libraries.hashes({*libraries.loaded(path), *filter(Path.is_file, [drawn_by])})
    version = facts["binding"].split()[-1]
    commit = full_commit(facts["llama_cpp_commit"])
    kind = "-".join(name.lower() for name in names if name != "CPU") or "cpu"
    name = f"{version}-{commit}-{kind}+{build_name.digest(files)}"
    return {**facts, "llama_cpp_commit": commit, "build": name, "backends": names, "libraries": files,
            "compiler": build_flags.compiler(path), "settings": build_flags.settings(path)}  # fmt: skip


def backends(system_info: str, devices: list[str]) -> list[str]:
    """Backends of a build, CPU last: those with a device here, and those that `system_info` names."""
    named = [re.sub(r"\d+$", "", name) for name in devices]
    named += [part.strip() for part in re.findall(r"(?:^|\|)\s*([A-Za-z]+)\s*:", system_info)]
    unique = list(dict.fromkeys("HIP" if name == "ROCm" else name for name in named))
    return [name for name in unique if name != "CPU"] + ["CPU"]


def full_commit(reported: str) -> str:
    """llama.cpp's commit, as long as the pinned one when it is the beginning of it.

    `-dirty` stays: set-up builds without git, so that a build which says it was made of changed sources.
    """
    from bench.host import pins

    short = reported.removesuffix("-dirty")
    pinned = pins.load().engine_commit
    commit = pinned if short and pinned.startswith(short) else short
    return commit + reported[len(short) :]


def packages(more: Sequence[str] = ()) -> dict[str, str]:
    """Versions of the packages that results depend on; absent ones are left out."""
    found = {}
    for name in (*PACKAGES, *more):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def harness_commit(root: Path = ROOT) -> str:
    """Commit of this checkout, `-dirty` when files other than results and reports differ, or `unknown`."""
    commit = _git(root, "rev-parse", "--short=12", "HEAD")
    if not commit or _git(root, "rev-parse", "--show-toplevel") != str(root.resolve()):
        return "unknown"
    return commit + ("-dirty" if _git(root, "status", "--porcelain", "--", ".", *_UNTRACKED_FOR_DIRTY) else "")


def _git(root: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def environment(name: str = "", threads: int = 0, build: Mapping[str, Any] | None = None,
                more: Sequence[str] = ()) -> dict[str, Any]:  # fmt: skip
    """A cell's env.json: everything above, the time in UTC, and the number of threads that the cell uses.

    `build` is another engine's than llama.cpp, and `more` the packages that it adds. Without `build` llama.cpp is
    loaded; raises `pti_loop.engine.EngineError` when it does not load.
    """
    return {
        "machine": machine(name),
        "engine": build or engine(),
        "python": platform.python_version(),
        "packages": packages(more),
        "time_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "threads": threads,
        "host": devices.host_key(),
        "harness_commit": harness_commit(),
    }
