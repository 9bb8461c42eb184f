"""The engine's pinned source archive: fetched by pip, and unpacked. Standard library only; it builds nothing."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from pathlib import Path

from bench.errors import UserError
from bench.host.pins import ENGINE, Pins
from bench.setup.steps import Steps


def fetch(pins: Pins, venv: Path, folder: Path, steps: Steps, env: Mapping[str, str] | None = None) -> None:
    """The archive, into a folder. Raises `UserError`."""
    steps.run(f"fetching the source of {pins.engine}", [
        venv / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--no-deps",
        "--no-binary", ENGINE, "-d", folder, pins.engine,
    ], env)  # fmt: skip


def unpack(folder: Path) -> Path:
    """llama.cpp's folder of the one archive in `folder`, unpacked there; the Python project is two folders above it.

    Raises `UserError` without an archive.
    """
    archives = sorted(folder.glob("*.tar.gz"))
    if not archives:
        raise UserError(f"{ENGINE} came without a source archive, which is to be built against")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(folder / "src", filter="data")
    return next((folder / "src").glob("*/vendor/llama.cpp"))
