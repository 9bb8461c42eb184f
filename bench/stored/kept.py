"""What cells said when they were judged before, kept in the user's cache and found by all that it rests on.

A share is kept under a hash of every byte of its cell, of the cell's name and machine, and of the code that judges, and
it counts only while the step-cost curves that priced the cell are the same. So an edited cell, another curve or another
version of the code finds nothing. The bytes are read again where something touched the files. A share that is damaged,
was moved, or holds anything but rows is as good as none. Two reports at once write the same files. It knows nothing
about what is judged.
"""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import shutil
import sys
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from bench.judge.cell import JudgedCell, Profile
from bench.stored.cache_files import keep, place_of
from bench.stored.stamps import Stamps, digest_of
from pti_loop.user_cache import user_cache

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("bench/judge", "bench/records", "bench/report/tables", "bench/stored", "pti_loop")
"""Folders of the code that a share follows from, beside the modules of `bench` itself."""
LIBRARIES = ("numpy", "pyyaml", "scipy")
MOST_VERSIONS = 2
"""Versions of the code whose shares are kept: those of older ones are removed."""
_DIGEST = 32
NOTHING = bytes(_DIGEST)
"""The digest of no curve, and of no identity."""
_ROWS = ("bench.judge.", "bench.stored.kept", "pti_loop.ledger", "pti_loop.parameters")
_PARTS = {
    ("bench.judge.columns", "_rebuilt"),
    ("numpy", "dtype"), ("numpy", "ndarray"), ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"), ("numpy._core.numeric", "_frombuffer"), ("types", "MappingProxyType"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Share:
    """One cell's share of the findings, and of a profile its curves."""

    judged: JudgedCell
    profile: Profile | None = None


@cache
def version() -> str:
    """A hash of the code that judges and of what it computes with."""
    found = hashlib.sha256(" ".join([sys.version, *map(version_of, LIBRARIES)]).encode())
    paths = [path for folder in SOURCES for path in (ROOT / folder).rglob("*.py")] + list((ROOT / "bench").glob("*.py"))
    for path in sorted(paths):
        content = path.read_bytes()
        found.update(f"{path.relative_to(ROOT)} {len(content)}\n".encode() + content)
    return found.hexdigest()


def key_of(folder: Path, traces: bool = False, name: str = "", digest: str | None = None) -> str:
    """What a cell's share is kept under, with its traces or without; `name` is what its machine is called instead.

    `digest` is that of its bytes where it is known; they are read otherwise. Empty where a file cannot be read; whoever
    judges it says why.
    """
    digest = digest_of(folder) if digest is None else digest
    about = f"{version()} {traces} {folder.parent.name}/{folder.name} {name}\n{digest}"
    return hashlib.sha256(about.encode(errors="surrogateescape")).hexdigest() if digest else ""


def identity_digest(identity: Sequence[object]) -> bytes:
    """Stands for what a cell shares with the curves that price it."""
    return hashlib.sha256(repr(identity).encode(errors="surrogateescape")).digest()


def prices_digest(keys: Sequence[str]) -> bytes:
    """Stands for the profiles of one identity, told by their keys."""
    return hashlib.sha256("\n".join(sorted(keys)).encode()).digest() if keys else NOTHING


class Kept:
    """The shares of one version of the code."""

    def __init__(self) -> None:
        self.folder = user_cache() / "pti-bench" / "judged" / version()[:16]
        self.stamps = Stamps(self.folder / "stamps")

    def load(self, key: str, prices: Mapping[bytes, bytes] | None = None) -> bytes | None:
        """The share kept under a key, packed; None where there is none, or where other curves priced it.

        `prices` are the digests of the curves that there are, by identity; None for a profile, which nothing prices.
        """
        if (found := self._found(key)) is None:
            return None
        identity, priced, share = found
        return share if prices is None or prices.get(identity, NOTHING) == priced else None

    def priced(self, key: str) -> tuple[bytes, bytes] | None:
        """The digests of what a kept share has in common with curves, and of those that priced it."""
        found = self._found(key)
        return found and found[:2]

    def _found(self, key: str) -> tuple[bytes, bytes, bytes] | None:
        """Both digests, and the share."""
        try:
            content = zlib.decompress(place_of(self.folder, key).read_bytes())
        except (OSError, zlib.error):
            return None
        seal, identity, priced, share = (content[:_DIGEST], content[_DIGEST : 2 * _DIGEST],
                                         content[2 * _DIGEST : 3 * _DIGEST], content[3 * _DIGEST :])  # fmt: skip
        return (identity, priced, share) if seal == _seal(key, identity, priced, share) else None

    def store(self, key: str, share: bytes, identity: bytes = NOTHING, priced: bytes = NOTHING) -> None:
        """Keep a share, whole or not at all; where nothing can be written the next report judges again."""
        content = zlib.compress(_seal(key, identity, priced, share) + identity + priced + share, 1)
        keep(place_of(self.folder, key), content)

    def forget_others(self) -> None:
        """Remove the shares of all but the newest versions."""
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            os.utime(self.folder)
            versions = sorted(self.folder.parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
            for old in versions[MOST_VERSIONS:]:
                shutil.rmtree(old, ignore_errors=True)


def _seal(key: str, *parts: bytes) -> bytes:
    """Ties a file's content to the key that it lies under."""
    return hashlib.sha256(b"".join([key.encode(), *parts])).digest()


def packed(share: Share) -> bytes:
    """A share as bytes."""
    return pickle.dumps(share, 5)


def unpacked(content: bytes) -> Share | None:
    """The share of some bytes; None where they hold anything else. Nothing of theirs is run but rows made."""
    found = rows_in(content)
    return found if isinstance(found, Share) else None


def rows_in(content: bytes) -> object:
    """What some bytes hold, if that is rows and plain values; None where it is anything else."""
    try:
        return _Reader(io.BytesIO(content)).load()
    except Exception:  # what does not fit today's classes fails in any way
        return None


def plain(content: bytes) -> Any:
    """The same of plain values alone."""
    try:
        return _PlainReader(io.BytesIO(content)).load()
    except Exception:  # as above
        return None


class _Reader(pickle.Unpickler):
    """Makes rows, curves and numbers, and nothing else: neither a function of ours nor any other class."""

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name) if module.startswith(_ROWS) or (module, name) in _PARTS else None
        if found is None or ((module, name) not in _PARTS and not isinstance(found, type)):
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a share")
        return found


class _PlainReader(pickle.Unpickler):
    """Makes texts, bytes, numbers and collections of them, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is no plain value")
