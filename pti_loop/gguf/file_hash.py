"""SHA-256 of large files, remembered by path, size and times of change. Knows nothing about their content."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pti_loop.user_cache import user_cache

_CHUNK = 4 << 20


def cache_dir() -> Path:
    """This user's folder for things that can be computed again."""
    return user_cache() / "pti-loop"


def sha256_of(paths: Sequence[Path]) -> str:
    """Hex digest of one file; of several, the digest of their digests in order. Raises `OSError`."""
    digests = [_remembered(path) for path in paths]
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def _remembered(path: Path) -> str:
    stat = path.stat()
    identity = [str(path.resolve()), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
    entry = cache_dir() / "sha256" / (hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:32] + ".json")
    try:
        known = json.loads(entry.read_text())
        if known["file"] == identity and len(known["sha256"]) == 64:
            return str(known["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    digest = _hash(path)
    _remember(entry, {"file": identity, "sha256": digest})
    return digest


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    buffer = memoryview(bytearray(_CHUNK))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            digest.update(buffer[:count])
    return digest.hexdigest()


def _remember(entry: Path, content: dict[str, object]) -> None:
    """Write whole or not at all. A cache that cannot be written costs time, not correctness, so it is no error."""
    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=entry.parent, delete=False) as file:
            json.dump(content, file)
        os.replace(file.name, entry)
    except OSError:
        pass
