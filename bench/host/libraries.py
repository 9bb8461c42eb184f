"""Which files an engine's build is: the shared libraries that were loaded, by their hashes.

A version says nothing about a library that somebody patched or built otherwise. Knows nothing about cells or results,
and loads nothing itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from pti_loop.gguf.file_hash import sha256_of

_ENGINE = re.compile(r"(lib)?(llama|ggml)[\w-]*\.(so|dylib|dll)[\w.]*")
"""Names of llama.cpp's own libraries, with a version or without: libllama.so.0.5.0, libggml-cpu.so, ggml.dll."""


def loaded(library: Path, maps: Path = Path("/proc/self/maps")) -> list[Path]:
    """llama.cpp's libraries that this process has mapped, each file once, by name.

    Where the system does not tell, those in the folder of `library`, the one that the binding loaded.
    """
    try:
        mapped = [line.partition("/")[2] for line in maps.read_text().splitlines()]
    except OSError:
        mapped = []
    found = of_the_engine(Path(f"/{path}") for path in mapped if path)
    return found or of_the_engine(library.parent.iterdir())


def of_the_engine(paths: Iterable[Path]) -> list[Path]:
    """Files behind those paths that are named as libraries of the engine; links to one file count once."""
    files = {path.resolve() for path in paths if _ENGINE.fullmatch(path.name) and path.is_file()}
    return sorted(files, key=lambda path: (path.name, str(path)))


def hashes(files: Iterable[Path]) -> dict[str, str]:
    """SHA-256 by file name, remembered by path, size and time of change. Raises `OSError`."""
    return {path.name: sha256_of([path]) for path in files}
