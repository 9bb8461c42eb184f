"""Files of the user's cache, each under a hash: whole or not there. It knows nothing about what is in them."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def place_of(folder: Path, key: str) -> Path:
    """Where a file with a key lies, among few others."""
    return folder / key[:2] / key[2:]


def keep(place: Path, content: bytes) -> None:
    """Write a file, whole or not at all; where nothing can be written it is not there the next time either."""
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        descriptor, made = tempfile.mkstemp(dir=place.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.replace(made, place)
        except BaseException:
            os.unlink(made)
            raise
