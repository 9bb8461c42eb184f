"""What a build of the engine is called: by its files. Knows nothing about where they lie or who loads them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

_DIGITS = 8


def digest(found: Mapping[str, str]) -> str:
    """A few digits that differ where any library does: the part of a build's name that its files are.

    `found` are hashes by file name. The version in a name does not count: a wheel holds libggml.so and libggml.so.0 as
    two equal files.
    """
    listed = sorted({f"{name.partition('.')[0]} {value}" for name, value in found.items()})
    return hashlib.sha256("\n".join(listed).encode()).hexdigest()[:_DIGITS]
