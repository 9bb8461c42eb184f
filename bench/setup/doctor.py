"""`python -m bench doctor`: what this machine is, whether the main job can run on it, and what cannot, with the reason.

It measures nothing. Every finding is a line; the exit code is 1 when no sweep can run. That the default model is absent
is no reason where another one is here.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import UserError
from bench.host.pins import ROOT
from bench.setup import rocm, setup
from pti_loop.user_cache import user_cache

DECODE_TIMEOUT_S = 300
PROFILERS = {
    "ncu": ("/usr/local/cuda/bin", "NVIDIA kernel counters"),
    "nsys": ("/usr/local/cuda/bin", "NVIDIA timelines"),
    "rocprofv3": ("/opt/rocm/bin", "AMD kernel counters"),
    "rocprof": ("/opt/rocm/bin", "AMD kernel counters, older"),
    "perf": ("/usr/bin", "CPU counters"),
}
_MARKS = {True: "ok", False: "FAIL", None: "--"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line. `ok` False stops the main job; None is something absent that the main job does not need."""

    label: str
    ok: bool | None
    text: str


def main(argv: list[str] | None = None) -> int:
    """Print the findings. Exit code 0 when the main job can run, else 1."""
    if argv and argv[0] in ("-h", "--help"):
        print(f"usage: python -m bench doctor\n\n{__doc__.strip()}")
        return 0
    failed, default = False, True
    for finding in findings():
        failed |= finding.ok is False
        default &= finding.label != "model" or finding.ok is True
        print(f"{_MARKS[finding.ok]:>4}  {finding.label:<19} {finding.text}", flush=True)
    can = "`make bench` can run here" if default else "a sweep of another model than the default one can run here"
    print("\nno sweep can run here; mend the lines marked FAIL" if failed else f"\n{can}")
    return 1 if failed else 0


def findings() -> Iterator[Finding]:
    """All findings, cheap ones first; stops after the engine when that is missing."""
    yield from _machine()
    missing = [name for name in ("numpy", "psutil", "llama_cpp") if importlib.util.find_spec(name) is None]
    if missing:
        yield Finding("environment", False, f"{sys.executable} lacks {', '.join(missing)}; run `make setup`")
        return
    stamp = setup.read_stamp(Path(sys.prefix))
    others = other_models()
    own = default_model()
    yield _model_line("model", own, others)
    # Another model does as well to tell whether the engine decodes here.
    usable = (path for path in (own, *others) if path and _model_line("model found", path).ok)
    model = next(usable, None)
    decode = decode_check(model, bool(stamp.get("native"))) if model else None
    if decode:
        yield decode
    # The engine's own description needs the engine loaded, which the child has just shown to be safe.
    if decode is None or decode.ok:
        yield from _engine()
    yield from (_model_line("model found", path) for path in others)
    yield from _builds(model)
    yield _writable(ROOT / "results")
    yield from _tools()
    yield from _limits()


def _machine() -> Iterator[Finding]:
    from bench.host import cpus, memory, provenance

    cores = cpus.available_cpus()
    facts = provenance.machine()
    yield Finding("machine", True, f"{facts['name']}: {facts['cpu']}, {cores} CPUs for this process, {facts['os']}")
    yield Finding("memory", True, f"{facts['memory_bytes'] / 2**30:.1f} GiB usable"
                  + (" (container limit)" if memory.cgroup_memory_limit() else ""))  # fmt: skip
    for gpu in facts["gpus"]:
        yield Finding("gpu", True, f"{gpu['name']}, {gpu['memory_bytes'] / 2**30:.0f} GiB")


def _engine() -> Iterator[Finding]:
    from bench.host import provenance

    try:
        facts = provenance.engine()
    except Exception as error:  # whatever keeps the engine from loading is the finding
        yield Finding("engine", False, f"it does not load: {error}")
        return
    commit = facts["llama_cpp_commit"]
    yield Finding("engine", True, f"{facts['binding']}, llama.cpp {commit}, backends {', '.join(facts['backends'])}")
    yield Finding("cpu features", True, facts["system_info"])
    for gpu in provenance.gpus():
        backend = {"nvidia": "CUDA", "amd": "HIP"}[gpu["vendor"]]
        if backend not in facts["backends"]:
            text = f"the engine is built without {backend}, so the {gpu['name']} is not used"
            yield Finding("gpu", None, f"{text}; run `make setup BACKEND={backend.lower()}`")
            if backend == "HIP":
                yield _rocm()


def _rocm() -> Finding:
    """Whether ROCm has what a build with HIP needs."""
    try:
        rocm.check_rocm()
    except UserError as error:
        return Finding("rocm", None, str(error))
    return Finding("rocm", True, f"{rocm.root()} has what a build needs")


def _builds(model: Path | None) -> Iterator[Finding]:
    """The builds of `builds/`, each loaded and tried in child processes. None of them is needed."""
    from bench.host import builds

    for name, folder in builds.listed().items():
        try:
            facts = builds.facts(name)
        except UserError as error:
            yield Finding(f"build {name}", None, str(error))
            continue
        told = ", ".join(filter(None, (facts["build"], facts["compiler"])))
        decode = decode_check(model, True, folder=folder) if model else None
        if decode and not decode.ok:
            yield Finding(f"build {name}", None, f"{told}: it loads, and {decode.text}")
        else:
            yield Finding(f"build {name}", True, f"{told}; engine.build=stock,{name} puts it on trial")


