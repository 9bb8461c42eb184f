"""Writing a large file whole: under a temporary name beside it, renamed at the end, removed when anything goes wrong.

It knows nothing about what is in it.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from kernels.errors import KernelError


@contextlib.contextmanager
def whole_file(path: Path, size: int) -> Iterator[int]:
    """A file descriptor to write at; `path` appears when the block ends well, and nothing is left when it does not.

    `size` is how many bytes there will be, for the error's sentence. KernelError where the disk is full or refuses.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
        os.replace(partial, path)
    except OSError as error:
        _remove(partial)
        raise KernelError(_sentence(path, size, error)) from error
    except BaseException:
        _remove(partial)
        raise


def write_all(descriptor: int, data: bytes | memoryview, offset: int) -> None:
    """All bytes at `offset`: one call to the system may write fewer. OSError where that fails."""
    view = memoryview(data).cast("B")
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _sentence(path: Path, size: int, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return (
            f"{path} needs {size / 1e9:.2f} GB and its disk, quota or file size limit has no room for them "
            f"({error.strerror}); nothing was left there, name a file on another disk"
        )
    return f"{path} cannot be written ({error.strerror or error}); name another file"
