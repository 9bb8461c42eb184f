"""Collect what a machine without a network needs to build the engine and to run a sweep, in parts of a given size.

    python scripts/offline/bundle.py FOLDER [--kernels packed] [--without NAME,NAME] [--python 3.12] [--part-mib 48]

FOLDER gets the engine's pinned sources without what a build of its libraries does not read, the files that the packed
kernels change, wheels of this project's dependencies for the Python of the other machine, the default model's package,
and SHA256SUMS. The checkout itself travels as it is (`git archive`, or a copy). `build.sh` takes it from there.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bench.errors import UserError  # noqa: E402
from bench.host.pins import ENGINE, Pins, extras, load, name_of  # noqa: E402
from bench.setup.engine_source import fetch, unpack  # noqa: E402
from bench.setup.packed_source import KERNELS, add_kernels  # noqa: E402
from bench.setup.steps import Steps  # noqa: E402

_READ_BY_A_BUILD = ("CMakeLists.txt", "cmake", "ggml", "include", "src", "common", "tools", "vendor", "licenses",
                    "LICENSE", "scripts")  # fmt: skip
_OTHER_BACKENDS = ("vulkan", "opencl", "hexagon", "sycl", "metal", "cann", "webgpu", "openvino")
_PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64",
              "manylinux1_x86_64", "any")  # fmt: skip


def main() -> int:
    """Make the bundle. Returns 0, or 2 with a sentence."""
    arguments = _parser().parse_args()
    try:
        _bundle(arguments, load())
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0], allow_abbrev=False)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kernels", choices=KERNELS, help="also what these kernels change in the engine's sources")
    parser.add_argument("--without", default="", help="packages that the other machine has, joined by commas")
    parser.add_argument("--python", default=f"{sys.version_info[0]}.{sys.version_info[1]}", help="of the other machine")
    parser.add_argument("--part-mib", type=int, default=48, help="larger files are split")
    return parser


def _bundle(arguments: argparse.Namespace, pins: Pins) -> None:
    folder: Path = arguments.folder
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder} is not empty; name a folder that is not there")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pti-bench-bundle-") as temporary:
        work = Path(temporary)
        fetch(pins, Path(sys.prefix), work, Steps(1, work / "source.log"))
        llama = unpack(work)
        _pack(folder / "engine.tar.xz", _slim(llama, work / "slim"))
        if arguments.kernels:
            _pack(folder / f"engine-{arguments.kernels}.tar.xz", _changed(llama, pins, work / "changed"))
    (folder / "commit").write_text(f"{pins.engine_commit}\n")
    _wheels(folder / "wheels", pins, arguments)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            _split(path, arguments.part_mib << 20)
    lines = [f"{_sha256(path)}  {path.relative_to(folder)}\n" for path in sorted(folder.rglob("*")) if path.is_file()]
    (folder / "SHA256SUMS").write_text("".join(lines))
    total = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {len(lines)} files, {total / 1e6:.0f} MB; there: scripts/offline/build.sh {folder} PREFIX")


def _slim(llama: Path, to: Path) -> Path:
    """What a build of the libraries and of the benches reads, with the Python binding beside it."""
    to.mkdir()
    for name in _READ_BY_A_BUILD:
        place = llama / name
        (shutil.copytree if place.is_dir() else shutil.copy2)(place, to / name)
    for backend in _OTHER_BACKENDS:
        shutil.rmtree(to / "ggml" / "src" / f"ggml-{backend}", ignore_errors=True)
    shutil.rmtree(to / "tools" / "ui", ignore_errors=True)
    # The top CMake file adds this folder, which no library needs.
    (to / "app").mkdir(exist_ok=True)
    (to / "app" / "CMakeLists.txt").touch()
    shutil.copytree(llama.parents[1] / "llama_cpp", to / "llama_cpp")
    return to


def _changed(llama: Path, pins: Pins, to: Path) -> Path:
    """The files that the packed kernels add or change, in llama.cpp's folders."""
    before = {path: _sha256(path) for path in llama.rglob("*") if path.is_file()}
    add_kernels(llama, pins.engine)
    for path in llama.rglob("*"):
        if path.is_file() and before.get(path) != _sha256(path):
            place = to / path.relative_to(llama)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, place)
    return to


def _pack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive, "w:xz") as tar:
        tar.add(folder, arcname=".")


def _wheels(folder: Path, pins: Pins, arguments: argparse.Namespace) -> None:
    """Wheels of the dependencies and of theirs, in the versions of this environment, and the model's package alone."""
    there = {name_of(name) for name in arguments.without.split(",") if name}
    wanted = sorted(_closure(pins) - there - {ENGINE}) + [name_of(line) for line in pins.model_packages]
    options = [f"--python-version={arguments.python}", "--implementation=cp", "--only-binary=:all:",
               *(f"--platform={name}" for name in _PLATFORMS)]  # fmt: skip
    for number, name in enumerate(wanted, 1):
        print(f"[{number}/{len(wanted)}] {name}", flush=True)
        line = f"{name}=={version(name)}"
        if _pip(["download", "--dest", str(folder), "--no-deps", *options, line]) is not None:
            # A few packages have a source archive only. Where they are of Python alone, their wheel fits any machine.
            why = _pip(["wheel", "--wheel-dir", str(folder), "--no-deps", line])
            if why is not None:
                raise UserError(f"pip could not get a wheel of {line} ({why}); look at the network, or name it "
                                "in --without where the other machine has it")  # fmt: skip


def _closure(pins: Pins) -> set[str]:
    """Names of the dependencies and of what they need. Raises `UserError` where this environment lacks one."""
    names: set[str] = set()
    tests = {name_of(line) for line in extras()["test"]}
    left = [name for line in pins.dependencies if (name := name_of(line)) not in tests]
    while left:
        name = left.pop()
        if name in names:
            continue
        names.add(name)
        try:
            needs = [Requirement(line) for line in requires(name) or ()]
        except PackageNotFoundError as error:
            raise UserError(f"{name} is not in this environment, whose versions are bundled; run make setup") from error
        left += [name_of(need.name) for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    return names


def _pip(words: list[str]) -> str | None:
    """Run pip. Returns the last line of its errors where it fails."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stderr.strip().splitlines() or ["no reason given"])[-1] if done.returncode else None


def _split(path: Path, size: int) -> None:
    """A file above `size` bytes into FILE.part-00 and on; the parts sort in their order."""
    if path.stat().st_size <= size:
        return
    with path.open("rb") as whole:
        for number in range(-(-path.stat().st_size // size)):
            path.with_name(f"{path.name}.part-{number:02d}").write_bytes(whole.read(size))
    path.unlink()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main())
