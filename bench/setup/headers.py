"""The headers of llama.cpp that its own drafters are compiled against, kept from the engine's pinned source archive.

An installed engine has the library but not the headers of it. Standard library only; it compiles nothing.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from bench.errors import UserError
from bench.host.pins import Pins
from bench.setup.engine_source import fetch, unpack
from bench.setup.steps import Steps
from pti_loop.llama.header_folder import FOLDERS, headers, kept


def keep(pins: Pins, venv: Path) -> None:
    """Fetch them where they are not kept. Without a network everything but llama.cpp's own drafters works, so that is
    told and no error."""  # fmt: skip
    if kept(pins.engine_commit):
        return
    folder = headers(pins.engine_commit)
    try:
        with tempfile.TemporaryDirectory(prefix="pti-bench-headers-") as temporary:
            fetch(pins, venv, Path(temporary), Steps(1, venv / "headers.log"))
            copy(unpack(Path(temporary)), folder)
    except (OSError, UserError) as error:
        reason = str(error).partition("\n")[0]
        print(f"llama.cpp's own drafters (method=native) cannot be used: {reason}")


def copy(source: Path, folder: Path) -> None:
    """Headers of an unpacked llama.cpp, into a folder that is whole or absent. Raises OSError."""
    part = folder.with_name(f"{folder.name}.{os.getpid()}.part")
    try:
        for name in FOLDERS:
            (part / name).mkdir(parents=True)
            for path in sorted((source / name).glob("*.h")):
                shutil.copy(path, part / name)
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