def decode_check(model: Path, native: bool, run: Callable[..., Any] = subprocess.run,
                 folder: Path | None = None) -> Finding:  # fmt: skip
    """One decode in a child process; its death becomes a sentence with the command that mends it.

    `folder` has the libraries of another build than the usual one.
    """
    from bench.host.builds import child_environment

    more = {"env": os.environ | child_environment(folder)} if folder else {}
    command = [sys.executable, "-m", "bench.setup.decode_once", str(model)]
    try:
        done = run(command, capture_output=True, text=True, timeout=DECODE_TIMEOUT_S, cwd=ROOT, **more)
    except subprocess.TimeoutExpired:
        return Finding("decode", False, f"one decode takes more than {DECODE_TIMEOUT_S} s; is the machine overloaded?")
    if done.returncode < 0:
        return Finding("decode", False, death_sentence(-done.returncode, native))
    try:
        facts = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        return Finding("decode", False, f"the engine does not load: {last}; run `make clean setup`")
    if done.returncode:
        return Finding("decode", False, facts["error"])
    return Finding("decode", True, f"loads in {facts['load_s']:.1f} s, one token in {facts['decode_s'] * 1e3:.0f} ms")


def death_sentence(number: int, native: bool) -> str:
    """Why a child that decodes was killed by this signal, and what to type."""
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    if number == signal.SIGILL and native:
        return "the engine uses instructions that this CPU refuses (SIGILL); run `make setup NATIVE=0`"
    if number == signal.SIGILL:
        return (
            "the engine uses instructions that this CPU refuses (SIGILL), though its build is portable: it needs AVX2; "
            'add `"cmake.define.GGML_AVX2" = "OFF"` to the build settings in pyproject.toml and run `make setup`'
        )
    if number == signal.SIGKILL:
        return "the engine was killed (SIGKILL), which mostly means that memory ran out; free some"
    return f"the engine crashes in one decode ({name}); run `make clean setup` to build it again"


def default_model() -> Path | None:
    """The model file of the installed model package."""
    from bench.host.pins import load, name_of

    for requirement in load().model_packages:
        try:
            files = importlib.metadata.files(name_of(requirement)) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.suffix == ".gguf" and Path(file.locate()).is_file():
                return Path(file.locate()).resolve()
    return None


def other_models(limit: int = 8) -> list[Path]:
    """GGUF files in the checkout's `models` folder and in llama.cpp's and Hugging Face's download folders."""
    cache = user_cache()
    found: list[Path] = []
    for folder, pattern in ((ROOT / "models", "**/*.gguf"), (cache / "llama.cpp", "*.gguf"),
                            (cache / "huggingface/hub", "models--*/snapshots/*/*.gguf")):  # fmt: skip
        found += sorted(folder.glob(pattern)) if folder.is_dir() else []
    models = [path for path in found if ".lora." not in path.name]
    return [path for path in models if "-of-" not in path.name or "-00001-of-" in path.name][:limit]


def _model_line(label: str, path: Path | None, others: Sequence[Path] = ()) -> Finding:
    """A model's line. The default one fails only where none of `others` can stand in for it."""
    from bench.host.memory import usable_memory
    from pti_loop.gguf import file as gguf_file

    def unusable(why: str) -> Finding:
        if label != "model":
            return Finding(label, None, why)
        other = next((path for path in others if _model_line("model found", path).ok), None)
        if other is None:
            return Finding(label, False, why)
        return Finding(label, None, f"{why}; a sweep can have another: model=gguf model.path={other}")

    if path is None:
        return unusable("the default model is not installed; run `make setup`")
    try:
        model = gguf_file.read(path)
    except gguf_file.ModelFileError as error:
        return unusable(str(error))
    text = f"{model.name} {model.quantization}, {model.tensor_bytes / 1e6:.0f} MB of weights, {path}"
    if model.tensor_bytes > usable_memory():
        return unusable(f"{text}: larger than the memory")
    return Finding(label, True, text)


def _writable(folder: Path) -> Finding:
    place = folder if folder.exists() else folder.parent
    if os.access(place, os.W_OK):
        free = shutil.disk_usage(place).free
        return Finding("results", True, f"{folder} can be written, {free / 2**30:.1f} GiB free")
    return Finding("results", False, f"{folder} cannot be written; mend its permissions")


def find_tool(name: str, folder: str) -> str | None:
    """A program on the PATH or in the folder where its installer puts it."""
    return shutil.which(name) or shutil.which(name, path=folder)


def _tools() -> Iterator[Finding]:
    from bench.setup import peer_build
    from pti_loop.hf import load

    peers = peer_build.found(Path(sys.prefix))
    for name in peer_build.PROGRAMS:
        lost = "figures are not checked against it" if name in peer_build.PEERS else "no server can be on trial"
        missing = f"not here: {lost}; run `make peers`"
        yield Finding(name, True if name in peers else None, str(peers.get(name, missing)))
    absent = load.missing()
    lacks = f"not here ({', '.join(absent)}): model.engine=hf cannot run; run `{load.INSTALL}`"
    yield Finding("transformers", None if absent else True, lacks if absent else "model.engine=hf can run")
    for name, (folder, purpose) in PROFILERS.items():
        path = find_tool(name, folder)
        yield Finding(name, True if path else None, f"{path} ({purpose})" if path else f"not here: no {purpose}")


def _limits() -> Iterator[Finding]:
    """What cannot run or be told here, besides what the lines above said."""
    from bench.host import clocks, provenance

    gpus = provenance.gpus()
    note = clocks.Clocks("gpu" if gpus else "cpu").note
    if note:
        yield Finding("sensors", None, f"{note}: a run that is throttled cannot be marked")
    if not gpus:
        yield Finding("kernels", None, "no GPU here: kernels can be compiled and checked, not timed")
    if not any("MI50" in gpu["name"] or gpu.get("pci_id") in ("66a1", "66a0") for gpu in gpus):
        yield Finding("claims", None, "no MI50 here: absolute MI50 figures stay `not_comparable`; ratios can be judged")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
