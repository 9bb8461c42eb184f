"""One measuring process a device at a time: two of them would measure each other.

The lock is the kernel's (`flock`), so it goes away with the process, however that ends. Knows nothing about sweeps.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TextIO

from bench.errors import UserError


def runtime_dir() -> Path:
    """This user's folder for things that last as long as the login."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.access(base, os.W_OK):
        return Path(base) / "pti-bench"
    return Path(tempfile.gettempdir()) / f"pti-bench-{os.getuid()}"


class DeviceLock:
    """Context manager that holds a device, named `cpu`, `cuda0` and so on.

    Raises `UserError` with the holder's process id, command and start time when another process has it.
    """

    def __init__(self, device: str = "cpu", folder: Path | None = None) -> None:
        self.device = device
        self.path = (folder or runtime_dir()) / f"{device}.lock"
        self._file: TextIO | None = None

    def __enter__(self) -> DeviceLock:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = self.path.open("a+")
        except OSError as error:
            raise UserError(f"the lock {self.path} cannot be written: {error.strerror}; set XDG_RUNTIME_DIR") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            message = self._taken(file.read())
            file.close()
            raise UserError(message) from None
        file.seek(0)
        file.truncate()
        json.dump({"pid": os.getpid(), "command": " ".join(sys.argv), "since": time.time()}, file)
        file.flush()
        self._file = file
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            # The file stays: removing it would let a third process lock a new one while a second waits on the old.
            self._file.truncate(0)
            self._file.close()
            self._file = None

    def _taken(self, text: str) -> str:
        try:
            holder = json.loads(text)
            since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder["since"]))
            who = f"process {holder['pid']} (`{holder['command']}`, since {since})"
            hint = f"wait for it, or stop it with `kill {holder['pid']}`"
        except (ValueError, KeyError, TypeError):
            who, hint = "another process", f"find it with `fuser {self.path}`"
        return f"the device '{self.device}' is being measured by {who}; two at once would measure each other; {hint}"
