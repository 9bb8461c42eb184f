"""Writing a report's files whole. Knows nothing about what is in them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from bench.errors import UserError


def refusal(path: Path, error: OSError) -> UserError:
    """What to say where the report cannot be written."""
    return UserError(
        f"the report cannot be written to '{path}' ({error.strerror or error}): "
        f"free that path, or name another folder with `python -m bench report reports=FOLDER`"
    )


def open_folder(folder: Path) -> None:
    """Makes the folder and proves that a file can be written there, before any work is done.

    Raises UserError when it cannot.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise refusal(folder, error) from error


def write_file(path: Path, content: str | bytes) -> Path:
    """Writes to a temporary name and renames: a reader sees the old file or the whole new one.

    Raises UserError when the path cannot be written.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_bytes(data)
        os.replace(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise refusal(path, error) from error
    return path


def remove_file(path: Path) -> None:
    """Removes one of the report's own files if it is there. Raises UserError when it cannot be removed."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise refusal(path, error) from error
