"""The engine's pinned sources with the packed kernels in them (kernels/ggml): patched, ready to be built by pip.

Standard library only. It builds nothing and knows nothing of environments.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bench.errors import UserError
from bench.host.pins import ROOT

KERNELS = ("packed",)
"""What `make setup KERNELS=` takes."""
_OURS = ROOT / "kernels" / "ggml"
_SHARED = ROOT / "kernels" / "src"
_SHARED_HEADERS = ("args.h", "consume.h", "device.h", "packed.h", "quantise.h", "walk.h")
_PATCHES = ("hooks.patch", "ssm-out.patch")
"""hooks: where llama.cpp meets the kernels. ssm-out: one product for all sequences in recurrent layers."""
_TARGET = Path("ggml/src/ggml-cuda")


def sources() -> Iterator[tuple[Path, Path]]:
    """Each file that is added, and its place in llama.cpp's tree."""
    for path in sorted([*_OURS.glob("*.cu"), *_OURS.glob("*.cuh")]):
        yield path, _TARGET / path.name
    for name in _SHARED_HEADERS:
        yield _SHARED / name, _TARGET / "packed-src" / name


def kernels_digest() -> str:
    """8 hex characters of all that is added or patched: part of the build's name."""
    hasher = hashlib.sha256()
    for path in [*(source for source, _ in sources()), *(_OURS / name for name in _PATCHES)]:
        hasher.update(path.name.encode() + b"\0" + path.read_bytes())
    return hasher.hexdigest()[:8]


def add_kernels(llama: Path, release: str) -> None:
    """Patch llama.cpp's tree in `llama` and add the kernels.

    Raises `UserError` where the patch does not fit, which names the release, or where git is missing.
    """
    if shutil.which("git") is None:
        raise UserError("git is not there, which applies the patch of the packed kernels; install git and try again")
    # Found in a folder of another repository, git would skip what lies outside of that repository, and say nothing.
    env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(llama.resolve().parent)}
    shutil.rmtree(llama / ".git", ignore_errors=True)
    (llama / ".git").unlink(missing_ok=True)
    for name in _PATCHES:
        command = ["git", "apply", "--whitespace=nowarn", str(_OURS / name)]
        done = subprocess.run(command, cwd=llama, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            why = (done.stderr.strip().splitlines() or ["no reason given"])[0]
            raise UserError(
                f"the packed kernels do not fit the sources of {release} ({name}: {why}); "
                f"use the release that pyproject.toml pins, or `make setup` without KERNELS"
            )
    for source, place in sources():
        (llama / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, llama / place)
